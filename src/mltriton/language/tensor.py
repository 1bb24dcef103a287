"""Values of a kernel: `tensor`, `tensor_descriptor`, and how values become lists of IR values and back.

A value of a kernel is a `tensor`, a `constexpr`, a Python tuple of values, a `tensor_descriptor`, a `dtype`, a
function or None. Operators and methods of a tensor create operations through the current builder; they live in the
modules that `mltriton.language` names, which are loaded when first used. Imports nothing of the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, cast

from mltriton.errors import ConstexprError
from mltriton.language.constants import constexpr as constexpr
from mltriton.language.types import block_type, dtype, pointer_type, tensor_descriptor_type

if TYPE_CHECKING:
    from mltriton.ir.operation import Value

# Functions of `mltriton.language` that are methods of a tensor as well, with the tensor as first argument.
_METHOD_NAMES = """
broadcast_to trans permute split view reshape expand_dims squeeze unsqueeze ravel flip item cast load store
advance gather exp exp2 log log2 cos sin sqrt sqrt_rn rsqrt abs erf floor ceil cdiv sigmoid softmax
reduce associative_scan max argmax min argmin sum xor_sum reduce_or cumsum cumprod sort topk histogram
atomic_cas atomic_xchg atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_load
atomic_store atomic_poll
"""
METHODS = frozenset(_METHOD_NAMES.split())


class tensor:  # noqa: N801 - upstream's name
    """A value that exists when the kernel runs: a scalar, a pointer, a block, a block of pointers or a block
    pointer.

    `handle` is the IR value, `type` a `dtype` (scalar), `pointer_type` or `block_type`. Operators follow upstream's
    promotion and broadcasting.
    """

    __slots__ = ("handle", "type")

    is_runtime_value = True

    def __init__(self, handle: Value, type: dtype) -> None:
        self.handle = handle
        self.type = type

    def __repr__(self) -> str:
        return f"tensor of {self.type.name}"

    def __str__(self) -> str:
        """As upstream prints it: `fp32[constexpr[16]]`, `int32[]`."""
        return f"{self.dtype}[{', '.join(map(repr, self.shape))}]"

    @property
    def dtype(self) -> dtype:
        """The element type (of a block pointer: the pointer type)."""
        return self.type.scalar

    @property
    def shape(self) -> tuple[constexpr, ...]:
        """The shape; () for a scalar."""
        return tuple(constexpr(size) for size in self.type.shape)

    @property
    def numel(self) -> constexpr:
        """Number of elements."""
        return constexpr(self.type.numel if isinstance(self.type, block_type) else 1)

    @property
    def T(self) -> tensor:  # noqa: N802 - upstream's name
        """The transposed block: the last two dimensions swapped."""
        return _operation("shapes", "transposed")(self)

    @property
    def is_block_pointer(self) -> bool:
        """Whether the value was made by `make_block_ptr`."""
        return is_block_pointer(self.type)

    def to(self, dtype: dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> tensor:
        """The value converted to `dtype`, or its bits read as `dtype`."""
        return _operation("casting", "cast")(self, dtype, fp_downcast_rounding, bitcast)

    def __getitem__(self, index: object) -> tensor:
        return _operation("indexing", "index")(self, index)

    def __bool__(self) -> bool:
        raise ConstexprError(
            f"the truth of a {self!r} is not known when compiling",
            hint="use & | ~ on blocks of booleans, and tl.where to choose between elements",
        )

    def __iter__(self) -> Iterator[tensor]:
        raise ConstexprError(
            f"a {self!r} cannot be iterated or unpacked",
            hint="tl.split takes a block of size 2 along its last dimension apart",
        )

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in METHODS:
            raise AttributeError(f"a tensor has no attribute {name!r}")
        return partial(getattr(_language(), name), self)

    @staticmethod
    def _binary(name: str, module: str = "arithmetic") -> Callable[[tensor, object], tensor]:
        return lambda self, other: _operation(module, name)(self, other)

    @staticmethod
    def _reflected(name: str) -> Callable[[tensor, object], tensor]:
        return lambda self, other: _operation("arithmetic", name)(other, self)

    @staticmethod
    def _unary(name: str, module: str = "arithmetic") -> Callable[[tensor], tensor]:
        return lambda self: _operation(module, name)(self)

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __and__, __rand__ = _binary("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _binary("left_shift"), _reflected("left_shift")
    __rshift__, __rrshift__ = _binary("right_shift"), _reflected("right_shift")
    __lt__, __le__ = _binary("less_than", "comparison"), _binary("less_equal", "comparison")
    __gt__, __ge__ = _binary("greater_than", "comparison"), _binary("greater_equal", "comparison")
    __eq__ = _binary("equal", "comparison")  # pyright: ignore[reportAssignmentType]
    __ne__ = _binary("not_equal", "comparison")  # pyright: ignore[reportAssignmentType]
    __neg__, __pos__, __invert__ = _unary("negative"), _unary("positive"), _unary("invert")
    __hash__ = object.__hash__

    # `and`, `or` and `not` have no methods in Python: the front end calls these.
    logical_and, logical_or, logical_not = (
        _binary("logical_and", "comparison"),
        _binary("logical_or", "comparison"),
        _unary("logical_not", "comparison"),
    )


class tensor_descriptor:  # noqa: N801 - upstream's name
    """A tensor in global memory that is read and written in blocks; made by `tl.make_tensor_descriptor`, or on
    the host (`mltriton.tools.tensor_descriptor`).

    `base` points to the first element; `shape` (int32 tensors) and `strides` (int64 tensors) are those of the whole
    tensor, in elements. Control flow carries these, and `handle` is made of them again.
    """

    __slots__ = ("base", "handle", "shape", "strides", "type")

    is_runtime_value = True

    def __init__(
        self,
        handle: Value,
        base: tensor,
        shape: Sequence[tensor],
        strides: Sequence[tensor],
        type: tensor_descriptor_type,
    ) -> None:
        self.handle = handle
        self.base = base
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.type = type

    def __repr__(self) -> str:
        return self.type.name

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.block.scalar

    @property
    def block_type(self) -> block_type:
        """The type of a loaded block."""
        return self.type.block

    @property
    def block_shape(self) -> tuple[constexpr, ...]:
        """The shape of a loaded block."""
        return tuple(constexpr(size) for size in self.type.block.shape)

    def load(self, offsets: Sequence[object]) -> tensor:
        """The block at `offsets` (in elements)."""
        return _operation("descriptors", "load_tensor_descriptor")(self, offsets)

    def store(self, offsets: Sequence[object], value: object) -> None:
        """Store a block at `offsets` (in elements)."""
        _operation("descriptors", "store_tensor_descriptor")(self, offsets, value)

    def gather(self, x_offsets: tensor, y_offset: object) -> tensor:
        """The rows `x_offsets` from column `y_offset` on, of a descriptor whose block is one row."""
        return _operation("descriptor_elements", "gather_rows")(self, x_offsets, y_offset)

    def scatter(self, value: tensor, x_offsets: tensor, y_offset: object) -> None:
        """Store `value` as the rows `x_offsets` from column `y_offset` on."""
        _operation("descriptor_elements", "scatter_rows")(self, value, x_offsets, y_offset)

    @staticmethod
    def _atomic(kind: str) -> Callable[[tensor_descriptor, Sequence[object], tensor], None]:
        return lambda self, offsets, value: _operation("descriptor_elements", "update")(self, kind, offsets, value)

    # Atomic updates of the block at `offsets`; they give nothing.
    atomic_add, atomic_min, atomic_max = _atomic("add"), _atomic("min"), _atomic("max")
    atomic_and, atomic_or, atomic_xor = _atomic("and"), _atomic("or"), _atomic("xor")


class composite:  # noqa: N801 - named like the other values of the language
    """Base of values that consist of others, and are made again of others of the same types.

    `type` compares equal for two of them that a loop may exchange.
    """

    __slots__ = ()

    is_runtime_value = True

    @property
    def parts(self) -> Sequence[Any]:
        """The values."""
        raise NotImplementedError

    def rebuilt(self, parts: Sequence[Any]) -> Self:
        """The same value of other tensors."""
        raise NotImplementedError


def is_block_pointer(type: dtype) -> bool:
    """Whether a type is that of a block pointer."""
    return isinstance(type, pointer_type) and type.element_ty.is_block()


def flatten(value: object) -> list[Value]:
    """The IR values that a kernel's value consists of: none for constants, in order for tuples."""
    if isinstance(value, tensor):
        return [value.handle]
    if isinstance(value, tensor_descriptor):
        return flatten((value.base, *value.shape, *value.strides))
    if isinstance(value, composite):
        return flatten(tuple(value.parts))
    if isinstance(value, tuple | list):
        return [handle for item in cast("Sequence[object]", value) for handle in flatten(item)]
    return []


def unflatten(like: Any, handles: Sequence[Value]) -> Any:
    """A value of the types and constants of `like` that consists of `handles` (as many as `flatten(like)` gives)."""
    return _rebuild(like, iter(handles))


def _rebuild(like: Any, handles: Iterator[Value]) -> Any:
    if isinstance(like, tensor):
        return tensor(next(handles), like.type)
    if isinstance(like, tensor_descriptor):
        parts = (like.base, like.shape, like.strides)
        base, shape, strides = (_rebuild(part, handles) for part in parts)
        if flatten((base, shape, strides)) == flatten(parts):
            return like
        return _operation("descriptors", "descriptor_of")(base, shape, strides, like.type)
    if isinstance(like, composite):
        return like.rebuilt([_rebuild(part, handles) for part in like.parts])
    if isinstance(like, tuple | list):
        items = [_rebuild(item, handles) for item in cast("Sequence[Any]", like)]
        return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return like


@cache
def _operation(module: str, name: str) -> Callable[..., Any]:
    """A function of a module of `mltriton.language`, which is imported when it is first used."""
    return getattr(import_module(f"mltriton.language.{module}"), name)


@cache
def _language() -> ModuleType:
    return import_module("mltriton.language")
