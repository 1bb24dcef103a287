"""Combinations across warps that the loop over the warps carries.

Level: warp. Takes a function whose warps take turns (`writer.py`). What every warp stores to its part of a buffer, only
for all parts to be combined afterwards, is combined warp by warp instead: the loop carries what has been combined so
far, and the buffer is gone. Guarantees: the same, but for the order in which numbers are combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.types import MemDescType, shape_of
from mltriton.passes.intrinsic.tile_loops.combining import neutral


@dataclass(frozen=True)
class _Sum:
    """`part`, stored in each turn of `loop`, and the reduction of all parts; `start` combines with anything to that."""

    loop: scf.For
    part: Value
    reduction: tt.Reduce
    start: float
    memory: Sequence[Operation]


def carry_sums(body: Block) -> None:
    """Let loops over warps carry what is combined across them."""
    while True:
        buffers = [op for op in body.ops if isinstance(op, ttg.LocalAlloc)]
        sums = [sum for buffer in buffers if (sum := _sum_in(buffer)) is not None]
        if not sums:
            return
        _carry(sums[0].loop, [sum for sum in sums if sum.loop is sums[0].loop])


def _sum_in(buffer: ttg.LocalAlloc) -> _Sum | None:
    """The combination for which a buffer exists; None if something else is done with it, or nothing is known to start
    with.
    """
    type, users = buffer.result.type, list(buffer.result.users)
    loads = [user for user in users if isinstance(user, ttg.LocalLoad)]
    windows = [user for user in users if isinstance(user, ttg.MemDescSubview)]
    assert isinstance(type, MemDescType)
    if len(users) != 2 or len(loads) != 1 or len(windows) != 1:
        return None
    load, window = loads[0], windows[0]
    store, reduction = _only_user(window), _only_user(load)
    if not isinstance(store, ttg.LocalStore) or not isinstance(reduction, tt.Reduce) or len(reduction.operands) != 1:
        return None
    part, loop = _part(store, type), store.parent_op
    if reduction.axis != 0 or part is None or not isinstance(loop, scf.For) or loop.results:
        return None
    turns = [splat_of(bound) for bound in (loop.lower, loop.upper, loop.step)]
    is_turn = window.offsets[0] is loop.counter and turns == [0, type.shape[0], 1]
    is_turn &= loop.block is load.block and loop.is_before(load)
    start = neutral(reduction.combine, type.element)
    if not is_turn or start is None:
        return None
    return _Sum(loop, part, reduction, start, (store, window, load, buffer))


def _part(store: ttg.LocalStore, buffer: MemDescType) -> Value | None:
    """What a warp stores to its part of a buffer: a scalar, or a whole block."""
    if len(buffer.shape) > 1:
        return store.value if shape_of(store.value.type) == buffer.shape[1:] else None
    splat = store.value.defining_op
    return splat.source if isinstance(splat, tt.Splat) else None


def _only_user(op: Operation) -> Operation | None:
    users = list(op.results[0].users)
    return users[0] if len(users) == 1 else None


def _carry(loop: scf.For, sums: Sequence[_Sum]) -> None:
    """Write a loop anew, with the numbers combined so far."""
    old, before = loop.body.block, Builder().before(loop)
    starts = [arith.filled(before, sum.start, sum.part.type) for sum in sums]
    types = [start.type for start in starts]
    body = Block([loop.counter.type, *types])
    values: dict[Value, Value] = {loop.counter: body.arguments[0]}
    body.arguments[0].hint = loop.counter.hint
    stores = {sum.memory[0] for sum in sums} | {sum.memory[1] for sum in sums}
    for op in old.ops[:-1]:
        if op not in stores:
            body.append(op.clone(values))
    builder = Builder(body, loop.loc)
    ends = [
        _combined(builder, sum.reduction, so_far, values.get(sum.part, sum.part))
        for sum, so_far in zip(sums, body.arguments[1:], strict=True)
    ]
    builder.create(scf.Yield, ends, result_types=[])
    bounds = [loop.lower, loop.upper, loop.step]
    made = before.insert(
        scf.For([*bounds, *starts], types, loop.attributes, [Region([body])], loop.loc, (1, 1, 1, len(sums)))
    )
    for sum, result in zip(sums, made.results, strict=True):
        type = sum.reduction.results[0].type
        is_same = result.type is type
        whole = result if is_same else before.emit(ttg.ConvertLayout, result, result_types=[type])
        sum.reduction.replace_by([whole])
    loop.erase()
    for sum in sums:
        for op in sum.memory[2:]:
            op.erase()


def _combined(builder: Builder, reduction: tt.Reduce, so_far: Value, part: Value) -> Value:
    """What has been combined so far, and one more part."""
    block = reduction.combine.block
    values: dict[Value, Value] = dict(zip(block.arguments, (so_far, part), strict=True))
    op = block.ops[0]  # the only one, or nothing would be known to start with (`neutral`)
    return builder.emit(type(op), *(values[operand] for operand in op.operands), result_types=[part.type])
