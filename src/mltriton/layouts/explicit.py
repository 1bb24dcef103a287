"""The encoding that lists its bases, `#ttg.linear`, and what holds for every encoding that is cut by its bases.

Level: ttg to llvm. `#ttg.linear` says in full which register of which lane of which warp holds an element; a tensor
that is smaller than what the bases span wraps around, a larger one repeats in further registers. Name and text are
upstream's. Guarantees: `cut` agrees with the place of each element; a tile holds whole registers of all lanes, so that
a piece of tile size is a choice of the registers of a warp's part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from mltriton.layouts.base import Cut, Encoding
from mltriton.layouts.fields import Fields, Shape, bases, is_power, require

if TYPE_CHECKING:
    from mltriton.layouts.linear import LinearLayout

Bases = tuple[Shape, ...]
PIECE_ELEMENTS = 512  # of a piece that no instruction's size decides


class BasesEncoding(Encoding):
    """Base of encodings whose pieces no instruction decides: they are cut by their bases."""

    __slots__ = ()

    def lane_tile(self, rank: int) -> Shape:
        """The smallest box with all lanes, then with further registers in their order."""
        return _grown(self.as_linear(rank))

    def piece(self, box: Shape) -> Encoding:
        found = self.as_linear(len(box))
        inside = [v for v in found.register if all(x < size for x, size in zip(v, box, strict=True))]
        lanes = [tuple(x if x < size else 0 for x, size in zip(v, box, strict=True)) for v in found.lane]
        return LinearEncoding(found.rank, tuple(inside), tuple(lanes), ())

    def as_linear(self, rank: int) -> LinearEncoding:
        """The encoding with its bases listed. Raises `NoLanesError` where it has none."""
        from mltriton.layouts.hardware import linear_layout  # Targets without lanes ask for no linear layout.

        layout = linear_layout(self, self.natural_shape(rank))
        return LinearEncoding(rank, *(layout.vectors(name) for name in ("register", "lane", "warp")))


class LinearEncoding(BasesEncoding):
    """`#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4]], warp = [[1, 0]], block = []}>`: one basis for each
    bit of the register, the lane and the warp. `rank` is that of the tensors (bases may be missing).
    """

    mnemonic = "ttg.linear"
    alias = "linear"
    rank: int
    register: Bases
    lane: Bases
    warp: Bases

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        """ValueError where a warp's part is no box of neighbouring elements."""
        return tuple(_cut(self, dim, extent) for dim, extent in enumerate(shape))

    @property
    def warps(self) -> int:
        return 1 << len(self.warp)

    def extent(self, dim: int) -> int:
        """The extent of the dimension that the bases reach."""
        return _span((*self.register, *self.lane, *self.warp), dim)

    def as_linear(self, rank: int) -> LinearEncoding:
        return self

    def linear_layout(self, shape: Shape) -> LinearLayout:
        """The bases as they are listed."""
        from mltriton.layouts.growing import Growing  # As above.

        layout = Growing(self.register, self.lane, self.natural_shape(self.rank))
        layout.bases["warp"] = list(self.warp)
        return layout.fill(shape, tuple(reversed(range(self.rank))))

    def fields(self) -> Fields:
        return {"register": self.register, "lane": self.lane, "warp": self.warp, "block": ()}

    @classmethod
    def build(cls, fields: Fields) -> LinearEncoding:
        require(not bases({"block": (), **fields}, "block"), "block must be []: clusters of blocks are not supported")
        read = [bases(fields, name) for name in ("register", "lane", "warp")]
        ranks = {len(vector) for vectors in read for vector in vectors}
        require(len(ranks) == 1, "the bases must have one length, the rank of the tensor")
        fits = all(x == 0 or is_power(x) for vectors in read for vector in vectors for x in vector)
        require(fits, "a basis must have 0 or a power of two for each dimension")
        return LinearEncoding(ranks.pop(), *read)


def _grown(encoding: LinearEncoding) -> Shape:
    vectors = (*encoding.register, *encoding.lane)
    if any(sum(map(bool, vector)) > 1 for vector in vectors):
        return tuple(_span(vectors, dim) for dim in range(encoding.rank))
    box = [_span(encoding.lane, dim) for dim in range(encoding.rank)]
    for vector in encoding.register:
        for dim, step in enumerate(vector):
            if step == box[dim] and math.prod(box) < PIECE_ELEMENTS:
                box[dim] *= 2
    return tuple(box)


def _span(vectors: Sequence[Shape], dim: int) -> int:
    reach = 0
    for vector in vectors:
        reach |= vector[dim]
    return 1 << reach.bit_length()


@cache
def _cut(encoding: LinearEncoding, dim: int, extent: int) -> Cut:
    bits = [(bit, vector[dim]) for bit, vector in enumerate(encoding.warp) if vector[dim]]
    if not bits:
        return Cut(extent, 1, 1)
    first, size = bits[0]
    if bits != [(first + step, size << step) for step in range(len(bits))] or _mixed(encoding, dim, size):
        raise ValueError(f"the warps' parts along dimension {dim} are no boxes: {encoding}")
    return Cut(size, 1 << len(bits), 1 << first)


def _mixed(encoding: LinearEncoding, dim: int, size: int) -> bool:
    """Whether a lane or register goes further than the warp's part, or a warp moves along two dimensions."""
    own = any(vector[dim] >= size for vector in (*encoding.register, *encoding.lane))
    return own or any(vector[dim] and sum(map(bool, vector)) > 1 for vector in encoding.warp)
