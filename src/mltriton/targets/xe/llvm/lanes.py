"""Blocks in the registers of a warp's lanes: which LLVM values hold them, and how these are taken apart.

Level: intrinsic -> llvm. The encoding's linear layout says which element register r of lane l holds; here is decided
that `Form.width` registers after each other are one LLVM value: a scalar for most blocks, for those that the matrix
engine reads or writes the vector that its instruction takes. f16, bf16 and fp8 are integers of their width.
Guarantees: LLVM vectors have at most 16 elements, all that SPIR-V's arithmetic takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from mltriton.errors import BackendError
from mltriton.ir.types import F32, F64, FloatType, IndexType, IntegerType, PointerType, TensorType
from mltriton.ir.types import Type as IRType
from mltriton.layouts.encodings import DotOperandEncoding, Encoding
from mltriton.layouts.hardware import warp_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.regions import word_bytes
from mltriton.layouts.xe import DpasEncoding, Subgroup2DBlockEncoding
from mltriton.targets.llvm.types import Type, Value, vector

LONGEST_VECTOR = 16  # elements, of LLVM's vectors for SPIR-V
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
def form_of(type_: TensorType) -> Form:
    """How a block of that type is held."""
    element = vector(element_name(type_.element), 1)
    registers = layout_of(type_).count("register")
    count, held = _matrix_value(type_.encoding, element) or (1, element)
    if isinstance(type_.encoding, Subgroup2DBlockEncoding) and type_.encoding.packed_rows > 1 and count > registers:
        count, held = registers, held.with_lanes(held.lanes * registers // count)
    if count > registers or held.lanes > LONGEST_VECTOR:
        return Form(1, element, element)
    return Form(count, element, held)


def _matrix_value(encoding: object, element: Type) -> tuple[int, Type] | None:
    """What one instruction of the matrix engine takes: how many registers, in which LLVM value."""
    if element.element.startswith("ptr"):
        return None
    if isinstance(encoding, DpasEncoding):
        rows = encoding.repeat_count * encoding.execution_size // encoding.threads_per_warp
        return rows, element.with_lanes(rows)
    if isinstance(encoding, Subgroup2DBlockEncoding):
        return _block_value(encoding, element)
    if not (isinstance(encoding, DotOperandEncoding) and isinstance(encoding.parent, DpasEncoding)):
        return None
    dpas, bits = encoding.parent, element.bits
    if bits * dpas.ops_per_channel == 16 and encoding.op_idx == 0:
        return dpas.repeat_count, element.with_lanes(dpas.repeat_count)  # What becomes an operand of 16 bits.
    if bits * dpas.ops_per_channel != 32:
        return None
    across = dpas.repeat_count if encoding.op_idx == 0 else dpas.execution_size
    count = dpas.depth * across // dpas.threads_per_warp
    if bits == 32:
        return count, element.with_lanes(count)
    word = 8 * word_bytes(encoding, element.bytes)
    return count, vector(f"i{word}", count * bits // word)


def _block_value(encoding: Subgroup2DBlockEncoding, element: Type) -> tuple[int, Type] | None:
    """What an instruction of the matrix engine takes of a block that was loaded for it."""
    if element.bits == 32:
        return 8, element.with_lanes(8)
    if element.bits not in (8, 16):
        return None
    word = 8 * word_bytes(encoding, element.bytes)
    if word == element.bits == 8 and encoding.block[1] == encoding.threads_per_warp:
        return 8, element.with_lanes(8)
    if word != 32 and encoding.block[1] * element.bits != 256:
        return None
    return 8 * word // element.bits, vector(f"i{word}", 8)
