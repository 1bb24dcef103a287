"""What a change of layout costs: renamed registers, shuffles between lanes, or a way through shared memory.

Level: ttg to llvm. `conversion(source, target)` compares two linear layouts of one tensor, place by place: where does
the element come from that a lane of the target needs? Guarantees: `fetch` gives for every place of the target a place
of the source with the same element, its own lane and warp where they have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from mltriton.layouts.linear import LinearLayout

PLACES = ("register", "lane", "warp")


class Means(IntEnum):
    """How far elements travel; each includes those before it."""

    NOTHING = 0  # every element is where it is needed
    RENAMING = 1  # another register of the same lane, the same one in every lane
    SELECTION = 2  # another register of the same lane, which one depends on the lane
    SHUFFLE = 3  # from another lane of the warp
    SHARED = 4  # from another warp, through shared memory


@dataclass(frozen=True)
class Conversion:
    """How to get from one layout to another: `fetch` maps places of the target to places of the source; a lane ends up
    with `registers` elements.
    """

    means: Means
    fetch: LinearLayout
    registers: int

    def cost(self, element_bytes: int) -> int:
        """Instructions of a warp, about: none for names, one for each 32 bits of a lane for what stays in the warp, and
        for shared memory a store, a load and a wait.
        """
        words = -(-self.registers * element_bytes // 4)
        return {
            Means.NOTHING: 0,
            Means.RENAMING: 0,
            Means.SELECTION: words,
            Means.SHUFFLE: 2 * words,
            Means.SHARED: 4 * words + BARRIER,
        }[self.means]


BARRIER = 32  # instructions that could run while the warps of a program wait for each other


def conversion(source: LinearLayout, target: LinearLayout) -> Conversion:
    """How to get from `source` to `target`, two layouts of one tensor. ValueError where an element has no source."""
    fetch = _fetch(source, target)
    return Conversion(_means(fetch), fetch, target.count("register"))


def _fetch(source: LinearLayout, target: LinearLayout) -> LinearLayout:
    """Places of the target to places of the source; a bit of a place that means the same in both stays as it is."""
    general = source.into(target)
    sizes = {dim: max(source.count(dim), target.count(dim)) for dim in PLACES}
    order = [target.outputs.index(output) for output in source.outputs]
    bases: dict[str, list[tuple[int, ...]]] = {}
    for position, dim in enumerate(PLACES):
        bases[dim] = []
        for bit, vector in enumerate(target.vectors(dim)):
            same = source.vectors(dim)[bit : bit + 1]
            if same and same[0] == tuple(vector[place] for place in order):
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
