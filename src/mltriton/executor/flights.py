"""Blocks that the engine has read from shared memory, and writes to global memory when it likes.

Level: ttg to intrinsic. The executor writes at once; until the warp that started a copy has waited for what it writes,
no access of the program may meet it (`Unfinished`), but updates of one kind among themselves. What is under way when
the program ends is written before the launch ends.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mltriton.executor.faults import Unfinished
from mltriton.executor.values import Array


class Flight(NamedTuple):
    """A copy under way: the warp that has started it, its addresses, and what updates memory (None: a store)."""

    warp: int
    addresses: Array
    update: str | None


@dataclass
class Flights:
    """Those of the program that runs."""

    under_way: list[Flight] = field(default_factory=list[Flight])

    def check(self, addresses: Array, active: Array | None) -> None:
        """Raise `Unfinished` where an access meets one of them."""
        for flight in self.under_way:
            met = np.isin(addresses, flight.addresses)
            if (met if active is None else met & active).any():
                message = "an access of what a copy to global memory may still write: nobody has waited for that"
                raise Unfinished(message, hint="ttng.async_tma_store_wait {written = true} belongs in between.")

    @contextmanager
    def start(self, warp: int, places: Array, inside: Array | None, update: str | None) -> Generator[None]:
        """Write the addresses that are `inside` within the `with` statement; they are under way behind it."""
        others, same = list[Flight](), list[Flight]()
        for flight in self.under_way:
            (same if update is not None and flight.update == update else others).append(flight)
        self.under_way = others
        yield
        addresses = places.ravel() if inside is None else places[inside]
        self.under_way = [*others, *same, Flight(warp, addresses, update)]

    def wait(self, warp: int, most_left: int) -> None:
        """All but so many of the latest that a warp has started are done."""
        own = [flight for flight in self.under_way if flight.warp == warp]
        done = own[: max(0, len(own) - most_left)]
        self.under_way = [flight for flight in self.under_way if not any(flight is other for other in done)]

    def end(self) -> None:
        """The program ends."""
        self.under_way = []
