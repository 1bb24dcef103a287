"""dce: what nobody needs is not computed.

Level: tt to intrinsic. Takes any program and changes it in place. Liveness starts at the effects and follows operands;
a value that a loop only carries to compute itself is dead, as are the matching results of branches. Guarantees: every
effect stays, in its order; a `scf.while` stays because it may never end, with all that it carries.
"""

from __future__ import annotations

from mltriton.analysis.effects import is_needed
from mltriton.dialects import scf, ttg
from mltriton.dialects.scf_carried import keep_for, keep_if
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, OpResult, Value
from mltriton.ir.passes import Pass


class DeadCode(Pass):
    """Remove operations and carried values that nobody needs."""

    name = "dce"

    def run(self, module: Module) -> Module:
        for function in module.body.block.ops:
            live = _Liveness(function)
            for region in function.regions:
                _sweep(region.block, live)
        return module


class _Liveness:
    """The live operations and values of a function."""

    def __init__(self, function: Operation) -> None:
        self.ops: set[Operation] = {function}
        self.values: set[Value] = set()
        self.pending: list[Value] = []
        for block in function.blocks:
            self._roots(block)
            self._mark_operands(block.terminator)
        while self.pending:
            self._reach(self.pending.pop())

    def _roots(self, block: Block) -> None:
        for op in block.ops:
            if op.terminator:
                self.ops.add(op)
            elif is_needed(op):
                self._mark_op(op)
                for inner in op.blocks:
                    self._roots(inner)

    def _mark_op(self, op: Operation) -> None:
        """An operation is needed: so is what it takes, but values handed on by control flow only where they arrive."""
        if op in self.ops:
            return
        self.ops.add(op)
        if not op.regions:
            self._mark(*op.operands)
        elif isinstance(op, scf.For):
            self._mark(*op.operands[:3])
        elif isinstance(op, scf.While):
            self._mark(*op.operands, *op.before.block.terminator.operands, *op.after.block.terminator.operands)
        elif isinstance(op, scf.If):
            self._mark(op.condition)
        elif not isinstance(op, ttg.WarpSpecialize):
            self._mark(*op.operands)
            for block in op.blocks:
                self._keep_all(block)
        for block in op.blocks:
            self.ops.add(block.terminator)

    def _keep_all(self, block: Block) -> None:
        """A combine region stays as it is; it may use values from outside."""
        for op in block.ops:
            self.ops.add(op)
            self._mark(*op.operands)
            for inner in op.blocks:
                self._keep_all(inner)

    def _mark_operands(self, op: Operation) -> None:
        self.ops.add(op)
        self._mark(*op.operands)

    def _mark(self, *values: Value) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self.pending.append(value)

    def _reach(self, value: Value) -> None:
        """A value is needed: so is where it comes from."""
        if isinstance(value, OpResult):
            self._mark_op(value.op)
            if not value.op.regions:
                return
        self._mark(*(handed_from(value) or ()))


def _sweep(block: Block, live: _Liveness) -> None:
    """Drop dead operations, users before what they use; then the dead values of loops and branches."""
    kept: list[Operation] = []
    for op in reversed(block.ops):
        if op not in live.ops:
            op.block = None
            op.drop_operands()
            continue
        kept.append(op)
    block.ops[:] = kept[::-1]
    for op in kept:
        if not op.regions:
            continue
        if isinstance(op, scf.For):
            _sweep_loop(op, live)
        elif isinstance(op, scf.If):
            _sweep_branch(op, live)
        elif isinstance(op, scf.While | ttg.WarpSpecialize):
            for region in op.regions:
                _sweep(region.block, live)


def _sweep_loop(loop: scf.For, live: _Liveness) -> None:
    wanted = [i for i, argument in enumerate(loop.carried) if {argument, loop.results[i]} & live.values]
    if len(wanted) < len(loop.results):
        loop = keep_for(loop, wanted)
    _sweep(loop.body.block, live)


def _sweep_branch(branch: scf.If, live: _Liveness) -> None:
    wanted = [result.index for result in branch.results if result in live.values]
    if len(wanted) < len(branch.results):
        branch = keep_if(branch, wanted)
    for block in branch.blocks:
        _sweep(block, live)
