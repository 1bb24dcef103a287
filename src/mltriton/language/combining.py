"""What reductions and scans share: the blocks that they take, and the region that combines two elements.

Takes blocks (or scalars, across warps) and a function of the language; guarantees that the region works on scalars and
returns what it combines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from mltriton.errors import ShapeMismatchError, TypeMismatchError
from mltriton.ir.operation import Block, Operation, Region
from mltriton.language import types
from mltriton.language.building import current, inline
from mltriton.language.semantic import to_tensor
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

Combine = Callable[[object, object], tensor]
Values = tensor | tuple[tensor, ...]


def sources_of(input: object, what: str, *, scalars: bool = False) -> tuple[tensor, ...]:
    """The blocks (with `scalars` also scalars) to combine, all of one shape."""
    listed: Sequence[object] = cast("Sequence[object]", input) if isinstance(input, tuple | list) else (input,)
    if not listed:
        raise TypeMismatchError(f"{what} needs a block", expected="one block or more", found="()")
    sources = tuple(to_tensor(item) for item in listed)
    shape = sources[0].type.shape
    for source in sources:
        if not source.type.is_block() and not scalars:
            raise TypeMismatchError(f"{what} needs a block", expected="a block", found=source.type.name)
        if source.type.shape != shape:
            raise ShapeMismatchError(
                f"the blocks given to {what} have different shapes",
                expected=sources[0].type.name,
                found=source.type.name,
            )
    return sources


def combining_region(fn: Any, sources: Sequence[tensor], terminator: type[Operation], what: str) -> Region:
    """The region that combines one accumulated element of each source with one new element."""
    if not callable(fn):
        raise TypeMismatchError(
            f"{what} needs a function that combines elements", expected="a function", found=repr(fn)
        )
    scalars = [source.dtype for source in sources] * 2
    block = Block([scalar.to_ir() for scalar in scalars])
    builder = current()
    with builder.inside(block):
        arguments = [tensor(value, scalar) for value, scalar in zip(block.arguments, scalars, strict=True)]
        results = _combined(inline(fn, arguments), sources, what)
        builder.create(terminator, [result.handle for result in results], result_types=[])
    return Region([block])


def _combined(value: Any, sources: Sequence[tensor], what: str) -> list[tensor]:
    """The results of a combining function, checked against the elements that go in."""
    listed: Sequence[object] = cast("Sequence[object]", value) if isinstance(value, tuple | list) else (value,)
    found = [item.type if isinstance(item, tensor) else None for item in map(_as_tensor, listed)]
    expected = [source.dtype for source in sources]
    if found != expected:
        shown = ", ".join("no tensor" if kind is None else kind.name for kind in found)
        raise TypeMismatchError(
            f"the function given to {what} must return what it combines",
            expected=", ".join(map(str, expected)),
            found=shown,
            hint="it gets the accumulated elements, then the new ones, and returns the combined elements",
        )
    return [cast(tensor, _as_tensor(item)) for item in listed]


def _as_tensor(value: object) -> object:
    return value if isinstance(value, tensor) or value is None else to_tensor(value)


def wrapped(handles: Sequence[Any], types: Sequence[dtype], input: object) -> Values:
    """Results as tensors: a tuple of them where `input` is one."""
    made = [tensor(handle, kind) for handle, kind in zip(handles, types, strict=True)]
    return tuple(made) if isinstance(input, tuple | list) else made[0]


def sum_dtype(kind: dtype) -> dtype:
    """Sums of integers below 32 bits run in 32 bits of the same signedness."""
    if kind.is_int() and kind.bits < 32:
        return types.int32 if kind.is_int_signed() else types.uint32
    return kind
