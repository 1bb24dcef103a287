"""`scf` and the program's coordinates.

Level: intrinsic -> llvm. Loop counters run in 64 bits whatever their type, so that no bound can overflow them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mltriton.dialects import scf, tt
from mltriton.ir.operation import Region
from mltriton.targets.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.types import I64, Value

AXES = ("x", "y", "z")


def _for(e: Emitter, op: scf.For) -> Sequence[Value]:
    f = e.function
    lower, upper, step = (f.cast("sext", e.get(bound), I64) for bound in (op.lower, op.upper, op.step))
    with f.loop(lower, upper, step, [e.get(init) for init in op.inits]) as loop:
        counter = f.cast("trunc", loop.index, e.type_of(op.counter.type))
        loop.yield_(*e.block(op.body.block, [counter, *loop.carried]))
    return loop.results


def _if(e: Emitter, op: scf.If) -> Sequence[Value]:
    def arm(region: Region) -> Callable[[], Sequence[Value]]:
        return lambda: e.block(region.block) if region.blocks and region.block.ops else []

    condition = e.get(op.condition)
    if not op.results and not (op.otherwise.blocks and len(op.otherwise.block.ops) > 1):
        with e.function.when(condition):
            arm(op.then)()
        return []
    return e.function.choose(condition, arm(op.then), arm(op.otherwise))


def _while(e: Emitter, op: scf.While) -> Sequence[Value]:
    with e.function.repeat([e.get(init) for init in op.inits]) as loop:
        condition, *passed = e.block(op.before.block, loop.carried)
        loop.leave_unless(condition)
        loop.yield_(*e.block(op.after.block, passed))
    return passed


def _program_id(e: Emitter, op: tt.GetProgramId) -> Value:
    return e.program[AXES.index(op.axis)]


def _num_programs(e: Emitter, op: tt.GetNumPrograms) -> Value:
    return e.grid[AXES.index(op.axis)]


RULES: Rules = {
    scf.For: _for,
    scf.If: _if,
    scf.While: _while,
    tt.GetProgramId: _program_id,
    tt.GetNumPrograms: _num_programs,
}
