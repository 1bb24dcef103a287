"""Region moves: elements that change places inside a warp's registers, many at a time.

Level: ttg to llvm. A warp's registers are one array of bytes: words (of `word_bytes`) of all lanes next to each other,
then the next word. An instruction of a vector machine reads up to 32 elements of it that lie 1, 2 or 4 elements apart,
whichever lanes hold them, and writes them side by side. `region_moves` gives the moves that take one file of registers
to another, where there are such; both are linear in the bits of an address. Where lanes and registers change places, as
in a transposition, they take several stages. Guarantees: the moves of a stage fill its result, move i the i-th run of
`run` bytes; a move reads and writes no more than two registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mltriton.layouts.conversions import Conversion, Means, Words, change
from mltriton.layouts.encodings import Encoding, Shape
from mltriton.layouts.linear import LinearLayout
from mltriton.records import NamedTuple

LENGTHS = (32, 16)  # elements of a move
MOST_BYTES = 128  # from the first to the last that a move reads or writes: two registers
STRIDES = (1, 2, 4)
UNITS = (4, 2, 1)  # bytes of an element that is moved


class Stage(NamedTuple):
    """Moves by which `length` elements of `unit` bytes, `stride` elements apart, become neighbours; move number i
    reads from byte `start` ^ the bases of the bits of i on.
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
        within, element, move = byte % self.unit, byte // self.unit % self.length, byte // self.run
        found = self.start ^ within ^ element * self.stride * self.unit
        for bit, base in enumerate(self.bases):
            found ^= base if move >> bit & 1 else 0
        return found


class RegionMoves(NamedTuple):
    """Stages, one after the other."""

    stages: tuple[Stage, ...]

    @property
    def moves(self) -> int:
        """How many moves there are."""
        return sum(stage.moves for stage in self.stages)

    @property
    def unit(self) -> int:
        """Bytes of the elements that are moved."""
        return self.stages[0].unit

    @property
    def source_bytes(self) -> int:
        """Bytes up to the last one that is read, a power of two."""
        return self.stages[0].source_bytes

    @property
    def result_bytes(self) -> int:
        """Bytes that are written in the end."""
        return self.stages[-1].result_bytes

    def source_of(self, byte: int) -> int:
        """Where a byte of the result comes from."""
        for stage in reversed(self.stages):
            byte = stage.source_of(byte)
        return byte


def cheaper_moves(
    how: Conversion, element_bytes: int, words: Words, origin: tuple[int, ...] = ()
) -> RegionMoves | None:
    """The moves of regions that make a change of layout, where they are cheaper than anything else. Elements lie
    `origin` further.
    """
    cost = how.cost(element_bytes, words)
    if cost == 0 or how.means is Means.SHARED or element_bytes not in UNITS:
        return None
    layouts = zip((how.source, how.target), words, strict=True)
    files = (register_file(layout, element_bytes, word) for layout, word in layouts)
    moves = region_moves(*files, origin)
    return moves if moves is not None and moves.moves < cost else None


def change_cost(source: Encoding, target: Encoding, per_warp: Shape, element_bytes: int) -> int:
    """Instructions of a warp that brings the whole of a tensor of `per_warp` from one encoding to another, about."""
    how, words = change(source, target, per_warp, element_bytes)
    moves = cheaper_moves(how, element_bytes, words)
    return how.cost(element_bytes, words) if moves is None else moves.moves


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
    """The fewest moves that make the file `target` of `source` (whose elements lie `origin` further); None where there
    are none.
    """
    images = tuple(vector[0] for vector in source.into(target).vectors("address"))
    start = 0
    if any(origin):
        [start] = source.inverse().at(**dict(zip(source.outputs, (*origin, 0), strict=True)))
    return fewest_moves(images, start)


@cache
def fewest_moves(images: tuple[int, ...], start: int) -> RegionMoves | None:
    """The same for bytes: `images` are the addresses from which the bytes at 1, 2, 4, ... come, without `start`."""
    found = [
        RegionMoves((stage,)) for unit in UNITS for stride in STRIDES if (stage := _stage(images, start, unit, stride))
    ]
    if not found:
        shapes = [(unit, length, stride) for unit in UNITS for length in LENGTHS for stride in STRIDES[1:]]
        found = [moves for shape in shapes if (moves := _turned(images, start, *shape)) is not None]
    return min(found, key=lambda moves: moves.moves, default=None)


def _stage(images: Sequence[int], start: int, unit: int, stride: int) -> Stage | None:
    """One stage of elements of that size and distance."""
    inside = _bits(unit)
    if list(images[:inside]) != [1 << bit for bit in range(inside)]:
        return None
    length = 1
    while length < LENGTHS[0] and inside + _bits(length) < len(images):
        spans = 2 * length * stride * unit
        if images[inside + _bits(length)] != length * stride * unit or spans > MOST_BYTES:
            break
        length *= 2
    rest = tuple(images[inside + _bits(length) :])
    # Each move reads from an address that has none of the bits that the region itself has.
    within = (length - 1) * stride * unit | unit - 1
    overlaps = any(image & within for image in (start, *rest))
    return None if length < LENGTHS[-1] or overlaps else Stage(unit, length, stride, start, rest)


def _turned(images: Sequence[int], start: int, unit: int, length: int, stride: int) -> RegionMoves | None:
    """Several stages, of which each drops low bits of the addresses in a run and takes in the next higher ones.

    Bits of addresses have the names of the source's, which stand in `held` in the order of the bits at hand.
    """
    inside, window = _bits(unit), _bits(length)
    wanted = [image.bit_length() - 1 for image in images]
    single = all(image and image & image - 1 == 0 for image in images) and len(set(wanted)) == len(wanted)
    apart = single and not any(start & image for image in images)
    if not apart or wanted[:inside] != list(range(inside)) or stride * length * unit > MOST_BYTES:
        return None
    wanted = wanted[inside:]
    held = list(range(inside, max(wanted, default=inside) + 1))
    low, goal = held[:window], wanted[:window]
    if len(goal) < window or not set(low) <= set(wanted):
        return None
    dropped = next(count for count in range(window + 1) if low[count:] == goal[: window - count])
    entering = goal[window - dropped :]
    first = min(_bits(stride), dropped)
    stages: list[Stage] = []

    def add(drop: int, after: list[int]) -> None:
        """A stage that leaves the bits in the order `after`."""
        bases = tuple(1 << inside + held.index(bit) for bit in after[window:])
        stages.append(Stage(unit, length, 1 << drop, 0 if stages else start, bases))
        held[:] = after

    if held[window : window + first] != entering[:first]:
        add(0, _with_next(low, entering, wanted))
    while entering:
        drop = min(_bits(stride), len(entering))
        if held[window : window + drop] != entering[:drop]:
            return None  # what is to enter is still inside
        kept, entering = held[drop : window + drop], entering[drop:]
        add(drop, _with_next(kept, entering, wanted) if entering else wanted)
    return RegionMoves(tuple(stages)) if stages else None


def _with_next(low: list[int], entering: list[int], all_bits: list[int]) -> list[int]:
    """Bits in an order that starts with `low` and goes on with those that enter next."""
    following = [bit for bit in entering if bit not in low]
    return [*low, *following, *(bit for bit in all_bits if bit not in low and bit not in following)]


def _bits(size: int) -> int:
    return size.bit_length() - 1
