"""What a change of layout costs: renamed registers, choices by lane, shuffles between lanes, or shared memory.

Level: ttg to llvm. `conversion(source, target)` compares two linear layouts of one tensor, position by position: where
does the element come from that a lane of the target needs? `change_cost` has the instructions that this takes.
Guarantees: `fetch` gives for every position of the target a position of the source with the same element, its own lane
and warp where they have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

from mltriton.layouts.encodings import Encoding, Shape
from mltriton.layouts.hardware import warp_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.records import NamedTuple

WORD = 4  # bytes that a register has for each lane
PLACES = ("register", "lane", "warp")
BARRIER = 32  # instructions that could run while the warps of a program wait for each other


class Means(IntEnum):
    """How far elements travel; each includes those before it."""

    NOTHING = 0  # every element is where it is needed
    RENAMING = 1  # another register of the same lane, the same one in every lane
    SELECTION = 2  # another register of the same lane, which one depends on the lane
    SHUFFLE = 3  # from another lane of the warp
    SHARED = 4  # from another warp, through shared memory


class Words(NamedTuple):
    """Bytes that lie side by side in a lane, before and after: of one element, or of several in one word."""

    source: int
    target: int


# Instructions of a warp, about, for so many elements and words of 32 bits in a lane.
COSTS: dict[Means, Callable[[int, int], int]] = {
    Means.NOTHING: lambda elements, words: 0,
    Means.RENAMING: lambda elements, words: 0,
    Means.SELECTION: lambda elements, words: elements,
    Means.SHUFFLE: lambda elements, words: 4 * elements,
    Means.SHARED: lambda elements, words: 4 * words + BARRIER,  # a store, a load and a wait
}


@dataclass(frozen=True)
class Conversion:
    """How to get from `source` to `target`: `fetch` maps positions in the target to positions in the source; a lane
    ends up with `registers` elements.
    """

    source: LinearLayout
    target: LinearLayout
    means: Means
    fetch: LinearLayout
    registers: int

    def cost(self, element_bytes: int, words: Words | None = None) -> int:
        """Instructions of a warp, about; without `words` each element lies by itself. Where words change each element
        is taken out of its own.
        """
        if self.means <= Means.RENAMING and words is not None and words.source != words.target:
            return self.registers
        return COSTS[self.means](self.registers, -(-self.registers * element_bytes // WORD))


@cache
def conversion(source: LinearLayout, target: LinearLayout) -> Conversion:
    """How to get from `source` to `target`, two layouts of one tensor. ValueError where an element has no source."""
    fetch = _fetch(source, target)
    return Conversion(source, target, _means(fetch), fetch, target.count("register"))


def change(source: Encoding, target: Encoding, per_warp: Shape, element_bytes: int) -> tuple[Conversion, Words]:
    """How a warp brings a tensor of shape `per_warp` from one encoding to another, and in which words that is."""
    words = Words(source.word_bytes(element_bytes), target.word_bytes(element_bytes))
    return conversion(warp_layout(source, per_warp), warp_layout(target, per_warp)), words


def change_cost(source: Encoding, target: Encoding, per_warp: Shape, element_bytes: int) -> int:
    """Instructions of that change, about."""
    how, words = change(source, target, per_warp, element_bytes)
    return how.cost(element_bytes, words)


def _fetch(source: LinearLayout, target: LinearLayout) -> LinearLayout:
    """Positions in the target to positions in the source; a bit of a position that means the same in both stays as it
    is.
    """
    general = source.into(target)
    sizes = {dim: max(source.count(dim), target.count(dim)) for dim in PLACES}
    order = [target.outputs.index(output) for output in source.outputs]
    bases: dict[str, list[tuple[int, ...]]] = {}
    for position, dim in enumerate(PLACES):
        bases[dim] = []
        for bit, vector in enumerate(target.vectors(dim)):
            same = source.vectors(dim)[bit : bit + 1]
            if same and same[0] == tuple(vector[dim] for dim in order):
                bases[dim].append(tuple((1 << bit) * (p == position) for p in range(len(PLACES))))
            else:
                found = dict(zip(general.outputs, general.vectors(dim)[bit], strict=True))
                bases[dim].append(tuple(found.get(name, 0) for name in PLACES))
    return LinearLayout.of(bases, sizes)


def _means(fetch: LinearLayout) -> Means:
    def own(position: int) -> bool:
        """Whether the dimension at `position` takes each of its own bits, and none of another dimension."""
        for number, dim in enumerate(PLACES):
            for bit, vector in enumerate(fetch.vectors(dim)):
                if vector[position] != ((1 << bit) if number == position else 0):
                    return False
        return True

    if not own(2):
        return Means.SHARED
    if not own(1):
        return Means.SHUFFLE
    if own(0):
        return Means.NOTHING
    others = [vector for dim in ("lane", "warp") for vector in fetch.vectors(dim)]
    return Means.SELECTION if any(vector[0] for vector in others) else Means.RENAMING
