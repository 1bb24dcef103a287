"""merge-reductions: reductions across warps that do not wait for each other are one.

Level: ttg, with encodings. Takes any program and changes it in place: of reductions of equal blocks along an axis that
warps share, a later one in the same body takes an earlier one in, if it needs nothing that follows from that; what
takes the earlier result moves behind it. Guarantees: no result changes; memory is accessed in the same order.
Purpose: partial results of both cross warps between the same two barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import tt
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType
from mltriton.layouts.encodings import Encoding
from mltriton.records import record


class MergeReductions(Pass):
    """Let reductions share their exchange between warps."""

    name = "merge-reductions"

    def run(self, module: Module) -> Module:
        for op in [*module.walk()]:
            for block in op.blocks:
                _merge(block)
        return module


@record()
class _Group:
    """Reductions that are to be one in the place of the last, what stands between them and follows from one of them,
    and the results of all of these.
    """

    members: list[tt.Reduce]
    followers: list[Operation]
    values: set[Value]


def _merge(block: Block) -> None:
    """Merge each reduction of a body with the nearest one before it that it can be merged with."""
    reductions = [op for op in block.ops if isinstance(op, tt.Reduce) and _crosses_warps(op)]
    if len(reductions) < 2:
        return
    numbers, groups = {op: number for number, op in enumerate(block.ops)}, dict[Operation, _Group]()
    waiting: dict[object, list[_Group]] = {}
    for op in reductions:
        alike = waiting.setdefault(_kind(op), [])
        group = None
        while alike and group is None:  # What cannot join this one stands in the way of all later ones, too.
            earlier = alike.pop()
            between = block.ops[numbers[earlier.members[-1]] + 1 : numbers[op]]
            group = earlier if _joins(op, earlier, between) else None
        group = group or _Group([op], [], set(op.results))
        alike.append(group)
        groups.pop(group.members[0], None)
        groups[group.members[0]] = group  # in the order of their last reductions
    for group in groups.values():
        if len(group.members) > 1:
            _combine(block, group)


def _crosses_warps(op: tt.Reduce) -> bool:
    """Whether several warps have parts along the axis."""
    source = cast(TensorType, op.sources[0].type)
    if not isinstance(source.encoding, Encoding):
        return False
    return source.encoding.cut(source.shape)[op.axis].parts(source.shape[op.axis]) > 1


def _kind(op: tt.Reduce) -> tuple[object, ...]:
    """What is equal of reductions that one operation may do."""
    source = cast(TensorType, op.sources[0].type)
    return source.shape, source.encoding, op.axis


def _joins(last: tt.Reduce, group: _Group, between: Sequence[Operation]) -> bool:
    """Add a reduction to a group; False where what follows from the group cannot move behind it."""
    found = list[Operation]()
    for op in (*between, last):
        if any(not group.values.isdisjoint(inner.operands) for inner in op.walk()):
            if op is last or not op.pure or op.regions:
                return False
            found.append(op)
            group.values.update(op.results)
    group.members.append(last)
    group.followers += found
    group.values.update(last.results)
    return True


def _combine(block: Block, group: _Group) -> None:
    """One reduction in the place of the last, and behind it what follows from them."""
    first, last, followers = group.members[0], group.members[-1], set(group.followers)
    sources = [value for op in group.members for value in op.sources]
    types = [result.type for op in group.members for result in op.results]
    made = (
        Builder()
        .before(last)
        .create(tt.Reduce, sources, result_types=types, regions=[_combining(group.members)], axis=last.axis)
    )
    start, end = block.position(first), block.position(made) + 1
    block.ops[start:end] = [op for op in block.ops[start:end] if op not in followers] + group.followers
    found = iter(made.results)
    for op in group.members:
        op.replace_by([next(found) for _ in op.results])


def _combining(parts: Sequence[tt.Reduce]) -> Region:
    """What combines the accumulators and new elements of each part, all accumulators first."""
    types = [argument.type for op in parts for argument in op.combine.block.arguments[: len(op.sources)]]
    body, values, count = Block([*types, *types]), dict[Value, Value](), 0
    for op in parts:
        size = len(op.sources)
        arguments = op.combine.block.arguments
        values.update(zip(arguments[:size], body.arguments[count : count + size], strict=True))
        values.update(zip(arguments[size:], body.arguments[len(types) + count :][:size], strict=True))
        count += size
        for inner in op.combine.block.ops[:-1]:
            body.append(inner.clone(values))
    ends = [op.combine.block.terminator for op in parts]
    taken = [values.get(value, value) for end in ends for value in end.operands]
    body.append(tt.ReduceReturn(taken, ()))
    return Region([body])
