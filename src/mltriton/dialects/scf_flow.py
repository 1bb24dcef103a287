"""Which values loops and branches hand on: one step back, and one forward.

Level: tt to intrinsic. Takes values; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mltriton.dialects import scf
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Value


def handed_from(value: Value) -> Sequence[Value] | None:
    """The values that `value`, an argument or a result of a loop or branch, may be; none for a loop's counter. None
    where no loop or branch hands it on.
    """
    if isinstance(value, BlockArgument):
        return _of_argument(value)
    assert isinstance(value, OpResult)
    op, index = value.op, value.index
    if not op.regions:
        return None
    if isinstance(op, scf.For):
        return [op.inits[index], op.body.block.terminator.operands[index]]
    if isinstance(op, scf.While):
        return [op.before.block.terminator.operands[1 + index]]
    if isinstance(op, scf.If):
        return [block.terminator.operands[index] for block in op.blocks]
    return None


def _of_argument(value: BlockArgument) -> Sequence[Value] | None:
    loop, index = value.block.parent_op, value.index
    if isinstance(loop, scf.For):
        return [loop.inits[index - 1], loop.body.block.terminator.operands[index - 1]] if index else []
    if isinstance(loop, scf.While):
        if value.block is loop.after.block:
            return [loop.before.block.terminator.operands[1 + index]]
        return [loop.inits[index], loop.after.block.terminator.operands[index]]
    return None


def handed_to(user: Operation, value: Value) -> Iterator[Value]:
    """What stands for `value`, an operand of `user`, in a `for` loop and behind it, or behind a branch."""
    op = user.parent_op if isinstance(user, scf.Yield) else user
    given = user.operands if isinstance(user, scf.Yield) else user.inits if isinstance(user, scf.For) else ()
    if isinstance(op, scf.For | scf.If):
        for index, operand in enumerate(given):
            if operand is value:
                yield op.results[index]
                if isinstance(op, scf.For):
                    yield op.carried[index]


def decided_by(value: Value) -> Sequence[Value]:
    """What says, beside what is handed on, which number a value is: operands, conditions, bounds of loops."""
    op = value.block.parent_op if isinstance(value, BlockArgument) else value.defining_op
    if isinstance(op, scf.For):
        return op.operands[:3]
    if isinstance(op, scf.While):
        return op.before.block.terminator.operands[:1]
    return () if op is None or isinstance(value, BlockArgument) else op.operands
