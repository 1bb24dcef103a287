"""Arrays of main memory on the device: which bytes a launch copies there, and which it brings back.

Level: runtime. A kernel may reach what lies around an array that is a part of another one, by strides below zero or by
adding to its pointer; so the memory that an array is a view of is copied as a whole. Guarantees: arrays that share
memory do so on the device as well, and none is aligned to less than here, up to what kernels are specialised for; of
what lies around the arrays that a kernel is known to write, only those bytes are brought back that it changed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from mltriton.errors import ArgumentError, LaunchError, calling_location
from mltriton.records import NamedTuple
from mltriton.runtime.alignment import ALIGNMENT as KNOWN_ALIGNMENT
from mltriton.runtime.extents import Span, covered_by, viewed_by
from mltriton.runtime.parts import unwrapped

ALIGNMENT = 64  # bytes, of memory that host and device share

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Sharing(Protocol):
    """A device, or a queue to one, that shares memory with the host."""

    def shared(self, size: int) -> Any:
        """Memory that both access; its address is `_pointer`. Raises `OutOfResources`."""
        ...

    def pointer(self, address: int, owner: Any = None) -> Any:
        """The argument for an address in memory that lives as long as its `owner`."""
        ...


class Held(NamedTuple):
    """An array whose first element has an `address`: the bytes that it covers, those of the `whole` memory that it is a
    view of, and whether the kernel writes through it.
    """

    address: int
    covered: Span
    whole: Span
    written: bool


def held(array: Any, address: int, written: bool) -> Held:
    """Where an array is. Raises `ArgumentError` for what does not say how large it is."""
    array = unwrapped(array)
    covered = covered_by(array, address)
    if covered is None:
        message = "an argument is of a kind that cannot be copied to the device"
        expected, found = "numpy arrays or torch tensors", type(array).__name__
        raise ArgumentError(message, expected=expected, found=found, location=calling_location())
    around = viewed_by(array) or covered
    if not (around.start <= covered.stop and covered.start <= around.stop):
        around = covered
    whole = Span(min(around.start, covered.start), max(around.stop, covered.stop))
    return Held(address, covered, whole, written)


class Copy(NamedTuple):
    """What the device has of a span: memory, of which so many bytes come `before` it. Of its bytes the kernel is known
    to write the spans `written`; the others, where it may write as well, held `kept` before.
    """

    span: Span
    memory: Any
    before: int
    written: Sequence[Span]
    kept: Sequence[tuple[Span, Bytes]]

    def place(self, address: int) -> int:
        """Where the device has a byte of main memory."""
        return self.memory._pointer + self.before + address - self.span.start

    def bring_back(self) -> None:
        """Put what the kernel wrote into main memory."""
        for span in self.written:
            ctypes.memmove(span.start, self.place(span.start), span.stop - span.start)
        for span, before in self.kept:
            now = _bytes(self.place(span.start), before.size)
            changed = now != before
            if changed.any():
                _bytes(span.start, before.size)[changed] = now[changed]


class Memory:
    """Copies of the main memory that `arrays` are views of. Each byte keeps its address up to what kernels are
    specialised for. As far as that allows, arrays start at a multiple of `ALIGNMENT`, which block accesses ask for and
    numpy does not care for.
    """

    def __init__(self, queue: Sharing, arrays: Sequence[Held]) -> None:
        self._queue = queue
        self._copies = [self._copy_in(span, arrays) for span in merged(array.whole for array in arrays)]

    def place(self, address: int) -> int:
        """Where the device has what is at an address in the memory of one of the arrays."""
        return self._copy_of(address).place(address)

    def pointer(self, address: int) -> Any:
        """The argument for an address in the memory of one of the arrays."""
        copy = self._copy_of(address)
        return self._queue.pointer(copy.place(address), copy.memory)

    def copy_back(self) -> None:
        """Bring what the kernel may have written into main memory."""
        for copy in self._copies:
            copy.bring_back()

    def _copy_of(self, address: int) -> Copy:
        for copy in self._copies:
            if copy.span.start <= address <= copy.span.stop:
                return copy
        raise LaunchError("an address lies in no array of the launch", found=hex(address))

    def _copy_in(self, span: Span, arrays: Sequence[Held]) -> Copy:
        size = span.stop - span.start
        inside = [array for array in arrays if span.start <= array.whole.start and array.whole.stop <= span.stop]
        before = _before(span.start, [array.address for array in inside])
        memory = self._queue.shared(before + size + ALIGNMENT)
        written = merged(array.covered for array in inside if array.written)
        kept = [(gap, _bytes(gap.start, gap.stop - gap.start).copy()) for gap in _between(span, written)]
        copy = Copy(span, memory, before, written, kept)
        ctypes.memmove(copy.place(span.start), span.start, size)
        return copy


def _before(first: int, starts: Sequence[int]) -> int:
    """How many bytes come before a copy from `first` on, for most of the arrays in it to start at a multiple of
    `ALIGNMENT`: as many as in main memory, if that is as good.
    """

    def aligned(before: int) -> int:
        return sum((before + start - first) % ALIGNMENT == 0 for start in starts)

    usual = first % ALIGNMENT
    return max(range(usual, usual + ALIGNMENT, KNOWN_ALIGNMENT), key=aligned) % ALIGNMENT


def _bytes(address: int, size: int) -> Bytes:
    """Those in memory from an address on."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def merged(spans: Iterable[Span]) -> list[Span]:
    """Spans without overlaps that cover the same bytes, in their order."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].stop:
            last = found.pop()
            span = Span(last.start, max(last.stop, span.stop))
        found.append(span)
    return found


def _between(whole: Span, parts: Sequence[Span]) -> list[Span]:
    """What is left of a span without its parts; nothing where there are no parts."""
    starts, stops = [whole.start, *(part.stop for part in parts)], [*(part.start for part in parts), whole.stop]
    gaps = [Span(*ends) for ends in zip(starts, stops, strict=True)]
    return [gap for gap in gaps if parts and gap.start < gap.stop]
