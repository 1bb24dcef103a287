"""The machine that runs a program: programs of a grid, warps of a program, barriers.

Level: all. At `tt` and `ttg` a program runs once, on whole blocks; at `warp` and `intrinsic`, and at every level of a
warp-level kernel, once for each of its warps, every warp a generator with its own `gpu.subgroup_id`. The warps run one
after the other up to the next barrier, in an order that `Options.order` chooses; all must reach the same one, in a
`ttg.warp_specialize` all of the program's own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TextIO

from mltriton.analysis.written_arguments import written_parameters
from mltriton.dialects import tile, tt, ttg, ttig, ttng
from mltriton.executor.blocks import TensorView
from mltriton.executor.clocks import Clocks
from mltriton.executor.code import Code, Run
from mltriton.executor.engine import Engine
from mltriton.executor.faults import BarrierDivergence, Fault, location_of
from mltriton.executor.races import Watch
from mltriton.executor.segments import POISON, Memory, Segment
from mltriton.executor.shared import AsyncCopies, SharedMemory
from mltriton.executor.values import Array
from mltriton.ir.attributes import integer_in
from mltriton.ir.module import Module, is_warp_level, level_of
from mltriton.ir.operation import Operation
from mltriton.targets.limits import lanes_matter

Coordinate = tuple[int, int, int]
Order = Literal["forward", "backward", "shuffled"]


@dataclass(frozen=True)
class Options:
    """What the executor checks, beyond bounds and alignment, and how it runs.

    `uninitialised`: a read of shared or scratch memory that nothing has written is an error (it gives NaN or -1
    otherwise); `races`: two warps of a program touching one element of shared or global memory without a barrier
    between, one of them to write, is an error; `assumptions`: a false `tl.assume` is an error;
    `order`: how the warps of a program take turns, and `seed` its shuffling; `output`: where `tt.print` writes
    (standard output when None).
    """

    uninitialised: bool = False
    races: bool = True
    assumptions: bool = True
    order: Order = "forward"
    seed: int = 0
    output: TextIO | None = None


@dataclass
class Program:
    """One program instance: its coordinates, its shared memory, and how many barriers its warps have passed. `own` of
    its warps share its blocks.
    """

    at: Coordinate
    grid: Coordinate
    shared: SharedMemory
    warps: int = 1
    own: int = 1
    epoch: int = 0
    meetings: dict[int, list[list[Array]]] = field(default_factory=dict[int, "list[list[Array]]"])

    def meeting(self) -> list[list[Array]]:
        """What the warps, by id, bring to the barrier that they reach next."""
        if self.epoch not in self.meetings:
            self.meetings.pop(self.epoch - 2, None)  # Nobody looks at it any more.
            self.meetings[self.epoch] = [[] for _ in range(self.warps)]
        return self.meetings[self.epoch]


@dataclass
class Warp:
    """One warp of a program: what operations see of the machine. `op` is the operation that it runs."""

    id: int
    instance: Program
    memory: Memory
    scratch: Segment | None
    options: Options
    copies: AsyncCopies = field(default_factory=AsyncCopies)
    products: AsyncCopies = field(default_factory=AsyncCopies)
    op: Operation | None = None

    @property
    def program(self) -> Coordinate:
        """The coordinates of the program instance."""
        return self.instance.at


class Machine:
    """Runs programs of one launch. `code` is prepared once; the memory stays from program to program."""

    def __init__(self, module: Module, code: Code, memory: Memory, grid: Coordinate, options: Options) -> None:
        self.code = code
        self.memory = memory
        self.grid = grid
        self.options = options
        self.own, self.warps = warps_of(module)
        self.is_warp_level = is_warp_level(module)
        is_distributed = level_of(module) in ("warp", "intrinsic") and not self.is_warp_level
        self.has_lanes = is_distributed and lanes_matter(module)
        self.epoch = 0
        self.random = random.Random(options.seed)
        size = scratch_bytes(module)
        track = options.uninitialised
        self.scratch = [
            memory.scratch(f"scratch of warp {w}", size, track=track) if size else None for w in range(self.warps)
        ]

    def watch(self, function: tt.Func, arguments: Sequence[Array]) -> None:
        """Look for races in the arguments that the function writes."""
        if self.options.races and (self.warps > 1 or self.has_lanes):
            bases = [_base(arguments[position]) for position in written_parameters(function)]
            self.memory.watch = Watch(frozenset(self.memory.segments_at(bases)), self.has_lanes)

    def run(self, name: str, arguments: Sequence[Array], at: Coordinate) -> None:
        """Run one program instance of the function."""
        function = self.code.function(name)
        body = self.code.block(function.body.block)
        races = self.options.races and self.warps > 1
        engine = Engine(Clocks(self.warps + 1))  # At `ttg` the other side of a program has a clock, too.
        shared = SharedMemory(races, self.options.uninitialised, engine, strict=self.is_warp_level)
        program = Program(at, self.grid, shared, self.warps, self.own, self.epoch)
        warps: list[Warp] = []
        running: dict[int, Run] = {}
        for w, scratch in enumerate(self.scratch):
            _forget(scratch)
            warps.append(Warp(w, program, self.memory, scratch, self.options))
            running[w] = body.run(warps[w], {}, arguments)
        while running:
            waiting, blocked = self._to_barrier(program, warps, running)
            shared.settle(at)
            _require_meeting(waiting, _expected(waiting, running, self.own), at)
            running = {w: running[w] for w in (*waiting, *blocked)}
            if waiting and not _orders_nothing(waiting):
                program.epoch += 1
                engine.clocks.meet(list(waiting))
        self.epoch = program.epoch + 1  # Programs follow each other.
        shared.engine.check_end()
        self.memory.flights.end()

    def _to_barrier(
        self, program: Program, warps: list[Warp], running: dict[int, Run]
    ) -> tuple[dict[int, Operation], dict[int, Operation]]:
        """Run all warps to the next barrier of the program: who waits there, and who for a barrier in shared memory. A
        warp that waits for another goes on when that has come further; BarrierDivergence where none can.
        """
        waiting: dict[int, Operation] = {}
        left, engine = list(running), program.shared.engine
        while left:
            blocked: dict[int, Operation] = {}
            before = engine.events
            for w in self._order(left):
                stop = self._advance(warps[w], running[w])
                if isinstance(stop, ttng.WaitBarrier):
                    blocked[w] = stop
                elif stop is not None:
                    waiting[w] = stop
            if len(blocked) == len(left) and engine.events == before:
                if not waiting or min(blocked) < self.own:
                    raise stuck(blocked, program.at)
                return waiting, blocked
            left = list(blocked)
        return waiting, {}

    def _advance(self, warp: Warp, run: Run) -> Operation | None:
        """Run a warp to its next barrier, which is returned, or to its end."""
        if self.memory.watch is not None:
            self.memory.watch.warp = warp
        return next(run, None)

    def _order(self, warps: list[int]) -> list[int]:
        if self.options.order == "shuffled":
            self.random.shuffle(warps)
        return warps[::-1] if self.options.order == "backward" else warps


def _expected(waiting: dict[int, Operation], running: dict[int, Run], own: int) -> dict[int, Run]:
    """Who must come to a barrier: on the default side of a `ttg.warp_specialize` the program's own warps."""
    if any(op.ancestor(ttg.WarpSpecialize) is not None for op in waiting.values()):
        return {w: run for w, run in running.items() if w < own}
    return running


def _orders_nothing(waiting: dict[int, Operation]) -> bool:
    """Whether warps met only to stay together: accesses before and after are as unordered as if they had not."""
    return any(isinstance(op, ttig.BarrierWait) for op in waiting.values())


def _base(argument: Array) -> int:
    """The address that a pointer or descriptor starts at."""
    return argument.base if isinstance(argument, TensorView) else int(argument)


def _require_meeting(waiting: dict[int, Operation], running: dict[int, Run], at: Coordinate) -> None:
    stops = set(waiting.values())
    if not waiting or (len(stops) == 1 and len(waiting) == len(running)):
        return
    ended = sorted(set(running) - set(waiting))
    places = [f"warp {w} waits at {location_of(op.loc) or 'an unknown line'}" for w, op in sorted(waiting.items())]
    places += [f"warp {w} has ended" for w in ended]
    first = waiting[min(waiting)]
    fault = BarrierDivergence("not all warps of the program reach the same barrier", hint="; ".join(places))
    raise fault.within(first.name, at, min(waiting), first.loc)


def stuck(blocked: dict[int, Operation], at: Coordinate) -> Fault:
    """The fault of warps that wait for what never comes."""
    places = "; ".join(
        f"warp {w} waits at {location_of(op.loc) or 'an unknown line'}" for w, op in sorted(blocked.items())
    )
    first = min(blocked)
    fault = BarrierDivergence("warps wait for a phase of a barrier that never ends", hint=places)
    return fault.within(blocked[first].name, at, first, blocked[first].loc)


def _forget(scratch: Segment | None) -> None:
    """Make the contents of scratch memory undefined again."""
    if scratch is not None:
        scratch.data.fill(POISON)
        if scratch.written is not None:
            scratch.written.fill(False)


def warps_of(module: Module) -> tuple[int, int]:
    """How many warps share a program's blocks, and how many it has: one at `tt` and `ttg`, where a tensor is the whole
    block, unless the kernel was written for warps.
    """
    if level_of(module) in ("tt", "ttg") and not is_warp_level(module):
        return 1, 1
    own = integer_in(module.attributes, "ttg.num-warps", 1)
    return own, integer_in(module.attributes, "ttg.total-num-warps", own)


def scratch_bytes(module: Module) -> int:
    """The size of a thread's scratch memory: as the module says, or as its operations need."""
    stated = integer_in(module.attributes, "tile.scratch_bytes", None)
    needed = (scratch_offset(op) + op.bytes for op in module.walk() if isinstance(op, tile.Scratch))
    return max(needed, default=0) if stated is None else stated


def scratch_offset(op: tile.Scratch) -> int:
    """Where a part of scratch memory lies: as `allocate-scratch` has said, or else behind the ones before it."""
    if "offset" in op.attributes or op.block is None:
        return op.offset or 0
    before = op.block.ops[: op.block.position(op)]
    return sum(other.bytes for other in before if isinstance(other, tile.Scratch))


def coordinates(grid: Coordinate) -> Iterator[Coordinate]:
    """The programs of a grid, x fastest."""
    return ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0]))
