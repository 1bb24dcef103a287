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
        self._words: dict[tuple[int, int], Array] = {}
        for region in regions:
            self.add(region)

    def add(self, region: Array) -> int:
        """Further bytes; their address."""
        start = region.ctypes.data
        self._regions.append((start, start + region.size, region))
        return start

    def _found(self, addresses: Array, size: int) -> Iterator[tuple[Array, Array, Array]]:
        """The accesses to each region: their numbers, the region in words of this size, and the words' numbers."""
        left = np.ones(len(addresses), bool)
        for number, (start, end, _) in enumerate(self._regions):
            inside = left & (addresses >= start) & (addresses + np.uint64(size) <= end)
            if inside.any():
                words, first = self._in_words(number, size)
                yield np.flatnonzero(inside), words, (addresses[inside] - np.uint64(first)) // np.uint64(size)
                left &= ~inside
        if left.any():
            raise EmulationError(f"an access of {size} bytes at {int(addresses[left][0]):#x} is outside of all arrays")

    def _in_words(self, number: int, size: int) -> tuple[Array, int]:
        """A region from its first word of so many bytes on, in such words, and where that is."""
        start, _, region = self._regions[number]
        first = -start % size
        if (number, size) not in self._words:
            whole = region[first : first + (len(region) - first) // size * size]
            self._words[number, size] = whole.view(f"V{size}" if size > 8 else f"u{size}")
        return self._words[number, size], start + first

    def _one(self, addresses: Array, size: int) -> tuple[Array, Array] | None:
        """As `_found`, where one region has all."""
        if not len(addresses):
            return None
        if (addresses % np.uint64(size)).any():
            raise EmulationError(f"an access of {size} bytes is misaligned")
        low, high = int(addresses.min()), int(addresses.max()) + size
        for number, (start, end, _) in enumerate(self._regions):
            if start <= low and high <= end:
                words, first = self._in_words(number, size)
                return words, (addresses - np.uint64(first)) // np.uint64(size)
        return None

    def read(self, addresses: Array, size: int) -> Array:
        """The bytes of each access: [accesses, size]."""
        addresses = addresses.astype(np.uint64, copy=False)
        one = self._one(addresses, size)
        if one is not None:
            words, places = one
            return words[places].view(np.uint8).reshape(-1, size)
        made = np.empty((len(addresses), size), np.uint8)
        for numbers, words, places in self._found(addresses, size):
            made[numbers] = words[places].view(np.uint8).reshape(-1, size)
        return made

    def write(self, addresses: Array, data: Array) -> None:
        """Write [accesses, size] bytes."""
        addresses, size = addresses.astype(np.uint64, copy=False), data.shape[1]
        one = self._one(addresses, size)
        if one is not None:
            words, places = one
            words[places] = np.ascontiguousarray(data).view(words.dtype)[:, 0]
            return
        for numbers, words, places in self._found(addresses, size):
            words[places] = np.ascontiguousarray(data[numbers]).view(words.dtype)[:, 0]
