"""Which warps access a byte of shared memory between two barriers that all threads come to.

A warp must not read what only others wrote, nor change what others wrote or read; several may write the same bytes. A
program in which they wait for each other in other ways too (barriers in memory, those of some of its warps, products of
groups of warps) is not looked at: `off`. Lanes of a warp go in step here.
"""

from __future__ import annotations

import numpy as np

from .memory import Array, EmulationError

WARP = 32


class Races:
    """Of one program. `_wrote` and `_read` have a bit for each warp."""

    def __init__(self, shared: Array) -> None:
        self._shared, self._start = shared, shared.ctypes.data
        self.off = shared.size == 0
        self._wrote, self._read = (np.zeros(shared.size, np.uint64) for _ in range(2))
        self._last = np.zeros(shared.size, np.uint8)

    def meet(self) -> None:
        """All threads have come to a barrier."""
        if not self.off:
            self._wrote.fill(0)
            self._read.fill(0)

    def read(self, addresses: Array, size: int, warps: Array) -> None:
        """Warps read so many bytes at each of these addresses."""
        if self.off:
            return
        places, bits, _ = self._inside(addresses, size, warps)
        wrote = self._wrote[places]
        _require((wrote == 0) | ((wrote & bits) != 0), bits, "reads what another one wrote")
        np.bitwise_or.at(self._read, places, bits)

    def write(self, addresses: Array, size: int, warps: Array, data: Array | None = None) -> None:
        """Warps write so many bytes at each of these addresses: now, or where there is no `data` later."""
        if self.off:
            return
        places, bits, inside = self._inside(addresses, size, warps)
        held = self._read[places]
        if data is not None:
            new = np.ascontiguousarray(data).view(np.uint8).reshape(-1, size)[inside].reshape(-1)
            changed = np.where(self._shared[places] != new, ~bits, np.uint64(0))
            held = (held | self._wrote[places]) & changed
            self._last[places] = new
            _require(self._last[places] == new, bits, "writes what another one writes")
        _require((held & ~bits) == 0, bits, "writes what another one accesses")
        np.bitwise_or.at(self._wrote, places, bits)

    def _inside(self, addresses: Array, size: int, warps: Array) -> tuple[Array, Array, Array]:
        """The bytes in shared memory, the bit of the warp of each, and which accesses they are of."""
        places = addresses.astype(np.int64) - self._start
        inside = (places >= 0) & (places < self._shared.size)
        whole = places[inside][:, None] + np.arange(size)
        bits = np.uint64(1) << warps[inside].astype(np.uint64)
        return whole.reshape(-1), np.repeat(bits, size), inside


def _require(right: Array, bits: Array, what: str) -> None:
    if not right.all():
        warp = int(bits[~right][0]).bit_length() - 1
        raise EmulationError(f"warp {warp} {what}, with no barrier in between")
