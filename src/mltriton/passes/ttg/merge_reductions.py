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


class MergeReductions(Pass):
    """Let reductions share their exchange between warps."""

    name = "merge-reductions"

    def run(self, module: Module) -> Module:
        for op in [*module.walk()]:
            for block in op.blocks:
                _merge(block)
        return module


def _merge(block: Block) -> None:
    """Merge each reduction of a body with the nearest one before it."""
    earlier: list[tt.Reduce] = []
    for op in [op for op in block.ops if isinstance(op, tt.Reduce) and _crosses_warps(op)]:
        for first in reversed(earlier):
            followers = _followers(first, op) if _kind(first) == _kind(op) else None
            if followers is not None:
                earlier.remove(first)
                op = _merged(first, op, followers)
                break
        earlier.append(op)


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


def _followers(first: tt.Reduce, last: tt.Reduce) -> list[Operation] | None:
    """What stands between two reductions and follows from the first; None where that cannot move behind the last."""
    block = first.block
    assert block is not None
    found, values = list[Operation](), set(first.results)
    for op in block.ops[block.position(first) + 1 : block.position(last) + 1]:
        if any(not values.isdisjoint(inner.operands) for inner in op.walk()):
            if op is last or not op.pure or op.regions:
                return None
            found.append(op)
            values.update(op.results)
    return found


def _merged(first: tt.Reduce, last: tt.Reduce, followers: Sequence[Operation]) -> tt.Reduce:
    """One reduction in the place of the last."""
    parts = (first, last)
    sources = [value for op in parts for value in op.sources]
    types = [result.type for op in parts for result in op.results]
    made = (
        Builder()
        .before(last)
        .create(tt.Reduce, sources, result_types=types, regions=[_combining(parts)], axis=last.axis)
    )
    block = last.block
    assert block is not None
    for op in followers:
        block.ops.remove(op)
    place = block.position(made) + 1
    block.ops[place:place] = followers
    first.replace_by(made.results[: len(first.results)])
    last.replace_by(made.results[len(first.results) :])
    return made


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
