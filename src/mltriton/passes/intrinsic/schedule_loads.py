"""schedule-loads: what is loaded is alive no longer than registers allow.

Level: intrinsic, targets whose blocks live in registers. Takes a program and changes the order of operations, nothing
else. Where everything that is alive at once fits into the registers that a warp may have (`analysis/registers.py`),
loads stay early, as the source has them. Otherwise loads, and what is made of them element by element or by taking
pieces, move down to the dots that use them, and the dots of one multiplication are taken load by load: those that need
nothing new first, neighbours on different accumulators. One set of loads stays ahead where that fits. What is added to
results is loaded block by block. Where all this is not enough, loops load again what they multiply and never change
(`reloads.py`). Guarantees: a load crosses no operation that may write memory or wait, but for prefetches, and for
barriers and writes of shared memory if it is a block's that the function never writes; the sums of a dot keep their
order, and what is made of a dot's result comes after it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from mltriton.analysis.aliasing import GLOBAL_WRITES, may_alias, waits_for_programs, writes_in
from mltriton.analysis.block_io import is_block_load
from mltriton.analysis.effects import writes_memory
from mltriton.analysis.registers import RegisterEstimate, choose_mode
from mltriton.dialects import tt, ttg, ttig
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType
from mltriton.passes.intrinsic.reloads import Reloads
from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of

LOADS = (tt.Load, tt.DescriptorLoad, ttg.LocalLoad)
# Operations that follow what they are used by: loads, their addresses, and choices of registers.
MOVABLE = (*LOADS, ttig.Extract, ttig.Glue, ttg.ConvertLayout, tt.MakeTensorPtr, ttg.MemDescSubview)


@dataclass(frozen=True)
class ScheduleLoads(Pass):
    """Put loads near the dots that use them where registers are short. `ahead`: always, so many sets of loads before
    their dots; with `reload` loops load again what they never change.
    """

    name = "schedule-loads"
    ahead: int | None = None
    reload: bool = False

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        mode = choose_mode(spec, 1 << 30, num_warps_of(module))
        if spec.storage is Storage.REGISTERS and mode is not None:
            for op in module.body.block.ops:
                if self.ahead is None:
                    _fit(op, spec, mode.registers)
                    continue
                if self.reload:
                    reloads = Reloads(op)
                    reloads.repeat()
                    reloads.finish()
                _rearrange(op, self.ahead)
        return module


def _fit(function: Operation, spec: TargetSpec, registers: int) -> None:
    """The first order that fits, else the one that needs fewest registers; loads are repeated where only that fits."""
    best = _settle(function, spec, registers, RegisterEstimate(function, spec).peak.registers)
    if best <= registers:
        return
    reloads, kept = Reloads(function), _orders(function)
    if not reloads.repeat():
        return
    if _settle(function, spec, registers, best) <= registers:
        reloads.finish()
    else:
        reloads.undo()
        _put(kept)


def _settle(function: Operation, spec: TargetSpec, registers: int, best: int) -> int:
    """Put operations in the first order that fits, else in that which needs fewest registers; gives their number, which
    is `best` in the order of now.
    """
    kept = _orders(function)
    for ahead in (1, 0):
        if best <= registers:
            break
        _rearrange(function, ahead)
        needed = RegisterEstimate(function, spec).peak.registers
        if needed < best:
            best, kept = needed, _orders(function)
    _put(kept)
    return best


def _blocks(function: Operation) -> Iterator[Block]:
    for op in function.walk():
        if not isinstance(op, tt.Reduce | tt.Scan | ttg.CrossWarpReduce | ttg.CrossWarpScan):
            yield from op.blocks


def _orders(function: Operation) -> dict[Block, list[Operation]]:
    return {block: list(block.ops) for block in _blocks(function)}


def _put(orders: dict[Block, list[Operation]]) -> None:
    for block, ops in orders.items():
        block.ops[:] = ops


def _rearrange(function: Operation, ahead: int) -> None:
    unwritten = _unwritten(function)
    for block in list(_blocks(function)):
        block.ops[:] = _Order(block, ahead, unwritten).ops


def _writes_global(op: Operation) -> bool:
    return any(isinstance(write, GLOBAL_WRITES) for write in writes_in(op))


def _unwritten(function: Operation) -> set[Operation]:
    """The loads of blocks that no operation of the function may write: they may cross barriers."""
    if waits_for_programs(function):
        return set()
    writes = writes_in(function)
    return {op for op in function.walk() if is_block_load(op) and not any(may_alias(op, write) for write in writes)}


class _Order:
    """The operations of a block in their new order: `ops`."""

    def __init__(self, block: Block, ahead: int, unwritten: set[Operation]) -> None:
        self.ahead = ahead
        self.unwritten = unwritten
        self.ops: list[Operation] = []
        self._waiting: dict[Operation, None] = {}  # movable operations that stand nowhere yet, in their old order
        dots: dict[tt.Dot, None] = {}
        for op in block.ops:
            if (isinstance(op, MOVABLE) and not writes_memory(op)) or self._follows_load(op):
                self._waiting[op] = None
            elif isinstance(op, tt.Dot) and op.pure:  # Others are groups of products, which waits count.
                if self._takes_result(op, dots):
                    self._multiply([*dots])
                    dots.clear()
                dots[op] = None
            else:
                if dots and not isinstance(op, ttig.Prefetch):
                    self._multiply([*dots])
                    dots.clear()
                self._other(op)
        assert not dots, "a block ends with its terminator"

    def _follows_load(self, op: Operation) -> bool:
        """Whether an operation works element by element on what waits: it is done where the block is used."""
        return op.elementwise and op.pure and any(value.defining_op in self._waiting for value in op.operands)

    def _takes_result(self, dot: tt.Dot, dots: Container[Operation]) -> bool:
        """Whether a dot uses what is made of the result of one of `dots`, besides adding to it."""
        added = dot.c.defining_op
        others = [value for value in dot.operands if value is not dot.c or added is None or added not in dots]
        return any(op in dots for op in self._made_of(others))

    def _made_of(self, values: Sequence[Value]) -> Iterator[Operation]:
        """The operations that give `values`, and those that what waits of them takes; later values first."""
        pending, seen = [*values], set[Operation]()
        while pending:
            op = pending.pop().defining_op
            if op is not None and op not in seen:
                seen.add(op)
                yield op
                pending.extend(reversed(op.operands) if op in self._waiting else ())

    def _other(self, op: Operation) -> None:
        """Any other operation keeps its place among its kind, after what it uses."""
        if not isinstance(op, ttig.Prefetch) and (op.terminator or writes_memory(op)):
            crossing = set[Operation]() if op.terminator or _writes_global(op) else self.unwritten
            for load in [load for load in self._waiting if isinstance(load, LOADS) and load not in crossing]:
                self._place_with_users(load)
        if op.terminator:
            for left in list(self._waiting):
                self._place(left)
        for inner in op.walk():
            self._bring(inner.operands)
        self.ops.append(op)

    def _place(self, op: Operation) -> None:
        """Put a movable operation here, after what it uses, unless it stands already."""
        if op in self._waiting:
            del self._waiting[op]
            self._bring(op.operands)
            self.ops.append(op)

    def _place_with_users(self, load: Operation) -> None:
        """Put a load here, and behind it what is made of it and of nothing else that waits."""
        self._place(load)
        for result in load.results:
            for user in list(result.users):
                if user in self._waiting and not any(value.defining_op in self._waiting for value in user.operands):
                    self._place_with_users(user)

    def _bring(self, values: Sequence[Value]) -> None:
        for value in values:
            op = value.defining_op
            if op is not None:
                self._place(op)

    def _multiply(self, dots: list[tt.Dot]) -> None:
        """Dots with nothing but loads between them, set by set of what they load."""
        sets = _sets(dots, {dot: self._loads(dot) for dot in dots})
        for loads, _ in sets[: self.ahead]:
            self._place_all(loads)
        for number, (_, part) in enumerate(sets):
            for loads, _ in sets[number + self.ahead : number + self.ahead + 1]:
                self._place_all(loads)
            for dot in part:
                self._bring(dot.operands)
                self.ops.append(dot)

    def _place_all(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            self._place(op)

    def _loads(self, dot: tt.Dot) -> tuple[Operation, ...]:
        """The loads that stand nowhere yet and that a dot needs."""
        made_of = self._made_of([dot.b, dot.a])
        return tuple(op for op in made_of if op in self._waiting and isinstance(op, LOADS))


Set = tuple[list[Operation], list[tt.Dot]]


def _sets(dots: Sequence[tt.Dot], loads: dict[tt.Dot, tuple[Operation, ...]]) -> list[Set]:
    """Sets of dots that use the same loads, each with the loads that are new to it, in an order in which few are new;
    where as few are, first the dots that go on with accumulators.
    """
    positions = {dot: position for position, dot in enumerate(dots)}
    steps: dict[tt.Dot, int] = {}
    for dot in dots:
        before = dot.c.defining_op
        steps[dot] = steps[before] + 1 if isinstance(before, tt.Dot) and before in steps else 0
    left: dict[tuple[Operation, ...], list[tt.Dot]] = {}
    for dot in sorted(dots, key=lambda dot: (steps[dot], positions[dot])):
        left.setdefault(loads[dot], []).append(dot)
    done: set[Operation] = set()
    loaded: set[Operation] = set()
    made: list[Set] = []
    while left:
        key = min(
            (key for key, part in left.items() if _is_ready(part[0], positions, done)),
            key=lambda key: (_new_bytes(key, loaded), steps[left[key][0]] == 0, positions[left[key][0]]),
        )
        part: list[tt.Dot] = []
        for dot in left[key]:
            if _is_ready(dot, positions, done):
                part.append(dot)
                done.add(dot)
        made.append(([load for load in key if load not in loaded], part))
        loaded.update(key)
        left[key] = [dot for dot in left[key] if dot not in done]
        if not left[key]:
            del left[key]
    return made


def _is_ready(dot: tt.Dot, positions: dict[tt.Dot, int], done: set[Operation]) -> bool:
    before = dot.c.defining_op
    return before in done or before not in positions


def _new_bytes(loads: Sequence[Operation], loaded: set[Operation]) -> int:
    blocks = [load.results[0].type for load in loads if load not in loaded]
    return sum(block.bytes for block in blocks if isinstance(block, TensorType))
