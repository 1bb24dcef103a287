"""What stands for values in a lane's program: scalars, blocks in the registers of a warp's lanes, pointers to blocks.

Level: intrinsic -> llvm. The encoding's linear layout says which element register r of lane l holds; a machine
decides that `Form.width` registers after each other are one LLVM value: a scalar for most blocks, for those that a
matrix engine reads or writes the vector that its instruction takes. f16, bf16 and fp8 are integers of their width.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mltriton.errors import BackendError
from mltriton.ir.types import F32, F64, FloatType, IndexType, IntegerType, PointerType, TensorType
from mltriton.ir.types import Type as IRType
from mltriton.layouts.encodings import Encoding
from mltriton.layouts.hardware import warp_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import Type, Value, vector

_FLOATS = {F32: "float", F64: "double"}


class Form(NamedTuple):
    """`width` registers of type `element` are one value of type `type`."""

    width: int
    element: Type
    type: Type

    @property
    def is_plain(self) -> bool:
        """Whether each element of the value is one register."""
        return self.type.lanes == self.width


class Lanes(NamedTuple):
    """A block: values that hold the registers 0 .. count - 1 of a lane, the next ones, ..."""

    form: Form
    values: Sequence[Value]

    @property
    def registers(self) -> int:
        """How many elements a lane holds."""
        return self.form.width * len(self.values)


class BlockPointer(NamedTuple):
    """A block in global memory: sizes and strides in elements (i64), the block's offsets (i32). `padding` fills a
    descriptor's outside.
    """

    base: Value
    shape: Sequence[Value]
    strides: Sequence[Value]
    offsets: Sequence[Value]
    padding: str = "pad_zero"


class Swizzle(NamedTuple):
    """How elements of a block in shared memory change places: for each of its last dimensions the numbers of the
    elements at 1, 2, 4, ..., and where a window of the block begins, i32.
    """

    images: tuple[tuple[int, ...], ...]
    offsets: tuple[Value, ...]


class SharedBlock(NamedTuple):
    """A block in shared memory: where it starts and its strides in elements. With a swizzle, which is about its last
    dimensions, these have no strides.
    """

    pointer: Value
    strides: Sequence[int]
    swizzle: Swizzle | None = None


Carried = Value | Lanes | BlockPointer  # what regions can hand on
Emitted = Carried | SharedBlock
Made = Emitted | list[Emitted] | None  # what stands for an operation's results


def parts_of(found: Carried) -> list[Value]:
    """The LLVM values that stand for a value."""
    if isinstance(found, Value):
        return [found]
    if isinstance(found, Lanes):
        return list(found.values)
    return [found.base, *found.shape, *found.strides, *found.offsets]


def element_name(type_: IRType) -> str:
    """LLVM's element type for a scalar IR type, as values have it (i1 is one bit)."""
    if isinstance(type_, IntegerType):
        return f"i{type_.width}"
    if isinstance(type_, FloatType):
        return _FLOATS.get(type_, f"i{type_.width}")
    if isinstance(type_, PointerType) and not isinstance(type_.pointee, TensorType):
        return f"ptr addrspace({type_.address_space})"
    if isinstance(type_, IndexType):
        return "i64"
    raise BackendError(f"values of type {type_} cannot be held in registers")


@cache
def layout_of(type_: TensorType) -> LinearLayout:
    """Where the elements of a block are. Raises `BackendError` where its encoding does not say so for one warp."""
    if not isinstance(type_.encoding, Encoding):
        raise BackendError("a block has no encoding, so that no lane has it", found=str(type_))
    try:
        return warp_layout(type_.encoding, type_.shape)
    except ValueError as error:
        raise BackendError(str(error), found=str(type_)) from None


@cache
def plain_form(type_: TensorType) -> Form:
    """Each register is an LLVM value of its own."""
    element = vector(element_name(type_.element), 1)
    return Form(1, element, element)
