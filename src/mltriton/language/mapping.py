"""`tl.map_elementwise`: a function of scalars on every element of blocks.

Takes a function written in the language and blocks, which broadcast. A function without control flow is compiled on the
blocks themselves. One with control flow becomes the region of a reduction of pairs of equal elements, which every level
and target applies element by element: of two the first is looked at, and what the function gives is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mltriton.dialects import arith
from mltriton.errors import OptionError, ShapeMismatchError, TypeMismatchError
from mltriton.ir.operation import Block
from mltriton.language.building import builtin, current, inline
from mltriton.language.creation import full
from mltriton.language.reductions import reduce
from mltriton.language.semantic import broadcast_all, constexpr_int, to_tensor
from mltriton.language.shapes import join, reshape, split
from mltriton.language.tensor import tensor
from mltriton.language.types import dtype

__all__ = ["map_elementwise"]


@builtin
def map_elementwise(scalar_fn: Any, *args: object, pack: int = 1) -> Any:
    """What `scalar_fn` gives for the elements of `args`: a block, or a tuple of blocks where it returns a tuple.

    With `pack` the function gets that many neighbouring elements of each argument (those of the first, then those of
    the second) and returns as many of each result. Raises `OptionError`, `ShapeMismatchError`, `TypeMismatchError`.
    """
    count = constexpr_int(pack, "the pack of tl.map_elementwise")
    if count < 1 or count & (count - 1):
        raise OptionError("pack of tl.map_elementwise", expected="a power of two", found=str(count))
    blocks = broadcast_all(*map(to_tensor, args))
    if not blocks:
        raise TypeMismatchError("tl.map_elementwise needs a block", expected="one block or more", found="nothing")
    shape = blocks[0].type.shape
    if not shape:
        return inline(scalar_fn, blocks)
    if blocks[0].numel.value % count:
        message = f"pack of tl.map_elementwise does not divide the {blocks[0].numel.value} elements"
        raise ShapeMismatchError(message, found=str(count))
    parts = [part for block in blocks for part in apart(block, count)]
    types, is_single, is_plain = _results(scalar_fn, parts)
    found = _listed(inline(scalar_fn, parts)) if is_plain else mapped_one_by_one(scalar_fn, parts, types)
    results = [together(found[at : at + count], shape) for at in range(0, len(found), count)]
    return results[0] if is_single else tuple(results)


def apart(block: tensor, count: int) -> list[tensor]:
    """Every `count`-th element from the first, from the second, ... on."""
    if count == 1:
        return [block]
    halves = split(reshape(block, (block.numel.value // 2, 2)))
    first, second = (apart(half, count // 2) for half in halves)
    return [part for pair in zip(first, second, strict=True) for part in pair]


def together(parts: Sequence[tensor], shape: tuple[int, ...]) -> tensor:
    """The opposite of `apart`."""
    if len(parts) == 1:
        return reshape(parts[0], shape)
    first, second = (together(parts[i::2], (-1,)) for i in (0, 1))
    return reshape(join(first, second), shape)


def _listed(value: Any) -> list[tensor]:
    items: Sequence[object] = cast("Sequence[object]", value) if isinstance(value, tuple | list) else (value,)
    return [to_tensor(item) for item in items]


def _results(fn: Any, blocks: Sequence[tensor]) -> tuple[list[dtype], bool, bool]:
    """The dtypes that a function gives for such elements, whether it gives just one, and whether it can be compiled on
    blocks: it has no control flow and no effects.
    """
    kinds = [block.dtype for block in blocks]
    trial = Block([kind.to_ir() for kind in kinds])
    with current().inside(trial):
        value = inline(fn, [tensor(argument, kind) for argument, kind in zip(trial.arguments, kinds, strict=True)])
        found = [item.type for item in _listed(value)]
    is_plain = all(op.elementwise or isinstance(op, arith.Constant) for op in trial.ops)
    given = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
    has_block_results = all(isinstance(item, tensor) for item in given)
    for op in reversed(trial.ops):
        op.drop_operands()
    return found, not isinstance(value, tuple | list), is_plain and has_block_results and bool(trial.ops)


def mapped_one_by_one(fn: Any, blocks: Sequence[tensor], types: Sequence[dtype]) -> list[tensor]:
    """The function in the region of a reduction: the sources are the arguments, and room for the results."""
    count, shape = len(blocks), blocks[0].type.shape

    @builtin
    def apply(*elements: tensor) -> tuple[tensor, ...]:
        return (*elements[:count], *_listed(inline(fn, elements[:count])))

    rooms = [full(shape, 0, kind) for kind in types]
    pairs = tuple(join(source, source) for source in (*blocks, *rooms))
    return list(cast("tuple[tensor, ...]", reduce(pairs, len(shape), apply)))[count:]
