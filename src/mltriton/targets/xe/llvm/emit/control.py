"""`scf`, and the program's place in the grid.

Level: intrinsic -> llvm. A loop counts in the type of its bounds: in 32 bits it counts its iterations where a step
could pass the largest number. Block pointers that a
loop only advances travel as offsets (`moving`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mltriton.dialects import gpu, scf, tt
from mltriton.ir.operation import Block, Region
from mltriton.ir.operation import Value as IRValue
from mltriton.targets.llvm.types import I32, I64, Value, constant
from mltriton.targets.xe.llvm import calls
from mltriton.targets.xe.llvm.emit.context import Emitted, Emitter, Rules
from mltriton.targets.xe.llvm.emit.moving import Moving

AXES = ("x", "y", "z")


def _body(e: Emitter, block: Block) -> list[IRValue]:
    """Emit a block; gives the operands of its terminator."""
    for op in block.ops[:-1]:
        e.operation(op)
    return block.ops[-1].operands


class _Carried(NamedTuple):
    """What a loop carries for its `argument`: at first `start`."""

    argument: IRValue
    init: IRValue
    start: list[Value]

    def raised(self, e: Emitter, values: Sequence[Value]) -> Emitted:
        """What stands for the argument or the loop's result."""
        return e.raised(self.init, self.init.type, values)


def _for(e: Emitter, op: scf.For) -> list[Emitted]:
    f, block = e.function, op.body.block
    counter, *arguments = block.arguments
    parts = list(zip(arguments, op.inits, block.terminator.operands, strict=True))
    moving = Moving(e, parts)
    carried = [_Carried(argument, init, e.flat(init)) for argument, init, _ in parts if argument not in moving.pointers]
    first, count, step = _count(e, op)
    start = [*moving.start, *(value for part in carried for value in part.start)]
    with f.loop(first, count, step, start) as loop:
        e.put(counter, _counter(e, op, loop.index))
        _put(e, moving, carried, loop.carried)
        yielded: dict[IRValue, IRValue] = dict(zip(arguments, _body(e, block), strict=True))
        following = [part for held in carried for part in e.flat(yielded[held.argument])]
        loop.yield_(*moving.following(yielded), *following)
    _put(e, moving, carried, loop.results)
    return [e.any(argument) for argument in arguments]


def _put(e: Emitter, moving: Moving, carried: Sequence[_Carried], values: Sequence[Value]) -> None:
    """Say what stands for a loop's arguments: in an iteration, or after the loop."""
    moving.put(values[: len(moving.start)])
    values = values[len(moving.start) :]
    for part in carried:
        e.put(part.argument, part.raised(e, values[: len(part.start)]))
        values = values[len(part.start) :]


def _count(e: Emitter, op: scf.For) -> tuple[Value, Value, Value]:
    """Start, end and step of the LLVM loop, all of one type."""
    lower, upper, step = (e.get(bound) for bound in (op.lower, op.upper, op.step))
    if lower.type != I32 or _cannot_wrap(upper, step):
        return lower, upper, step
    f, one = e.function, constant(I32, 1)
    steps = f.add(f.binary("udiv", f.sub(f.sub(upper, lower), 1), step), 1)
    count = f.select(f.icmp("slt", lower, upper), steps, constant(I32, 0))
    return constant(I32, 0), count, one


def _cannot_wrap(upper: Value, step: Value) -> bool:
    """Whether a counter of i32 below `upper` stays one after a step."""
    last = int(upper.literal) if upper.literal is not None else (1 << 31) - 1
    return step.literal is not None and last + int(step.literal) - 1 < 1 << 31


def _counter(e: Emitter, op: scf.For, index: Value) -> Value:
    lower, upper, step = (e.get(bound) for bound in (op.lower, op.upper, op.step))
    if lower.type != I32 or _cannot_wrap(upper, step):
        if lower.literal is not None and step.literal is not None:
            e.affine.promise(index, _power(int(lower.literal) | int(step.literal)))
        return index
    return e.affine.add(e.affine.mul(index, step), lower)


def _power(number: int) -> int:
    return number & -number


def _if(e: Emitter, op: scf.If) -> list[Emitted]:
    yielded: list[list[IRValue]] = []

    def arm(region: Region) -> Callable[[], Sequence[Value]]:
        def build() -> Sequence[Value]:
            values = _body(e, region.block) if region.blocks and region.block.ops else []
            yielded.append(list(values))
            return [part for value in values for part in e.flat(value)]

        return build

    condition = e.get(op.condition)
    if not op.results and not (op.otherwise.blocks and len(op.otherwise.block.ops) > 1):
        with e.function.when(condition):
            arm(op.then)()
        return []
    flat = e.function.choose(condition, arm(op.then), arm(op.otherwise))
    return _raised(e, yielded[0], flat)


def _raised(e: Emitter, likes: Sequence[IRValue], flat: Sequence[Value]) -> list[Emitted]:
    made: list[Emitted] = []
    for like in likes:
        size = len(e.flat(like))
        made.append(e.raised(like, like.type, flat[:size]))
        flat = flat[size:]
    return made


def _while(e: Emitter, op: scf.While) -> list[Emitted]:
    before, after = op.before.block, op.after.block
    with e.function.repeat([part for init in op.inits for part in e.flat(init)]) as loop:
        for argument, value in zip(before.arguments, _raised(e, op.inits, loop.carried), strict=True):
            e.put(argument, value)
        condition, *passed = _body(e, before)
        results = [e.any(value) for value in passed]
        loop.leave_unless(e.get(condition))
        for argument, value in zip(after.arguments, results, strict=True):
            e.put(argument, value)
        loop.yield_(*(part for value in _body(e, after) for part in e.flat(value)))
    return results


def _program_id(e: Emitter, op: tt.GetProgramId) -> Value:
    return calls.program(e.function, AXES.index(op.axis))


def _num_programs(e: Emitter, op: tt.GetNumPrograms) -> Value:
    return calls.programs(e.function, AXES.index(op.axis))


def _subgroup_id(e: Emitter, op: gpu.SubgroupId) -> Value:
    """Known where a program is one warp."""
    if e.warps == 1:
        return constant(I64, 0)
    return e.function.cast("zext", calls.warp(e.function), I64)


def _assume(e: Emitter, op: tt.Assume) -> None:
    """A hint, of which Intel's compiler makes nothing."""


RULES: Rules = {
    tt.Assume: _assume,
    scf.For: _for,
    scf.If: _if,
    scf.While: _while,
    tt.GetProgramId: _program_id,
    tt.GetNumPrograms: _num_programs,
    gpu.SubgroupId: _subgroup_id,
}
