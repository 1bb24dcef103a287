"""The engine that copies blocks between global and shared memory, as the executor has it: barriers, copies under way.

Level: ttg to intrinsic. A copy reads its source when it is started. What it writes to shared memory comes with the end
of its barrier's phase, and a warp may read it only once it has waited for that phase, or met a warp that has. It is
overwritten by the next copy only once who copies knows, by barriers of either kind, that all reads of it are over.
Guarantees: reads of what nobody has waited for (`Unfinished`), or only another warp (`DataRace`), copies to what a warp
may still read, or of what was written without a fence (`DataRace`), writes to what a copy still reads (`Unfinished`),
and barriers that are none (`InvalidOperation`) are faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mltriton.executor.clocks import Clocks
from mltriton.executor.faults import DataRace, InvalidOperation, Unfinished
from mltriton.executor.values import Array

NOBODY = -1


@dataclass
class Transfer:
    """A copy to shared memory: `complete` writes it; `seen`: the warps that have waited for it, each with how many
    barriers of the program it had passed then; `reads`: when each warp has read of it last, by its own clock.
    """

    complete: Callable[[], None]
    arrived: bool = False
    seen: dict[int, int] = field(default_factory=dict[int, int])
    reads: dict[int, int] = field(default_factory=dict[int, int])

    def is_seen(self, warp: int, epoch: int) -> bool:
        """Whether a warp may read what came."""
        return warp in self.seen or any(then < epoch for then in self.seen.values())


@dataclass
class Barrier:
    """A barrier in shared memory: arrivals and bytes that its phase still needs, what came in each parity, and what
    those knew who arrived.
    """

    count: int
    arrivals: int
    bytes: int = 0
    phase: int = 0
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    ended: dict[int, list[Transfer]] = field(default_factory=dict[int, list[Transfer]])
    telling: list[Array] = field(default_factory=list[Array])
    told: dict[int, list[Array]] = field(default_factory=dict[int, list[Array]])

    def arrive(self, number: int, knows: Array) -> None:
        """So many arrivals more, of a warp that knows so much."""
        if number > self.arrivals:
            raise InvalidOperation(f"{number} arrivals at a barrier that waits for {self.arrivals}")
        self.arrivals -= number
        self.telling.append(knows)
        self.settle()

    def settle(self) -> None:
        """Begin the next phase where this one has all that it needs."""
        if self.arrivals == 0 and self.bytes == 0:
            self.ended[self.phase & 1], self.told[self.phase & 1] = self.transfers, self.telling
            self.phase, self.arrivals, self.transfers, self.telling = self.phase + 1, self.count, [], []

    def has_ended(self, parity: int) -> bool:
        """Whether the latest phase of that parity is over."""
        return self.phase & 1 != parity & 1


@dataclass
class Engine:
    """All barriers of a program, by address; `events` counts what may let a warp go on."""

    clocks: Clocks
    barriers: dict[int, Barrier] = field(default_factory=dict[int, Barrier])
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    events: int = 0

    def barrier(self, address: int) -> Barrier:
        """The barrier there. Raises `InvalidOperation` where there is none."""
        self.events += 1
        if address not in self.barriers:
            raise InvalidOperation("a barrier that nobody has initialised")
        return self.barriers[address]

    def check_end(self) -> None:
        """Raise `Unfinished` where a copy has not come when the program ends."""
        if any(not transfer.arrived for transfer in self.transfers):
            raise Unfinished("the program ends before its copies have arrived")


@dataclass(frozen=True)
class Traffic:
    """What the engine has to do with each element of a block in shared memory: the number of the transfer that wrote it
    last, the warp that wrote it since its last fence, and the one that started a copy which reads it.
    """

    transfer: Array
    unfenced: Array
    leaving: Array

    @staticmethod
    def none(shape: tuple[int, ...]) -> Traffic:
        """Of a fresh block."""
        return Traffic(
            np.full(shape, NOBODY, np.int32), np.full(shape, NOBODY, np.int32), np.full(shape, NOBODY, np.int32)
        )

    def part(self, transform: Callable[[Array], Array]) -> Traffic:
        """That of a window."""
        return Traffic(transform(self.transfer), transform(self.unfenced), transform(self.leaving))

    def read(self, engine: Engine, warp: int, epoch: int) -> None:
        """A warp reads all elements."""
        for transfer in self._brought(engine):
            if not transfer.is_seen(warp, epoch):
                message = f"warp {warp} reads what a copy brought that only other warps have waited for"
                raise DataRace(message, hint="Let every warp wait for the barrier, or meet one that has.")
        self.kept(engine, warp)

    def _brought(self, engine: Engine) -> list[Transfer]:
        """The copies that brought what is there."""
        return [engine.transfers[int(number)] for number in np.unique(self.transfer) if number != NOBODY]

    def kept(self, engine: Engine, warp: int) -> None:
        """A warp has read until now, or a product of its."""
        for transfer in self._brought(engine):
            transfer.reads[warp] = engine.clocks.now(warp)

    def overwritten(self, engine: Engine, warp: int) -> None:
        """A warp starts a copy that writes all elements."""
        for transfer in self._brought(engine):
            for reader, time in transfer.reads.items():
                if not engine.clocks.knows(warp, reader, time):
                    message = f"a copy that warp {warp} starts overwrites what warp {reader} may still read"
                    raise DataRace(message, hint="Let the reader arrive at a barrier for which the copy waits.")

    def written(self, warp: int) -> None:
        """A warp writes all elements."""
        if (self.leaving != NOBODY).any():
            raise Unfinished("a write of shared memory: nobody has waited for the copy from it")
        self.transfer[...] = NOBODY
        self.unfenced[...] = warp

    def sent(self, warp: int) -> None:
        """A warp starts a copy to global memory."""
        if (self.unfenced != NOBODY).any():
            warp = int(self.unfenced[self.unfenced != NOBODY][0])
            hint = "ttng.fence_async_shared belongs in between."
            raise DataRace(f"a copy reads what warp {warp} wrote to shared memory without a fence", hint=hint)
        self.leaving[...] = warp
