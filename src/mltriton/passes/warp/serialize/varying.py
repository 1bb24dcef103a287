"""Which values depend on the warp.

Level: warp. `Varying` holds the values of cut blocks (`units.py`) that differ from warp to warp or that have to be
computed inside the loop over the warps; the others are the same for all and are computed once. A load is done once
where the address is the same for all warps, nothing in its piece may write there, and no atomic operation comes
before it: that may have waited for another program.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.analysis.aliasing import may_alias, reads_in, waits_for_programs, writes_in
from mltriton.dialects import gpu, scf
from mltriton.ir.operation import Block, Operation, Value
from mltriton.passes.warp.serialize.units import Cut, ForkUnit, Piece, used_from_outside


class Varying:
    """The values that depend on the warp: `value in varying`."""

    def __init__(self, cut: Cut, body: Block) -> None:
        self.cut = cut
        self.values: set[Value] = set()
        self._may_be_shared: dict[Operation, bool] = {}
        known = -1
        while known != len(self.values):
            known = len(self.values)
            self._block(body)

    def __contains__(self, value: Value) -> bool:
        return value in self.values

    def is_uniform(self, op: Operation, piece: Piece) -> bool:
        """Whether an operation of a piece is done once for all warps."""
        return self.may_be_shared(op, piece) and not any(value in self.values for value in used_from_outside(op))

    def may_be_shared(self, op: Operation, piece: Piece) -> bool:
        """Whether an operation is done once for warps that give it the same operands."""
        found = self._may_be_shared.get(op)
        if found is None:
            found = self._may_be_shared[op] = _only_reads(op) and self._reads_the_same(op, piece)
        return found

    def _reads_the_same(self, op: Operation, piece: Piece) -> bool:
        reads = reads_in(op)
        if not reads:
            return True
        if any(waits_for_programs(other) for other in piece.ops[: piece.ops.index(op)]):
            return False
        return not any(may_alias(load, write) for other in piece.ops for write in writes_in(other) for load in reads)

    def _block(self, block: Block) -> None:
        for unit in self.cut.units[block]:
            if isinstance(unit, Piece):
                for op in unit.ops:
                    if not self.is_uniform(op, unit):
                        self.values.update(op.results)
            else:
                self._fork(unit)

    def _fork(self, unit: ForkUnit) -> None:
        op = unit.op
        if isinstance(op, scf.For) and op in self.cut.dealt:
            self.values.update((op.counter, *op.carried, *op.results))
        for block in op.blocks:
            self._block(block)
        if isinstance(op, scf.For):
            ends = op.body.block.terminator.operands
            self._joined(op.inits, ends, op.carried, op.results)
        elif isinstance(op, scf.While):
            before, after = op.before.block, op.after.block
            self._joined(op.inits, after.terminator.operands, before.arguments)
            passed = before.terminator.operands[1:]
            self._joined(passed, passed, after.arguments, op.results)
        elif op.results:
            self._joined(op.then.block.terminator.operands, op.otherwise.block.terminator.operands, op.results)

    def _joined(self, first: Sequence[Value], second: Sequence[Value], *to: Sequence[Value]) -> None:
        """Values that come from one place or another."""
        for number, sources in enumerate(zip(first, second, strict=True)):
            if any(value in self.values for value in sources):
                self.values.update(values[number] for values in to)


def _only_reads(op: Operation) -> bool:
    """Whether doing an operation once, before the others of its piece, makes no difference to what it gives."""
    reads = reads_in(op)
    return all(
        (inner.pure or bool(inner.regions) or inner.terminator or inner in reads)
        and not isinstance(inner, gpu.SubgroupId)
        for inner in op.walk()
    )
