"""The encoding that lists its bases: `#ttg.linear`.

Level: ttg to llvm. Says in full which register of which lane of which warp holds an element; a tensor that is smaller
than what the bases span wraps around, a larger one repeats in further registers. Name and text are upstream's.
Guarantees: immutable, interned; `cut` agrees with the place of each element (`hardware.py`).
"""

from __future__ import annotations

from functools import cache

from mltriton.layouts.encodings import Cut, Encoding, Shape

Bases = tuple[Shape, ...]


class LinearEncoding(Encoding):
    """`#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4]], warp = [[1, 0]], block = []}>`: one basis for each
    bit of the register, the lane and the warp. `rank` is that of the tensors (bases may be missing).
    """

    rank: int
    register: Bases
    lane: Bases
    warp: Bases

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        """ValueError where a warp's part is no box of neighbouring elements."""
        return tuple(_cut(self, dim, extent) for dim, extent in enumerate(shape))

    def span(self, dim: int) -> int:
        """The extent of the dimension that the bases reach."""
        reach = 0
        for vector in (*self.register, *self.lane, *self.warp):
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
