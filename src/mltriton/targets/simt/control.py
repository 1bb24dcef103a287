"""`scf`, and the program's coordinates in the grid.

Level: intrinsic -> llvm. A loop counts in the type of its bounds: in 32 bits it counts its iterations where a step
could pass the largest number. No block pointer crosses a loop or branch (`normalize-block-pointers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from mltriton.dialects import arith, gpu, scf, tt
from mltriton.ir.operation import Block, Region
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import IntegerType, PointerType, TensorDescType
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I32, I64, Value, constant
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Emitted, Made

AXES = ("x", "y", "z")


def _body(e: Emitter, block: Block) -> list[IRValue]:
    """Emit a block; gives the operands of its terminator. What came before it, and what does after it, varies."""
    e.shared_accesses.forget(met=False)
    e.operations(block.ops[:-1])
    e.shared_accesses.forget(met=False)
    return block.ops[-1].operands


class _Carried(NamedTuple):
    """What a loop carries for its `argument`: at first `start`. A number is a multiple of `divisor`."""

    argument: IRValue
    init: IRValue
    start: list[Value]
    divisor: int = 1

    def raised(self, e: Emitter, values: Sequence[Value]) -> Emitted:
        """What stands for the argument or the loop's result."""
        return e.raised(self.init, self.init.type, values)


def _for(e: Emitter, op: scf.For) -> list[Emitted]:
    f, block = e.function, op.body.block
    counter, *arguments = block.arguments
    parts = list(zip(arguments, op.inits, block.terminator.operands, strict=True))
    carried = [_Carried(arg, init, e.flat(init), _divisor(e, arg, init, following)) for arg, init, following in parts]
    range_ = _range(e, op)
    start = [value for part in carried for value in part.start]
    counts = (range_.first, range_.last, range_.step)
    with f.loop(*counts, start, unsigned=range_.unsigned) as loop:
        e.put(counter, _counter(e, op, loop.index, range_))
        _put(e, carried, loop.carried)
        loop.yield_(*(part for value in _body(e, block) for part in e.flat(value)))
    _put(e, carried, loop.results)
    return [e.any(argument) for argument in arguments]


def _divisor(e: Emitter, argument: IRValue, init: IRValue, following: IRValue) -> int:
    """What divides a number that a loop carries, to which each iteration adds the same; 1 for all else."""
    op = following.defining_op
    if not isinstance(init.type, IntegerType) or not isinstance(op, arith.AddI) or argument not in op.operands:
        return 1
    step = op.rhs if op.lhs is argument else op.lhs
    if step is argument or not e.ensure(step):
        return 1
    return gcd(e.affine.divisor(e.get(init)), e.affine.divisor(e.get(step)))


def _put(e: Emitter, carried: Sequence[_Carried], values: Sequence[Value]) -> None:
    """Say what stands for a loop's arguments: in an iteration, or after the loop."""
    for part in carried:
        e.put(part.argument, part.raised(e, values[: len(part.start)]))
        if part.divisor > 1:
            e.affine.promise(values[0], part.divisor)
        values = values[len(part.start) :]


class _Range(NamedTuple):
    """Start, end and step of the LLVM loop, all of one type. `counts`: it counts iterations, not the loop's own
    counter; `unsigned`: numbers are compared without a sign.
    """

    first: Value
    last: Value
    step: Value
    counts: bool = False
    unsigned: bool = False


def _range(e: Emitter, op: scf.For) -> _Range:
    lower, upper, step = (e.get(bound) for bound in (op.lower, op.upper, op.step))
    if lower.type != I32 or _cannot_wrap(upper, step):
        return _Range(lower, upper, step)
    f, zero, one = e.function, constant(I32, 0), constant(I32, 1)
    if lower.literal is not None and int(lower.literal) >= 0 and step.literal is not None:
        upper = f.select(f.icmp("slt", lower, upper), upper, lower)
        return _Range(lower, upper, step, unsigned=True)  # One step from below 2**31 wraps no number without a sign.
    steps = f.add(f.binary("udiv", f.sub(f.sub(upper, lower), 1), step), 1)
    count = f.select(f.icmp("slt", lower, upper), steps, zero)
    return _Range(zero, count, one, counts=True)


def _cannot_wrap(upper: Value, step: Value) -> bool:
    """Whether a counter of i32 below `upper` stays one after a step."""
    last = int(upper.literal) if upper.literal is not None else (1 << 31) - 1
    return step.literal is not None and last + int(step.literal) - 1 < 1 << 31


def _counter(e: Emitter, op: scf.For, index: Value, range_: _Range) -> Value:
    lower, step = (e.get(bound) for bound in (op.lower, op.step))
    if range_.counts:
        return e.affine.add(e.affine.mul(index, step), lower)
    if lower.literal is not None and step.literal is not None:
        e.affine.promise(index, _power(int(lower.literal) | int(step.literal)))
    return index


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
    made = _raised(e, yielded[0], flat)
    for value, *sources in zip(made, *yielded, strict=True):
        _promise(e, value, sources)
    return made


def _promise(e: Emitter, made: object, sources: Sequence[IRValue]) -> None:
    """What is one of several integers or pointers is a multiple of what they all are."""
    if isinstance(made, Value) and isinstance(sources[0].type, IntegerType | PointerType):
        e.affine.promise(made, gcd(*(e.affine.divisor(e.get(source)) for source in sources)))


def _raised(e: Emitter, likes: Sequence[IRValue], flat: Sequence[Value]) -> list[Emitted]:
    made: list[Emitted] = []
    for like in likes:
        size = len(e.flat(like))
        made.append(e.raised(like, like.type, flat[:size]))
        flat = flat[size:]
    return made


def _while(e: Emitter, op: scf.While) -> list[Emitted]:
    before, after = op.before.block, op.after.block
    carried = [part for init in op.inits for part in e.flat(init)]
    with e.function.repeat(carried) as loop:
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
    return e.calls.program(e.function, AXES.index(op.axis))


def _num_programs(e: Emitter, op: tt.GetNumPrograms) -> Value:
    return e.calls.programs(e.function, AXES.index(op.axis))


def _subgroup_id(e: Emitter, op: gpu.SubgroupId) -> Value:
    """Known where a program is one warp."""
    if e.warps == 1:
        return constant(I64, 0)
    return e.function.cast("zext", e.calls.warp(e.function), I64)


def _assume(e: Emitter, op: tt.Assume) -> None:
    """A hint, of which compilers below LLVM make nothing."""


def _select(e: Emitter, op: arith.Select) -> Made:
    """One of two descriptors, part by part; anything else is chosen element by element."""
    type_ = op.result.type
    if not isinstance(type_, TensorDescType):
        made = e.elementwise(op, e.element_rules[arith.Select])
        _promise(e, made, (op.true_value, op.false_value))
        return made
    condition, sides = e.get(op.condition), zip(e.flat(op.true_value), e.flat(op.false_value), strict=True)
    chosen = [e.function.select(condition, yes, no) for yes, no in sides]
    return e.raised(op.true_value, type_, chosen)


RULES: Rules = {
    arith.Select: _select,
    tt.Assume: _assume,
    scf.For: _for,
    scf.If: _if,
    scf.While: _while,
    tt.GetProgramId: _program_id,
    tt.GetNumPrograms: _num_programs,
    gpu.SubgroupId: _subgroup_id,
}
