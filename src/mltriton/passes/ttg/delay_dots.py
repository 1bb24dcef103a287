"""delay-dots: of two dots in a loop of which the second takes what the first gives, the second runs an iteration later.

Level: ttg, after `pipeline-loads`. Takes loops such as attention's: a dot that goes on by itself
(`DotSize.asynchronous`), arithmetic on its result, and another such dot that multiplies it and adds to a value that the
loop carries. Changes them in place: an iteration starts its first dot, then the second dot of the iteration before, and
computes on the result of the one while the other goes on; the last second dot stands behind the loop. Guarantees: sums
keep their order; the first iteration adds products of 0 and its own operand. Loops whose buffers are not kept for an
iteration more (`KEPT`) stay as they are; `delay-slots` is for those that a producer fills. Source: Shah et al.,
"FlashAttention-3", arXiv:2407.08608, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, scf, tt, ttg
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, BlockArgument, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I1, FloatType, TensorType
from mltriton.passes.ttg.start_dots import KEPT, is_asynchronous
from mltriton.records import NamedTuple
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of


class Pair(NamedTuple):
    """Two dots of a loop, and the number of the carried value to which the second adds."""

    first: tt.Dot
    second: tt.Dot
    number: int


class DelayDots(Pass):
    """Let dots that follow from others run an iteration later."""

    name = "delay-dots"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        for loop in [op for op in module.walk() if isinstance(op, scf.For)]:
            pair = pair_of(loop, spec) if KEPT in loop.attributes else None
            if pair is not None and isinstance(pair.second.b.defining_op, ttg.MemDescSubview):
                _delay(loop, pair, pair.second.b.defining_op)
        return module


def pair_of(loop: scf.For, spec: TargetSpec) -> Pair | None:
    """The two dots; None where a loop has not just these."""
    dots = [op for op in loop.walk() if isinstance(op, tt.Dot)]
    if len(dots) != 2 or any(dot.parent_op is not loop or not is_asynchronous(dot, spec) for dot in dots):
        return None
    first, second = dots
    yielded = loop.body.block.terminator
    if list(second.result.users) != [yielded] or yielded.operands.count(second.result) != 1:
        return None
    number = yielded.operands.index(second.result)
    carried = loop.carried[number]
    if not isinstance(second.a.type, TensorType) or not isinstance(second.a.type.element, FloatType):
        return None
    behind = _needed(second.a, loop)
    fits = first in behind and carried not in behind and carried in _needed(second.c, loop)
    return Pair(first, second, number) if fits and carried not in _needed(first.result, loop) else None


def chained_values(loop: scf.For, spec: TargetSpec) -> list[Value]:
    """The results of a loop's dots, and the operands that are computed of another's; nothing where there are none."""
    dots = [op for op in loop.body.block.ops if isinstance(op, tt.Dot) and is_asynchronous(op, spec)]
    given = set[Operation | Value](dots)
    chained = [value for dot in dots for value in (dot.a, dot.b) if given & _needed(value, loop)]
    return [*(dot.result for dot in dots), *chained] if chained else []


def _needed(value: Value, loop: scf.For) -> set[Operation | Value]:
    """The operations of the body, and carried values of this iteration, from which a value is computed."""
    body, found, pending = loop.body.block, set[Operation | Value](), [value]
    while pending:
        value = pending.pop()
        op = value.defining_op
        if op is None:
            found.add(value)
        elif op.block is body and op not in found:
            found.add(op)
            pending += [operand for inner in op.walk() for operand in inner.operands]
    return found


def _delay(loop: scf.For, pair: Pair, window: ttg.MemDescSubview) -> None:
    body, second, slot, behind = loop.body.block, pair.second, window.offsets[0], _behind_copies(loop)
    if not isinstance(slot, BlockArgument) or slot.owner is not body or behind is None:
        return
    entry = Builder().before(loop)
    entry.loc = second.loc
    zero = arith.filled(entry, 0.0, cast(TensorType, second.a.type))
    _start_early(loop, pair.first)
    left, left_behind = carry_also(loop, zero)
    number, number_behind = carry_also(loop, loop.inits[body.arguments.index(slot) - 1])
    sums, result = loop.carried[pair.number], loop.results[pair.number]
    inside, outside = list(sums.users), list(result.users)
    early = Builder().before(body.ops[body.position(pair.first) + 1])
    replace_in(sums, inside, second_dot(early, pair, window, (left, number, sums)))
    last = second_dot(behind, pair, window, (left_behind, number_behind, result))
    replace_in(result, outside, _if_any(behind, loop, last, result))
    behind.create(ttg.AsyncWait, [], num=0)  # Other blocks may take the buffers' place then.
    body.terminator.set_operand(pair.number, second.c)
    yield_also(body, [second.a, slot])
    second.erase()
    come_late(body, body.terminator.operands[-2])


def _if_any(builder: Builder, loop: scf.For, last: Value, before: Value) -> Value:
    """The last sum, or what was there before where the loop has no iteration: nothing was copied then."""
    block = cast(TensorType, before.type)
    any_ = builder.emit(arith.CmpI, loop.lower, loop.upper, predicate="slt")
    mask = builder.emit(tt.Splat, any_, result_types=[block.with_element(I1)])
    return builder.emit(arith.Select, mask, last, before)


def come_late(body: Block, value: Value) -> None:
    """What only converts the next left operand stands at the end: the one before is multiplied until then."""
    end = body.terminator
    while (op := value.defining_op) is not None and op.block is body and list(value.users) == [end]:
        if not op.pure or op.regions or len(op.operands) != 1:
            return
        body.ops.remove(op)
        body.insert_before(end, op)
        end, value = op, op.operands[0]


def _behind_copies(loop: scf.For) -> Builder | None:
    """Behind the wait for all copies of a loop."""
    block = loop.block
    assert block is not None
    behind = block.ops[block.position(loop) + 1 :]
    waits = (number for number, op in enumerate(behind) if isinstance(op, ttg.AsyncWait))
    number = next(waits, None)
    return None if number is None else Builder().before(behind[number + 1])


def replace_in(old: Value, users: Sequence[Operation], new: Value) -> None:
    """Let some users take another value."""
    for user in users:
        for index, operand in enumerate(user.operands):
            if operand is old:
                user.set_operand(index, new)


def _start_early(loop: scf.For, first: tt.Dot) -> None:
    """The first dot comes as early as what it takes, behind the wait for copies."""
    body = loop.body.block
    ops = [op for op in body.ops if op in _needed(first.result, loop)]
    wait = next((op for op in body.ops if isinstance(op, ttg.AsyncWait)), None)
    if wait is None or not all(op.pure and not op.regions for op in ops):
        return
    for op in ops:
        if body.position(op) > body.position(wait):
            body.ops.remove(op)
            body.insert_after(wait, op)
            wait = op


def second_dot(builder: Builder, pair: Pair, window: ttg.MemDescSubview, values: tuple[Value, Value, Value]) -> Value:
    """The second dot of an iteration before: of a left operand, the number of a buffer, and sums."""
    left, slot, sums = values
    second, builder.loc = pair.second, pair.second.loc
    zeros = [arith.integer(builder, 0) for _ in window.offsets[1:]]
    right = builder.emit(ttg.MemDescSubview, window.memory, [slot, *zeros], result_types=[window.result.type])
    made = tt.Dot([left, right, sums], [second.result.type], second.attributes, (), second.loc, second.segments)
    result = builder.insert(made).result
    result.hint = second.result.hint
    return result
