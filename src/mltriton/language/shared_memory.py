"""Shared memory of the warps of a program: `tl.alloc`, and block pointers into it.

Takes shapes and dtypes known when compiling; gives a `shared_pointer`, which `tl.load`, `tl.store` and `tl.advance`
take as they take block pointers. Guarantees: one buffer for each place in the program, allocated at its start; a
window whose offsets are known lies inside it. A loop carries the offsets of a pointer, never the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mltriton.dialects import arith, tt, ttg
from mltriton.errors import PointerError, ShapeMismatchError, SharedMemoryError, TypeMismatchError
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Value
from mltriton.ir.types import MemDescType
from mltriton.language import types
from mltriton.language.building import builtin, current, entry_block
from mltriton.language.casting import cast as convert_dtype
from mltriton.language.constants import constexpr
from mltriton.language.semantic import (
    broadcast_to,
    common_shape,
    constexpr_int,
    integer_scalar,
    literal,
    sequence,
    shown,
    splat,
    stored_as,
)
from mltriton.language.tensor import composite, tensor
from mltriton.language.types import block_type, dtype
from mltriton.language.warps import require_warps

__all__ = ["alloc"]

Shape = tuple[int, ...]


class shared_pointer_type(dtype):  # noqa: N801 - named like the other types of the language
    """The type of a pointer to a window of `window` elements of `element` in the buffer `allocation`."""

    __slots__ = ("allocation", "element", "window")

    def __init__(self, allocation: Value, element: dtype, window: Shape) -> None:
        self.allocation = allocation
        self.element = element
        self.window = window
        whole = cast(MemDescType, allocation.type).shape
        op = allocation.defining_op
        place = op.loc.innermost if op is not None else None
        where = f" of line {place.line}" if place is not None else ""
        text = "x".join([*map(str, window), str(element)])
        super().__init__(f"shared<{text}> in the buffer {list(whole)}{where}", f"shared<{text}>", 0)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, shared_pointer_type)
            and self.allocation is other.allocation
            and self.window == other.window
        )

    def __hash__(self) -> int:
        return hash((self.allocation, self.window))

    @property
    def shape(self) -> Shape:
        return self.window


class shared_pointer(composite):  # noqa: N801 - named like the other values of the language
    """A pointer to a block in shared memory, made by `tl.alloc`.

    `offsets` has an int32 scalar for each dimension of the whole buffer; the window's dimensions are its last ones.
    """

    __slots__ = ("offsets", "type")

    def __init__(self, offsets: Sequence[tensor], type: shared_pointer_type) -> None:
        self.offsets = tuple(offsets)
        self.type = type

    def __repr__(self) -> str:
        return self.type.name

    @property
    def parts(self) -> tuple[tensor, ...]:
        """What a loop carries."""
        return self.offsets

    def rebuilt(self, parts: Sequence[Any]) -> shared_pointer:
        """The same window elsewhere in the buffer."""
        return shared_pointer(parts, self.type)

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.element

    @property
    def shape(self) -> tuple[constexpr, ...]:
        """The shape of the block that the pointer points to."""
        return tuple(constexpr(size) for size in self.type.window)

    def __add__(self, other: object) -> shared_pointer:
        raise PointerError(
            "a pointer into shared memory cannot be added to",
            found=self.type.name,
            hint="tl.advance(p, offsets) moves it, p[i] and p.block(offsets, shape) point to a part.",
        )

    __radd__ = __sub__ = __add__

    def __getitem__(self, index: object) -> shared_pointer:
        return chosen(self, index)

    def block(self, offsets: object, shape: object) -> shared_pointer:
        """The window of `shape` at `offsets` of this one."""
        return window(self, offsets, shape)

    def load(self) -> tensor:
        """The block, as `tl.load(p)`."""
        return load_shared(self)

    def store(self, value: object) -> None:
        """Store a block, as `tl.store(p, value)`."""
        store_shared(self, value)


@builtin
def alloc(shape: object, dtype: object) -> shared_pointer:
    """A buffer in the shared memory of the program, for its lifetime; the pointer points to all of it.

    Leading dimensions make several buffers: `p[i]` is the i-th. In a loop it is the same buffer every time.
    """
    require_warps("tl.alloc")
    sizes = tuple(constexpr_int(size, "the shape of tl.alloc") for size in sequence(shape, "the shape of tl.alloc"))
    if not sizes or min(sizes) < 1:
        raise ShapeMismatchError(
            "the shape of tl.alloc needs positive sizes", expected="such as (2, 64)", found=str(sizes)
        )
    element = _element(dtype)
    memory = MemDescType(sizes, (types.int8 if element.is_bool() else element).to_ir())
    entry = entry_block()
    start = Builder(entry, current().loc)
    start.anchor = next((op for op in entry.ops if not isinstance(op, ttg.LocalAlloc)), None)
    buffer = start.emit(ttg.LocalAlloc, None, result_types=[memory])
    zeros = [literal(0, types.int32) for _ in sizes]
    return shared_pointer(zeros, shared_pointer_type(buffer, element, sizes))


def _element(kind: object) -> dtype:
    if not isinstance(kind, dtype) or kind.is_ptr() or kind.is_block() or kind.is_void():
        found = shown(kind) if not isinstance(kind, dtype) else kind.name
        raise TypeMismatchError("tl.alloc needs a dtype", expected="such as tl.float16", found=found)
    return kind


@builtin
def chosen(pointer: shared_pointer, index: object) -> shared_pointer:
    """`p[i]`, `p[i, j]`: the parts of a buffer, one dimension less for each index."""
    indices = cast("Sequence[object]", index) if isinstance(index, tuple | list) else (index,)
    extents = pointer.type.window
    if len(indices) > len(extents) or not all(isinstance(item, int | tensor) for item in indices):
        raise ShapeMismatchError(
            "a pointer into shared memory is indexed with one integer for each leading dimension",
            expected=f"at most {len(extents)} integers",
            found=f"p[{', '.join(shown(item) for item in indices)}]",
            hint="p.block(offsets, shape) points to a part of all dimensions.",
        )
    steps = [integer_scalar(item, types.int32, "an index into shared memory") for item in indices]
    for dim, (step, extent) in enumerate(zip(steps, extents, strict=False)):
        _require_inside(f"index {dim}", step, 1, extent, pointer)
    return _moved(pointer, steps, extents[len(steps) :])


@builtin
def window(pointer: shared_pointer, offsets: object, shape: object) -> shared_pointer:
    """`p.block(offsets, shape)`: a smaller window, at `offsets` of this one."""
    what = "of a block in shared memory"
    steps = [
        integer_scalar(item, types.int32, f"the offsets {what}") for item in sequence(offsets, f"`offsets` {what}")
    ]
    sizes = tuple(constexpr_int(size, f"the shape {what}") for size in sequence(shape, f"`shape` {what}"))
    extents = pointer.type.window
    if not len(steps) == len(sizes) == len(extents) or any(size < 1 for size in sizes):
        raise ShapeMismatchError(
            f"`offsets` and `shape` {what} have one value for each dimension",
            expected=f"{len(extents)} offsets and positive sizes",
            found=f"{len(steps)} offsets, shape {list(sizes)}",
        )
    for dim, (step, size, extent) in enumerate(zip(steps, sizes, extents, strict=True)):
        _require_inside(f"dimension {dim}", step, size, extent, pointer)
    return _moved(pointer, steps, sizes)


def advanced(pointer: shared_pointer, offsets: object) -> shared_pointer:
    """`tl.advance`: the window moved inside its buffer."""
    what = "`offsets` of tl.advance"
    steps = [integer_scalar(item, types.int32, "the offsets") for item in sequence(offsets, what)]
    rank = len(pointer.type.window)
    if len(steps) != rank:
        raise ShapeMismatchError(
            f"{what} needs one value for each dimension", expected=str(rank), found=str(len(steps))
        )
    return _moved(pointer, steps, pointer.type.window)


def _moved(pointer: shared_pointer, steps: Sequence[tensor], shape: Shape) -> shared_pointer:
    """The pointer with `steps` added to the offsets of its window's dimensions, the first ones first."""
    made = list(pointer.offsets)
    first = len(made) - len(pointer.type.window)
    for dim, step in enumerate(steps, first):
        made[dim] = _sum(made[dim], step)
    return shared_pointer(made, shared_pointer_type(pointer.type.allocation, pointer.type.element, shape))


def _sum(a: tensor, b: tensor) -> tensor:
    left, right = _known(a), _known(b)
    if left is not None and right is not None:
        return literal(left + right, types.int32)
    if left == 0 or right == 0:
        return b if left == 0 else a
    return tensor(current().emit(arith.AddI, a.handle, b.handle), types.int32)


def _known(value: tensor) -> int | None:
    number = splat_of(value.handle)
    return None if number is None else int(number)


def _require_inside(what: str, offset: tensor, size: int, extent: int, pointer: shared_pointer) -> None:
    """`SharedMemoryError` for a part that is known to reach outside; what is not known the executor checks."""
    at = _known(offset)
    if size > extent or (at is not None and not 0 <= at <= extent - size):
        raise SharedMemoryError(
            f"{what} reaches outside the block in shared memory",
            expected=f"0 to {extent - size}" if size <= extent else f"at most {extent} elements",
            found=f"{'an offset that is not known' if at is None else at}"
            + (f" with {size} elements" if size > 1 else ""),
            hint=f"It points into {pointer.type.name}.",
        )


def load_shared(pointer: shared_pointer) -> tensor:
    """The block (or, where every dimension was indexed, the scalar) that a pointer points to."""
    element = pointer.type.element
    stored = types.int8 if element.is_bool() else element
    made = block_type(stored, pointer.type.window or (1,))
    loaded = tensor(current().emit(ttg.LocalLoad, _memory(pointer, "tl.load"), result_types=[made.to_ir()]), made)
    if not pointer.type.window:
        loaded = tensor(current().emit(tt.Unsplat, loaded.handle, result_types=[stored.to_ir()]), stored)
    return convert_dtype(loaded, types.int1) if element.is_bool() else loaded


def store_shared(pointer: shared_pointer, value: object) -> None:
    """Store a block, converted to the element type and broadcast."""
    element, shape = pointer.type.element, pointer.type.window
    converted = stored_as(value, element)
    if converted.type.shape != shape and common_shape(converted.type.shape, shape) != shape:
        raise ShapeMismatchError(
            "the value does not fit the block in shared memory", expected=pointer.type.name, found=converted.type.name
        )
    if element.is_bool():
        converted = convert_dtype(converted, types.int8)
    block_type(element, shape or (1,))
    whole = broadcast_to(converted, shape) if shape else splat(converted, (1,))
    current().create(ttg.LocalStore, whole.handle, _memory(pointer, "tl.store"))


def _memory(pointer: shared_pointer, what: str) -> Value:
    """The window in the IR; `SharedMemoryError` where it is known to reach outside its buffer."""
    buffer = pointer.type.allocation
    whole = cast(MemDescType, buffer.type)
    sizes = (*[1] * (len(whole.shape) - len(pointer.type.window)), *pointer.type.window)
    for dim, (offset, size, extent) in enumerate(zip(pointer.offsets, sizes, whole.shape, strict=True)):
        _require_inside(f"{what}: dimension {dim}", offset, size, extent, pointer)
    if pointer.type.window == whole.shape and all(_known(offset) == 0 for offset in pointer.offsets):
        return buffer
    part = MemDescType(pointer.type.window or (1,), whole.element)
    return current().emit(
        ttg.MemDescSubview, buffer, [offset.handle for offset in pointer.offsets], result_types=[part]
    )


def forbid_options(what: str, **given: object) -> None:
    """`PointerError` for arguments that only global memory takes."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, str | tuple | list) and not value):
            raise PointerError(
                f"{what} takes no {name} with shared memory",
                hint="A pointer into shared memory moves its whole block; p.block(offsets, shape) points to a part.",
            )
