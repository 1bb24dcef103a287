"""Region moves: elements that change places inside a warp's registers, many at a time.

Level: ttg to llvm. A warp's registers are one array of bytes: words (of `word_bytes`) of all lanes next to each other,
then the next word. An instruction of a vector machine reads up to 32 elements of it that lie 1, 2 or 4 elements apart,
whichever lanes hold them, and writes them side by side. `region_moves` gives the moves that take one file of registers
to another, where there are such; both are linear in the bits of an address. Guarantees: the moves fill the whole
target, move i the i-th run of `run` bytes; a move reads and writes no more than two registers.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from mltriton.layouts.encodings import DotOperandEncoding, Encoding
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.xe import DpasEncoding, Subgroup2DBlockEncoding

WORD = 4  # bytes
HALF = 2
MOST_ELEMENTS, LEAST_ELEMENTS = 32, 16  # of a move
MOST_BYTES = 128  # from the first to the last that a move reads or writes: two registers
STRIDES = (1, 2, 4)
UNITS = (4, 2, 1)  # bytes of an element that is moved


class RegionMoves(NamedTuple):
    """`length` elements of `unit` bytes, `stride` elements apart, become neighbours; move number i reads from byte
    `start` ^ the bases of the bits of i on.
    """

    unit: int
    length: int
    stride: int
    start: int
    bases: tuple[int, ...]

    @property
    def run(self) -> int:
        """Bytes that one move writes."""
        return self.unit * self.length

    @property
    def moves(self) -> int:
        """How many there are."""
        return 1 << len(self.bases)

    @property
    def result_bytes(self) -> int:
        """Bytes that they write."""
        return self.run * self.moves

    @property
    def source_bytes(self) -> int:
        """Bytes up to the last one that they read, a power of two."""
        last = self.start | (self.length - 1) * self.stride * self.unit
        for base in self.bases:
            last |= base
        return max(self.unit, 1 << last.bit_length())

    def source(self, move: int) -> int:
        """The first byte that a move reads."""
        return self.source_of(move * self.run)

    def source_of(self, byte: int) -> int:
        """Where a byte of the result comes from."""
        place, element, move = byte % self.unit, byte // self.unit % self.length, byte // self.run
        found = self.start ^ place ^ element * self.stride * self.unit
        for bit, base in enumerate(self.bases):
            found ^= base if move >> bit & 1 else 0
        return found


def word_bytes(encoding: Encoding, element_bytes: int) -> int:
    """The bytes of a block that lie side by side in one lane: those of its words, at least of one element."""
    if element_bytes >= WORD:
        return element_bytes
    if isinstance(encoding, Subgroup2DBlockEncoding):
        if encoding.packed_rows > 1 or encoding.is_vnni(element_bytes):
            return WORD
        neighbours = -(-encoding.block[1] // encoding.threads_per_warp)
        return HALF if neighbours * element_bytes == HALF else element_bytes
    if isinstance(encoding, DotOperandEncoding):
        dpas = encoding.parent
        fits = isinstance(dpas, DpasEncoding) and element_bytes * dpas.ops_per_channel == WORD
        return element_bytes if not fits else HALF if encoding.op_idx == 0 else WORD
    return element_bytes


@cache
def register_file(layout: LinearLayout, element_bytes: int, word_bytes: int) -> LinearLayout:
    """From a byte's address in a warp's registers to the element that it belongs to, and which byte of it it is."""
    rank = len(layout.outputs)
    registers, side_by_side = layout.vectors("register"), _bits(word_bytes // element_bytes)
    bases = [(*(0,) * rank, 1 << bit) for bit in range(_bits(element_bytes))]
    bases += [(*vector, 0) for vector in registers[:side_by_side]]
    bases += [(*vector, 0) for vector in (*layout.vectors("lane"), *registers[side_by_side:])]
    sizes = dict(zip(layout.outputs, layout.sizes, strict=True))
    return LinearLayout.of({"address": bases}, {**sizes, "byte": element_bytes})


@cache
def region_moves(source: LinearLayout, target: LinearLayout, origin: tuple[int, ...] = ()) -> RegionMoves | None:
    """The fewest moves that make the file `target` of `source` (whose elements lie `origin` further); None where lanes
    are not neighbours in it.
    """
    images = [vector[0] for vector in source.into(target).vectors("address")]
    back = source.inverse()
    start = 0
    if any(origin):
        [start] = back.at(**dict(zip(source.outputs, (*origin, 0), strict=True)))
    found = [moves for unit in UNITS for stride in STRIDES if (moves := _moves(images, start, unit, stride))]
    return min(found, key=lambda moves: moves.moves, default=None)


def _moves(images: list[int], start: int, unit: int, stride: int) -> RegionMoves | None:
    """The moves of elements of that size and distance; `images`: where the bits of a target's address come from."""
    inside = _bits(unit)
    if images[:inside] != [1 << bit for bit in range(inside)]:
        return None
    count = 1
    while count < MOST_ELEMENTS and inside + _bits(count) < len(images):
        spans = 2 * count * stride * unit
        if images[inside + _bits(count)] != count * stride * unit or spans > MOST_BYTES:
            break
        count *= 2
    rest = tuple(images[inside + _bits(count) :])
    # Each move reads from a place that has none of the bits that the region itself has.
    within = (count - 1) * stride * unit | unit - 1
    overlaps = any(image & within for image in (start, *rest))
    return None if count < LEAST_ELEMENTS or overlaps else RegionMoves(unit, count, stride, start, rest)


def _bits(size: int) -> int:
    return size.bit_length() - 1
