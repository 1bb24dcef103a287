"""What each warp of a program knows to have happened: vector clocks.

Level: ttg to intrinsic. A warp's time goes on with everything by which others may learn of it (an arrival, a meeting);
what it did until then has happened before whatever comes behind the wait. Source: Lamport, "Time, clocks, and the
ordering of events in a distributed system", CACM 1978; Mattern's vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mltriton.executor.values import Array


class Clocks:
    """`known[w, u]`: up to which time of warp u warp w knows that it has passed; `known[w, w]` is its own time."""

    def __init__(self, warps: int) -> None:
        self.known: Array = np.eye(warps, dtype=np.int64)

    def now(self, warp: int) -> int:
        """The warp's time."""
        return int(self.known[warp, warp])

    def knows(self, warp: int, other: int, time: int) -> bool:
        """Whether what another warp did at that time has happened before what a warp does next."""
        return warp == other or time <= self.known[warp, other]

    def tell(self, warp: int) -> Array:
        """What a warp knows, for those who wait for it; its time goes on."""
        told = self.known[warp].copy()
        self.known[warp, warp] += 1
        return told

    def learn(self, warp: int, told: Array) -> None:
        """What others knew a warp knows, too."""
        own = self.known[warp, warp]
        np.maximum(self.known[warp], told, out=self.known[warp])
        self.known[warp, warp] = own

    def meet(self, warps: Sequence[int]) -> None:
        """Warps wait for each other."""
        told = np.maximum.reduce([self.tell(warp) for warp in warps])
        for warp in warps:
            self.learn(warp, told)
