"""delay-slots: of two dots whose operands a producer fills into slots, the second runs an iteration later.

Level: ttg, after `specialize-warps`. Takes the loops that `delay-dots` is for, where the second dot's right operand
lies in a slot (`rings.py`), and changes them in place: an iteration starts its first dot, waits for the slot of the
iteration before, and starts that one's second dot; the slot is given back when this is done, and number and parity move
on an iteration later, too. The first iteration, which has no second dot, stands in front of the loop. Where the next
loop goes on with the same sums and slots, it begins with what this one has left; else the last second dot stands behind
the loop, if it had any iteration. Guarantees: sums keep their order; where only a later one of such loops has an
iteration, its first adds products of 0 and its own operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from mltriton.dialects import arith, scf, ttg, ttng
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, BlockArgument, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType
from mltriton.passes.ttg.copy_blocks import window_at
from mltriton.passes.ttg.delay_dots import Pair, come_late, pair_of, replace_in, second_dot
from mltriton.passes.ttg.release_slots import reads_of
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of


class DelaySlots(Pass):
    """Let dots that follow from others run an iteration later, and give back their slots then."""

    name = "delay-slots"

    def run(self, module: Module) -> Module:
        left: list[_Delayed] = []
        for found in list(_delayable(module, spec_of(module))):
            before = next((other for other in left if found.follows(other)), None)
            found.write(before)
            left = [*(other for other in left if other is not before), found]
        for found in left:
            found.finish()
        return module


@dataclass(eq=False)
class _Delayed:
    """A loop, its dots, the second one's window, and where an iteration waits for that slot and gives it back; once it
    is written, the left operand that it leaves and whether there is one.
    """

    loop: scf.For
    pair: Pair
    window: ttg.MemDescSubview
    wait: ttng.WaitBarrier
    release: ttng.ArriveBarrier
    left: Value | None = None
    any: Value | None = None
    following: Sequence[Value] = ()  # the next number and parity

    def __post_init__(self) -> None:
        self.states = cast(BlockArgument, self.window.offsets[0]), cast(BlockArgument, self.wait.phase)
        self.full, self.empty = _barriers(self.wait), _barriers(self.release)
        self.kind = self.window.memory, self.pair.second.a.type

    @property
    def carried(self) -> list[int]:
        """The numbers of the sums, and of the slot's number and parity, among what the loop carries."""
        return [self.pair.number, *(state.index - 1 for state in self.states)]

    def follows(self, other: _Delayed) -> bool:
        """Whether the loop begins with what another has left, which nobody else takes."""
        ends = [other.loop.results[number] for number in other.carried]
        same = [self.loop.inits[number] for number in self.carried] == ends
        alone = list(ends[0].users) == [self.loop] and self.loop.operands.count(ends[0]) == 1
        return same and alone and self.kind == other.kind and self.loop.block is other.loop.block

    def write(self, before: _Delayed | None) -> None:
        """Change the loop."""
        body, second, (number, parity) = self.loop.body.block, self.pair.second, self.states
        end, early = Builder().before(body.terminator), Builder().before(body.ops[body.position(self.pair.first) + 1])
        entry = Builder().before(self.loop)
        entry.loc = end.loc = early.loc = second.loc
        ran = entry.emit(arith.CmpI, self.loop.lower, self.loop.upper, predicate="slt")
        self.any = ran if before is None else entry.emit(arith.OrI, ran, cast(Value, before.any))
        first = cast(Value, before.left) if before is not None else self._peel(entry, ran)
        left, self.left = carry_also(self.loop, first)
        sums = self.loop.carried[self.pair.number]
        inside = list(sums.users)
        replace_in(sums, inside, self._second(early, (left, number, parity, sums)))
        body.terminator.set_operand(self.pair.number, second.c)
        self.following = [body.terminator.operands[state.index - 1] for state in self.states]
        if before is None:
            self._give_back(end, number, None)
        else:
            later = end.emit(arith.CmpI, self.loop.counter, self.loop.lower, predicate="ne")
            later = end.emit(arith.OrI, later, cast(Value, before.any))
            self._give_back(end, number, later)
            for state, following in zip(self.states, self.following, strict=True):
                body.terminator.set_operand(state.index - 1, end.emit(arith.Select, later, following, state))
        yield_also(body, [second.a])
        for op in (second, self.release, self.wait):
            op.erase()
        come_late(body, body.terminator.operands[-1])

    def _peel(self, entry: Builder, ran: Value) -> Value:
        """The first iteration, if there is one, without its second dot in front of the loop, which begins with the
        next; the left operand that it leaves.
        """
        loop, second = self.loop, self.pair.second
        ends = [*loop.body.block.terminator.operands, second.a]
        ends[self.pair.number] = second.c
        for state in self.states:
            ends[state.index - 1] = state
        values: dict[Value, Value] = dict(zip(loop.body.block.arguments, [loop.lower, *loop.inits], strict=True))
        then, otherwise = Block(), Block()
        with entry.inside(then):
            for op in loop.body.block.ops[:-1]:
                if op not in (second, self.release, self.wait):
                    entry.insert(op.clone(values))
            entry.create(scf.Yield, [values.get(end, end) for end in ends], result_types=[])
        with entry.inside(otherwise):
            nothing = arith.filled(entry, 0.0, cast(TensorType, second.a.type))
            entry.create(scf.Yield, [*loop.inits, nothing], result_types=[])
        types, regions = [end.type for end in ends], [Region([then]), Region([otherwise])]
        *inits, left = entry.create(scf.If, ran, result_types=types, regions=regions).results
        start = entry.emit(arith.AddI, loop.lower, loop.step)
        loop.set_operands([start, loop.upper, loop.step, *inits], (1, 1, 1, len(inits)))
        come_late(then, then.terminator.operands[-1])
        return left

    def finish(self) -> None:
        """The last second dot behind the loop."""
        results: list[Value] = [self.loop.results[number] for number in self.carried]
        users = [list(result.users) for result in results]
        builder = self._behind()
        then, otherwise = Block(), Block()
        with builder.inside(then):
            sums, number, parity = results
            made = self._second(builder, (cast(Value, self.left), number, parity, sums))
            self._give_back(builder, number, None)
            builder.create(scf.Yield, [made, *self._following(builder, (number, parity))], result_types=[])
        with builder.inside(otherwise):
            builder.create(scf.Yield, results, result_types=[])
        types, regions = [result.type for result in results], [Region([then]), Region([otherwise])]
        branch = builder.create(scf.If, cast(Value, self.any), result_types=types, regions=regions)
        for result, of_result, made in zip(results, users, branch.results, strict=True):
            replace_in(result, of_result, made)

    def _behind(self) -> Builder:
        """Inserts behind the loop."""
        block = self.loop.block
        assert block is not None
        builder = Builder().before(block.ops[block.position(self.loop) + 1])
        builder.loc = self.pair.second.loc
        return builder

    def _second(self, builder: Builder, values: tuple[Value, Value, Value, Value]) -> Value:
        """The second dot of the iteration before, whose slot has surely come."""
        left, number, parity, sums = values
        builder.create(ttng.WaitBarrier, window_at(builder, self.full, number), parity)
        return second_dot(builder, self.pair, self.window, (left, number, sums))

    def _give_back(self, builder: Builder, number: Value, pred: Value | None) -> None:
        window = window_at(builder, self.empty, number)
        builder.create(ttng.ArriveBarrier, window, pred, count=self.release.count)

    def _following(self, builder: Builder, now: Sequence[Value]) -> list[Value]:
        """The next number and parity, computed as in the loop where it is a later iteration."""
        values: dict[Value, Value] = dict(zip(self.states, now, strict=True))
        pending, ops = list(self.following), dict[Operation, None]()
        while pending:
            op = pending.pop().defining_op
            if op is not None and op.block is self.loop.body.block:
                ops.pop(op, None)  # What others need comes before them.
                ops[op] = None
                pending += op.operands
        for op in reversed(ops):
            builder.insert(op.clone(values))
        return [values[value] for value in self.following]


def _delayable(module: Module, spec: TargetSpec) -> Iterator[_Delayed]:
    """The loops whose second dot alone takes a slot that has a number, a wait and a release of its own."""
    for loop in [op for op in module.walk() if isinstance(op, scf.For)]:
        pair = pair_of(loop, spec)
        window = pair.second.b.defining_op if pair is not None else None
        if pair is None or not isinstance(window, ttg.MemDescSubview):
            continue
        number = window.offsets[0]
        of_slot = [op for op in loop.body.block.ops if _number(op) is number]
        waits = [op for op in of_slot if isinstance(op, ttng.WaitBarrier)]
        releases = [op for op in of_slot if isinstance(op, ttng.ArriveBarrier) and op.pred is None]
        alone = reads_of(number) == [pair.second]
        if alone and len(waits) == len(releases) == 1 and {number, waits[0].phase} <= set(loop.carried):
            yield _Delayed(loop, pair, window, waits[0], releases[0])


def _barriers(op: ttng.WaitBarrier | ttng.ArriveBarrier) -> Value:
    """The barriers of all slots."""
    return cast(ttg.MemDescSubview, op.barrier.defining_op).memory


def _number(op: Operation) -> Value | None:
    """The number of the slot whose barrier an operation is about."""
    window = op.barrier.defining_op if isinstance(op, ttng.WaitBarrier | ttng.ArriveBarrier) else None
    return window.offsets[0] if isinstance(window, ttg.MemDescSubview) else None
