"""Simulated global and scratch memory: segments in a 64-bit address space, every access checked.

Level: all. Each argument's buffer is one segment; segments lie `SPAN` bytes apart, so that a stray address is found
to belong to no element of any of them. Addresses are int64 scalars or arrays and count bytes. Guarantees: no access
outside a segment (`OutOfBounds`), none that is not a multiple of the element's size (`Misaligned`), no write to
read-only memory (`ReadOnly`), and with `track=True` no read of scratch that was never written (`Uninitialised`).
`watch`, where there is one, sees the loads and stores, but not `window` and `span`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mltriton.executor.faults import Misaligned, OutOfBounds, ReadOnly, Uninitialised
from mltriton.executor.flights import Flights
from mltriton.executor.values import Array, choose, decode, encode, is_block, memory_dtype
from mltriton.ir.types import Type

if TYPE_CHECKING:
    from mltriton.executor.races import Watch

SPAN_BITS = 40  # log2 of the distance of segments
SPAN = 1 << SPAN_BITS
POISON = 0xFF  # NaN in every float type, -1 in every integer type


@dataclass(eq=False)
class Segment:
    """Bytes at `start` in the simulated address space; `written` marks bytes that hold something (None: all do)."""

    name: str
    start: int
    data: np.ndarray[Any, np.dtype[np.uint8]]
    writable: bool = True
    written: np.ndarray[Any, np.dtype[np.bool_]] | None = None
    views: dict[tuple[np.dtype[Any], int], Array] = field(default_factory=dict[tuple[np.dtype[Any], int], Array])

    @property
    def size(self) -> int:
        """Bytes."""
        return self.data.size

    def view(self, dtype: np.dtype[Any], phase: int) -> Array:
        """All elements of `dtype` that begin at `phase` plus a multiple of their size."""
        found = self.views.get((dtype, phase))
        if found is None:
            count = max(0, self.size - phase) // dtype.itemsize
            found = self.views[dtype, phase] = self.data[phase : phase + count * dtype.itemsize].view(dtype)
        return found

    def require(self, *, write: bool) -> None:
        """Raise `ReadOnly` for a write to read-only memory."""
        if write and not self.writable:
            raise ReadOnly(f"a write to {self.name}, which is read-only")

    def mark(self, marks: Array, *, write: bool) -> None:
        """Record a write to a part of `written`; raise `Uninitialised` for a read that finds an unset byte."""
        if write:
            marks[...] = True
        elif not marks.all():
            raise Uninitialised(f"a read of {self.name} that nothing has written, in {marks.size} bytes")

    def missed(self, address: int, size: int, element: tuple[int, ...] | None = None) -> OutOfBounds:
        """The fault of an access of `size` bytes at `address`, by `element` of a block."""
        offset = address - self.start
        past = offset + size - self.size
        where = f"begins {-offset} bytes before" if offset < 0 else f"ends {past} bytes past the end of"
        fault = OutOfBounds(
            f"an access of {size} bytes {where} {self.name}, which has {self.size} bytes",
            found=f"element {element} of the block" if element is not None else None,
        )
        fault.segment, fault.is_before = self.name, offset < 0
        return fault


class Memory:
    """The address space of a launch. Elements are addressed by byte; `type` is the scalar type of an element."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.watch: Watch | None = None
        self.flights = Flights()

    def add(self, name: str, data: Array, *, alignment: int = 0, writable: bool = True, track: bool = False) -> Segment:
        """A new segment over the bytes `data` (uint8, 1D); its address is `alignment` plus a multiple of 4096."""
        start = ((len(self.segments) + 1) << SPAN_BITS) + (SPAN >> 1) + alignment
        written = np.zeros(data.size, np.bool_) if track else None
        self.segments.append(Segment(name, start, data, writable, written))
        return self.segments[-1]

    def scratch(self, name: str, size: int, *, track: bool) -> Segment:
        """A new segment of `size` bytes of undefined contents."""
        return self.add(name, np.full(size, POISON, np.uint8), track=track)

    def segments_at(self, addresses: Iterable[int]) -> list[Segment]:
        """The segments that addresses lie in; an address that lies in none is left out."""
        numbers = [(address >> SPAN_BITS) - 1 for address in addresses]
        return [self.segments[number] for number in numbers if 0 <= number < len(self.segments)]

    @contextmanager
    def atomically(self) -> Generator[None]:
        """Let accesses within the `with` statement be parts of atomic operations."""
        if self.watch is None:
            yield
            return
        self.watch.atomic = True
        try:
            yield
        finally:
            self.watch.atomic = False

    def load(self, address: Array, type: Type, mask: Array | None = None, other: Array | None = None) -> Array:
        """The elements at `address` (scalar or array).

        Where `mask` is false nothing is read and the value is `other`, or 0.
        """
        bits = self.load_bits(address, memory_dtype(type), mask)
        values = decode(bits, type)
        return values if mask is None or other is None else choose(mask, values, other)

    def store(self, address: Array, values: Array, type: Type, mask: Array | None = None) -> None:
        """Write elements at `address` where `mask` is true; of several writes to one address the last one stays."""
        self.store_bits(address, encode(values, type), memory_dtype(type), mask)

    def load_bits(self, address: Array, dtype: np.dtype[Any], mask: Array | None = None) -> Array:
        """The bit patterns at `address`; 0 where `mask` is false."""
        if self.flights.under_way:
            self.flights.check(address, mask)
        if not is_block(address):
            return dtype.type(0) if mask is not None and not mask else self._load_one(int(address), dtype)
        if mask is None or mask.all():
            return self._gather(address, dtype)
        bits = np.zeros(address.shape, dtype)
        active = np.broadcast_to(mask, address.shape)
        if active.any():
            bits[active] = self._gather(address[active], dtype, active)
        return bits

    def store_bits(self, address: Array, bits: Array, dtype: np.dtype[Any], mask: Array | None = None) -> None:
        """Write bit patterns where `mask` is true."""
        if self.flights.under_way:
            self.flights.check(address, mask)
        if not is_block(address):
            if mask is None or mask:
                self._store_one(int(address), bits, dtype)
        elif mask is None or mask.all():
            self._scatter(address, bits, dtype)
        else:
            active = np.broadcast_to(mask, address.shape)
            if active.any():
                self._scatter(address[active], np.broadcast_to(bits, address.shape)[active], dtype, active)

    def window(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], *, write: bool
    ) -> Array:
        """The elements at address + sum(index * stride) (strides in elements) as a view of the memory itself.

        With `write` the view will be written: it counts as written from now on. Raises like `load`; an empty shape
        gives an empty array.
        """
        if 0 in shape:
            return np.empty(shape, dtype)
        size = dtype.itemsize
        reach = [(extent - 1) * stride * size for extent, stride in zip(shape, strides, strict=True)]
        lowest, highest = address + sum(min(r, 0) for r in reach), address + sum(max(r, 0) for r in reach)
        segment = self._segment_at(lowest, size)
        self._check(segment, highest, dtype)
        self._check(segment, lowest, dtype)
        steps = tuple(stride * size for stride in strides)
        offset = address - segment.start
        if segment.written is not None:
            marks: Array = np.ndarray((*shape, size), np.bool_, segment.written, offset, (*steps, 1))
            segment.mark(marks, write=write)
        segment.require(write=write)
        return np.ndarray(shape, dtype, segment.data, offset, steps)

    def span(self, address: int, count: int, dtype: np.dtype[Any], *, write: bool) -> Array:
        """The `count` consecutive elements at `address`: a faster `window`."""
        segment = self._segment_at(address, dtype.itemsize)
        offset = self._check(segment, address, dtype)
        end = offset + count * dtype.itemsize
        if end > segment.size:
            raise segment.missed(address, count * dtype.itemsize)
        segment.require(write=write)
        if segment.written is not None:
            segment.mark(segment.written[offset:end], write=write)
        return segment.data[offset:end].view(dtype)

    def _segment_at(self, address: int, size: int) -> Segment:
        index = (address >> SPAN_BITS) - 1
        if not 0 <= index < len(self.segments):
            raise OutOfBounds(f"{size} bytes at {hex(address)}: no memory is there", found=self._map())
        return self.segments[index]

    def _check(self, segment: Segment, address: int, dtype: np.dtype[Any]) -> int:
        offset = address - segment.start
        if not 0 <= offset <= segment.size - dtype.itemsize:
            raise segment.missed(address, dtype.itemsize)
        if address % dtype.itemsize:
            raise Misaligned(f"{hex(address)} in {segment.name} is no multiple of {dtype.itemsize} bytes")
        return offset

    def _load_one(self, address: int, dtype: np.dtype[Any]) -> Array:
        segment = self._segment_at(address, dtype.itemsize)
        offset = self._check(segment, address, dtype)
        if self.watch is not None:
            self.watch.see(segment, offset, dtype.itemsize, write=False)
        if segment.written is not None:
            segment.mark(segment.written[offset : offset + dtype.itemsize], write=False)
        return segment.view(dtype, offset % dtype.itemsize)[offset // dtype.itemsize]

    def _store_one(self, address: int, bits: Array, dtype: np.dtype[Any]) -> None:
        segment = self._segment_at(address, dtype.itemsize)
        offset = self._check(segment, address, dtype)
        segment.require(write=True)
        if self.watch is not None:
            self.watch.see(segment, offset, dtype.itemsize, write=True)
        if segment.written is not None:
            segment.mark(segment.written[offset : offset + dtype.itemsize], write=True)
        segment.view(dtype, offset % dtype.itemsize)[offset // dtype.itemsize] = bits

    def _gather(self, addresses: Array, dtype: np.dtype[Any], active: Array | None = None) -> Array:
        segment, offsets = self._locate(addresses, dtype, active)
        if segment is None:
            return self._by_segment(addresses, dtype, active)
        if self.watch is not None:
            self.watch.see(segment, offsets, dtype.itemsize, active, write=False)
        if segment.written is not None:
            segment.mark(segment.written[offsets[..., None] + np.arange(dtype.itemsize)], write=False)
        phase = int(offsets.flat[0]) % dtype.itemsize
        return segment.view(dtype, phase)[(offsets - phase) // dtype.itemsize]

    def _scatter(self, addresses: Array, bits: Array, dtype: np.dtype[Any], active: Array | None = None) -> None:
        segment, offsets = self._locate(addresses, dtype, active)
        if segment is None:
            for part in self._parts(addresses):
                self._scatter(addresses[part], np.broadcast_to(bits, addresses.shape)[part], dtype)
            return
        segment.require(write=True)
        if self.watch is not None:
            self.watch.see(segment, offsets, dtype.itemsize, active, write=True)
        if segment.written is not None:
            segment.written[offsets[..., None] + np.arange(dtype.itemsize)] = True
        phase = int(offsets.flat[0]) % dtype.itemsize
        segment.view(dtype, phase)[(offsets - phase) // dtype.itemsize] = bits

    def _locate(self, addresses: Array, dtype: np.dtype[Any], active: Array | None) -> tuple[Segment | None, Array]:
        """The segment of all addresses and the offsets in it.

        None when they lie in several, each of which is checked then.
        """
        first = int(addresses.flat[0])
        lowest, highest = int(addresses.min()), int(addresses.max())
        if lowest >> SPAN_BITS != highest >> SPAN_BITS:
            return None, addresses
        segment = self._segment_at(first, dtype.itemsize)
        offsets = addresses - segment.start
        if lowest < segment.start or highest - segment.start > segment.size - dtype.itemsize:
            wrong = (offsets < 0) | (offsets > segment.size - dtype.itemsize)
            address, element = _first(addresses, wrong, active)
            raise segment.missed(address, dtype.itemsize, element)
        if dtype.itemsize > 1 and (beside := addresses & (dtype.itemsize - 1)).any():
            address, element = _first(addresses, beside != 0, active)
            raise Misaligned(
                f"{hex(address)} in {segment.name} is no multiple of {dtype.itemsize} bytes",
                found=f"element {element} of the block",
            )
        return segment, offsets

    def _by_segment(self, addresses: Array, dtype: np.dtype[Any], active: Array | None) -> Array:
        bits = np.empty(addresses.shape, dtype)
        for part in self._parts(addresses):
            bits[part] = self._gather(addresses[part], dtype)
        return bits

    def _parts(self, addresses: Array) -> list[Array]:
        owners = addresses >> SPAN_BITS
        return [owners == owner for owner in np.unique(owners)]

    def _map(self) -> str:
        parts = [f"{segment.name} at {hex(segment.start)} ({segment.size} bytes)" for segment in self.segments]
        return "; ".join(parts) or "a launch without memory"


def _first(addresses: Array, wrong: Array, active: Array | None) -> tuple[int, tuple[int, ...]]:
    """The first wrong address and its position in the block; `active` is the mask that selected the addresses."""
    number = int(np.flatnonzero(wrong)[0])
    positions = np.argwhere(np.ones(addresses.shape, np.bool_) if active is None else active)
    return int(addresses.flat[number]), tuple(int(i) for i in positions[number])


def bytes_at(address: int, size: int) -> Array:
    """The process's own memory as uint8: the caller keeps its owner alive."""
    if size == 0:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
