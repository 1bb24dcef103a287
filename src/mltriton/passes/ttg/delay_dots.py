"""delay-dots: of two dots in a loop of which the second takes what the first gives, the second runs an iteration later.

Level: ttg, after `pipeline-loads`. Takes loops such as attention's: a dot that goes on by itself
(`DotSize.asynchronous`), arithmetic on its result, and another such dot that multiplies it and adds to a value that the
loop carries. Changes them in place: an iteration starts its first dot, then the second dot of the iteration before, and
computes on the result of the one while the other goes on; the last second dot stands behind the loop. Guarantees: sums
keep their order; the first iteration adds products of 0 and its own operand. Where a producer fills slots (`rings.py`)
the second dot's slot is given back an iteration later. Loops whose buffers are neither in slots nor kept for an
iteration more (`KEPT`) stay as they are. Source: Shah et al., "FlashAttention-3", arXiv:2407.08608, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, scf, tt, ttg, ttng
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, BlockArgument, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I1, FloatType, TensorType
from mltriton.passes.ttg.copy_blocks import window_at
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
            pair = pair_of(loop, spec)
            place = pair.second.b.defining_op if pair is not None else None
            if pair is not None and isinstance(place, ttg.MemDescSubview):
                slot = _slot(loop, place)
                if slot is not None:
                    _delay_slot(loop, pair, place, slot)
                elif KEPT in loop.attributes:
                    _delay(loop, pair, place)
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


def _delay(loop: scf.For, pair: Pair, place: ttg.MemDescSubview) -> None:
    body, second, slot, behind = loop.body.block, pair.second, place.offsets[0], _behind_copies(loop)
    if not isinstance(slot, BlockArgument) or slot.owner is not body or behind is None:
        return
    entry = Builder().before(loop)
    entry.loc = second.loc
    zero = entry.emit(arith.Constant, value=DenseAttr((0.0,), cast(TensorType, second.a.type)))
    _start_early(loop, pair.first)
    left, left_behind = carry_also(loop, zero)
    number, number_behind = carry_also(loop, loop.inits[body.arguments.index(slot) - 1])
    sums, result = loop.carried[pair.number], loop.results[pair.number]
    inside, outside = list(sums.users), list(result.users)
    early = Builder().before(body.ops[body.position(pair.first) + 1])
    _replace(sums, inside, _second(early, pair, place, (left, number, sums)))
    last = _second(behind, pair, place, (left_behind, number_behind, result))
    _replace(result, outside, _if_any(behind, loop, last, result))
    behind.create(ttg.AsyncWait, [], num=0)  # Other blocks may take the buffers' place then.
    body.terminator.set_operand(pair.number, second.c)
    yield_also(body, [second.a, slot])
    second.erase()
    _come_late(body, body.terminator.operands[-2])


class Slot(NamedTuple):
    """Where an iteration waits for the slot of its second right operand, and where it gives it back."""

    wait: ttng.WaitBarrier
    release: ttng.ArriveBarrier


def _slot(loop: scf.For, place: ttg.MemDescSubview) -> Slot | None:
    """The slot that a block lies in; None where it is in none, or its number is not only the loop's."""
    number, body = place.offsets[0], loop.body.block
    here = [op for op in body.ops if isinstance(op, ttng.WaitBarrier | ttng.ArriveBarrier)]
    of_slot = [op for op in here if _number(op.barrier) is number]
    waits = [op for op in of_slot if isinstance(op, ttng.WaitBarrier)]
    releases = [op for op in of_slot if isinstance(op, ttng.ArriveBarrier) and op.pred is None]
    if len(waits) != 1 or len(releases) != 1 or not {number, waits[0].phase} <= set(loop.carried):
        return None
    return Slot(waits[0], releases[0])


def _number(barrier: Value) -> Value | None:
    window = barrier.defining_op
    return window.offsets[0] if isinstance(window, ttg.MemDescSubview) else None


def _delay_slot(loop: scf.For, pair: Pair, place: ttg.MemDescSubview, slot: Slot) -> None:
    """The slot's number and parity wait for the first iteration to be over, as its second dot does."""
    body, second, entry = loop.body.block, pair.second, Builder().before(loop)
    end, early = Builder().before(body.terminator), Builder().before(body.ops[body.position(pair.first) + 1])
    entry.loc = end.loc = early.loc = second.loc
    zero = entry.emit(arith.Constant, value=DenseAttr((0.0,), cast(TensorType, second.a.type)))
    left, left_behind = carry_also(loop, zero)
    sums, number, parity = loop.carried[pair.number], place.offsets[0], slot.wait.phase
    inside = list(sums.users)
    _replace(sums, inside, _second_of_slot(early, pair, place, slot, (left, number, parity, sums)))
    body.terminator.set_operand(pair.number, second.c)
    later = end.emit(arith.CmpI, loop.counter, loop.lower, predicate="ne")
    _release(end, slot, number, later)
    for state in (number, parity):
        index = loop.carried.index(cast(BlockArgument, state))
        following = body.terminator.operands[index]
        body.terminator.set_operand(index, end.emit(arith.Select, later, following, state))
    yield_also(body, [second.a])
    _last_of_slot(loop, pair, place, slot, left_behind, (number, parity))
    for op in (second, slot.release, slot.wait):
        op.erase()
    _come_late(body, body.terminator.operands[-1])


def _second_of_slot(
    builder: Builder, pair: Pair, place: ttg.MemDescSubview, slot: Slot, values: tuple[Value, Value, Value, Value]
) -> Value:
    """The second dot of the iteration before, whose slot has surely come."""
    left, number, parity, sums = values
    full = cast(ttg.MemDescSubview, slot.wait.barrier.defining_op)
    builder.create(ttng.WaitBarrier, window_at(builder, full.memory, number), parity)
    return _second(builder, pair, place, (left, number, sums))


def _release(builder: Builder, slot: Slot, number: Value, pred: Value | None) -> None:
    empty = cast(ttg.MemDescSubview, slot.release.barrier.defining_op)
    window = window_at(builder, empty.memory, number)
    builder.create(ttng.ArriveBarrier, window, pred, count=slot.release.count)


def _last_of_slot(
    loop: scf.For, pair: Pair, place: ttg.MemDescSubview, slot: Slot, left: Value, states: tuple[Value, Value]
) -> None:
    """The last second dot, where the loop has any iteration, and what its slot's number and parity are behind it."""
    block = loop.block
    assert block is not None
    ends = [loop.body.block.terminator.operands[loop.carried.index(cast(BlockArgument, state))] for state in states]
    results = [loop.results[pair.number], *(loop.results[loop.carried.index(cast(BlockArgument, s))] for s in states)]
    users = [list(result.users) for result in results]
    builder = Builder().before(block.ops[block.position(loop) + 1])
    builder.loc = pair.second.loc
    any_ = builder.emit(arith.CmpI, loop.lower, loop.upper, predicate="slt")
    then, otherwise = Block(), Block()
    with builder.inside(then):
        sums, number, parity = results
        made = _second_of_slot(builder, pair, place, slot, (left, number, parity, sums))
        _release(builder, slot, number, None)
        following = _following(builder, ends, dict(zip(states, (number, parity), strict=True)))
        builder.create(scf.Yield, [made, *following], result_types=[])
    with builder.inside(otherwise):
        builder.create(scf.Yield, results, result_types=[])
    types, regions = [result.type for result in results], [Region([then]), Region([otherwise])]
    branch = builder.create(scf.If, any_, result_types=types, regions=regions)
    for result, of_result, made in zip(results, users, branch.results, strict=True):
        _replace(result, of_result, made)


def _following(builder: Builder, ends: Sequence[Value], values: dict[Value, Value]) -> list[Value]:
    """The next number and parity, computed as in the loop, where it is a later iteration."""
    chosen = [cast(arith.Select, end.defining_op).true_value for end in ends]
    pending, ops = list(chosen), dict[Operation, None]()
    while pending:
        op = pending.pop().defining_op
        if op is not None and op.block is cast(Operation, ends[0].defining_op).block:
            ops.pop(op, None)  # What others need comes before them.
            ops[op] = None
            pending += op.operands
    for op in reversed(ops):
        builder.insert(op.clone(values))
    return [values[value] for value in chosen]


def _if_any(builder: Builder, loop: scf.For, last: Value, before: Value) -> Value:
    """The last sum, or what was there before where the loop has no iteration: nothing was copied then."""
    block = cast(TensorType, before.type)
    any_ = builder.emit(arith.CmpI, loop.lower, loop.upper, predicate="slt")
    mask = builder.emit(tt.Splat, any_, result_types=[block.with_element(I1)])
    return builder.emit(arith.Select, mask, last, before)


def _come_late(body: Block, value: Value) -> None:
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


def _replace(old: Value, users: Sequence[Operation], new: Value) -> None:
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


def _second(builder: Builder, pair: Pair, place: ttg.MemDescSubview, values: tuple[Value, Value, Value]) -> Value:
    """The second dot of an iteration before: of a left operand, the number of a buffer, and sums."""
    left, slot, sums = values
    second, builder.loc = pair.second, pair.second.loc
    zeros = [arith.integer(builder, 0) for _ in place.offsets[1:]]
    right = builder.emit(ttg.MemDescSubview, place.memory, [slot, *zeros], result_types=[place.result.type])
    made = tt.Dot([left, right, sums], [second.result.type], second.attributes, (), second.loc, second.segments)
    result = builder.insert(made).result
    result.hint = second.result.hint
    return result
