"""Simpler forms of loops and branches whose bounds, conditions or carried values are known.

Level: tt to intrinsic. A rule returns the values that stand for the results of the operation, which the caller then
erases, or None when there is nothing to do. What it creates or moves stands right before the operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mltriton.dialects import scf
from mltriton.dialects.scf_carried import body_taken_over
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, Operation, Value


def simplify_if(op: scf.If) -> Sequence[Value] | None:
    """A branch on a constant is the branch taken; without results and with an empty branch taken it is nothing."""
    condition = splat_of(op.condition)
    if condition is None:
        return None
    region = op.then if condition else op.otherwise
    return _inlined(region.block, op) if region.blocks else []


def simplify_for(op: scf.For) -> Sequence[Value] | None:
    """A loop that never runs is its initial values; one that runs once is its body; carried values that never change
    or that nobody reads go.
    """
    lower, upper, step = (splat_of(value) for value in op.operands[:3])
    if lower is not None and upper is not None and lower >= upper:
        return op.inits
    if lower is not None and upper is not None and step is not None and 0 < upper - lower <= step:
        return _single_iteration(op)
    return _without_idle_values(op)


def _single_iteration(op: scf.For) -> Sequence[Value]:
    block = op.body.block
    op.counter.replace_by(op.lower)
    for argument, init in zip(op.carried, op.inits, strict=True):
        argument.replace_by(init)
    return _inlined(block, op)


def _inlined(block: Block, op: Operation) -> Sequence[Value]:
    """Move the operations of a block in front of `op`; the values that its terminator yields."""
    assert op.block is not None
    end = block.terminator
    position = op.block.position(op)
    moved = block.ops[:-1]
    op.block.ops[position:position] = moved
    for inner in moved:
        inner.block = op.block
    block.ops[:] = [end]
    return list(end.operands)


def _without_idle_values(op: scf.For) -> Sequence[Value] | None:
    block = op.body.block
    yielded = block.terminator.operands
    fixed = {
        index
        for index, (argument, init) in enumerate(zip(op.carried, op.inits, strict=True))
        if yielded[index] is argument or yielded[index] is init
    }
    unread = {index for index, argument in enumerate(op.carried) if not _is_read(op, index, argument)}
    if not fixed | unread:
        return None
    kept = [index for index in range(len(op.inits)) if index not in fixed | unread]
    for index in fixed:
        op.carried[index].replace_by(op.inits[index])
    loop = body_taken_over(op, kept)
    assert op.block is not None
    op.block.insert_before(op, loop)
    made = dict(zip(kept, loop.results, strict=True))
    return [made.get(index, op.inits[index]) for index in range(len(op.inits))]


def _is_read(op: scf.For, index: int, argument: Value) -> bool:
    """Whether the result or the argument is used by anything but the chain of values that only feeds itself."""
    if op.results[index].users:
        return True
    end = op.body.block.terminator
    return any(user is not end or end.operands[index] is not argument for user in argument.users)


SIMPLIFICATIONS: dict[type[Operation], Callable[[Any], Sequence[Value] | None]] = {
    scf.If: simplify_if,
    scf.For: simplify_for,
}
