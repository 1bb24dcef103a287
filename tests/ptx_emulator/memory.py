"""Memory of the process as a program on the GPU sees it: arrays, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class EmulationError(Exception):
    """What a GPU would not do, or not as it was meant."""


class Memory:
    """Regions of bytes, found by their addresses."""

    def __init__(self, regions: Sequence[Array]) -> None:
        self._regions: list[tuple[int, int, Array]] = []
        for region in regions:
            self.add(region)

    def add(self, region: Array) -> int:
        """Further bytes; their address."""
        start = region.ctypes.data
        self._regions.append((start, start + region.size, region))
        return start

    def _found(self, addresses: Array, size: int) -> Iterator[tuple[Array, Array, Array]]:
        """The accesses to each region: their numbers, the region, and the places of their bytes in it."""
        if (addresses % np.uint64(size)).any():
            raise EmulationError(f"an access of {size} bytes is misaligned")
        left = np.ones(len(addresses), bool)
        for start, end, region in self._regions:
            inside = left & (addresses >= start) & (addresses + np.uint64(size) <= end)
            if inside.any():
                starts = (addresses[inside] - np.uint64(start)).astype(np.int64)
                yield np.flatnonzero(inside), region, starts[:, None] + np.arange(size)
                left &= ~inside
        if left.any():
            raise EmulationError(f"an access of {size} bytes at {int(addresses[left][0]):#x} is outside of all arrays")

    def read(self, addresses: Array, size: int) -> Array:
        """The bytes of each access: [accesses, size]."""
        made = np.empty((len(addresses), size), np.uint8)
        for numbers, region, places in self._found(addresses, size):
            made[numbers] = region[places]
        return made

    def write(self, addresses: Array, data: Array) -> None:
        """Write [accesses, size] bytes."""
        for numbers, region, places in self._found(addresses, data.shape[1]):
            region[places] = data[numbers]
