"""What a loop multiplies and never changes is loaded in each iteration, instead of being kept in registers.

Level: intrinsic, targets whose blocks live in registers; a part of schedule-loads. Takes a function in which innermost
loops multiply blocks that were loaded before them through block pointers or descriptors: queries in attention, keys in
its gradient. `Reloads` puts copies of these loads into the loops, at their beginnings: the nearest cache holds such
blocks, too. Guarantees: a load is repeated only where nothing since may have written what it reads; `undo` restores the
function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mltriton.analysis.aliasing import may_alias, waits_for_programs, writes_in
from mltriton.analysis.block_io import is_block_load
from mltriton.dialects import scf, tt, ttg, ttig
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Operation, OpResult, Value

# What chooses registers of a block.
CHOICES = (ttig.Extract, ttig.Glue, ttg.ConvertLayout)


@dataclass
class Reloads:
    """The loads that were repeated in the loops of a function: their results, and which operands were replaced."""

    function: Operation
    _replaced: list[tuple[Operation, int, Value]] = field(default_factory=list[tuple[Operation, int, Value]])
    _made: list[Operation] = field(default_factory=list[Operation])

    def repeat(self) -> bool:
        """Repeat all loads that may be; says whether there are any."""
        for loop in list(scf.innermost_loops(self.function)):
            self._repeat_in(loop)
        return bool(self._made)

    def _repeat_in(self, loop: scf.For) -> None:
        copies: dict[Value, Value] = {}
        block = loop.body.block
        made: list[Operation] = []
        for op in block.ops:
            if not isinstance(op, (tt.Dot, *CHOICES)):
                continue
            for index, value in enumerate(op.operands):
                chain = list(_chain(value, loop))
                if not chain:
                    continue
                for old in chain:
                    if old.results[0] not in copies:
                        made.append(old.clone(copies))
                self._replaced.append((op, index, value))
                op.set_operand(index, copies[value])
        for op in made:
            op.block = block
        block.ops[:0] = made
        self._made += made

    def undo(self) -> None:
        """Load as before."""
        for op, index, value in self._replaced:
            op.set_operand(index, value)
        _erase_unused(reversed(self._made))

    def finish(self) -> None:
        """Remove the loads that only these loops needed."""
        unused = {value.op for _, _, value in self._replaced if isinstance(value, OpResult)}
        _erase_unused(unused)


def _chain(value: Value, loop: scf.For) -> Iterator[Operation]:
    """The operations that make a block from loads which the loop may repeat, loads first; none where it may not."""
    if not isinstance(value, OpResult) or is_defined_inside(value, loop):
        return
    if isinstance(value.op, tt.Load | tt.DescriptorLoad):
        if _may_repeat(value.op, loop):
            yield value.op
    elif isinstance(value.op, CHOICES):
        chains = [list(_chain(operand, loop)) for operand in value.op.operands]
        if all(chains):
            for chain in chains:
                yield from chain
            yield value.op


def _may_repeat(load: tt.Load | tt.DescriptorLoad, loop: scf.For) -> bool:
    """Whether a load brings the same in each iteration, from few addresses."""
    if not is_block_load(load):
        return False
    between = _operations_since(load, loop)
    return not any(waits_for_programs(op) or any(may_alias(load, write) for write in writes_in(op)) for op in between)


def _operations_since(load: Operation, loop: scf.For) -> Sequence[Operation]:
    """What stands behind a load in its block, up to the operation that holds the loop."""
    block = load.block
    assert block is not None
    holder = loop.ancestor_in(block)
    assert holder is not None, "a value is used where its block is"
    return block.ops[block.position(load) + 1 : block.position(holder) + 1]


def _erase_unused(ops: Iterator[Operation] | set[Operation]) -> None:
    """Erase what has no users, and then what only it used."""
    pending = list(ops)
    while pending:
        op = pending.pop(0)
        if op.block is None or any(result.users for result in op.results):
            continue
        before = [value.op for value in op.operands if isinstance(value, OpResult)]
        op.erase()
        pending += [other for other in before if isinstance(other, (tt.Load, tt.DescriptorLoad, *CHOICES))]
