"""Which lane takes what, where no instruction decides: neighbouring lanes hold neighbouring elements.

Level: ttg to warp. Takes the cut between warps of a blocked encoding; gives a `#ttg.linear` encoding with the same cut
for every shape, in which a lane has a run of elements along the fastest dimension, lanes follow each other along it as
far as it goes and then along the next, and what is left lies in further registers.
"""

from __future__ import annotations

import math

from mltriton.layouts.encodings import BlockedEncoding, Shape
from mltriton.layouts.explicit import LinearEncoding

Vector = tuple[int, ...]


def with_lanes(encoding: BlockedEncoding, threads: int, run: int = 1, order: Shape | None = None) -> LinearEncoding:
    """The encoding with `threads` lanes that hold `run` neighbours along the first dimension of `order` (fastest
    first; the encoding's own where None), fewer where a warp has not so much.
    """
    order = order or encoding.order
    size, rank = encoding.size_per_warp, len(encoding.size_per_warp)
    taken = [1] * rank

    def take(dim: int) -> Vector:
        vector = tuple(taken[d] * (d == dim) for d in range(rank))
        taken[dim] *= 2
        return vector

    def bits(most: int) -> list[Vector]:
        """The next bits along the fastest dimensions that are left, `most` at most."""
        found: list[Vector] = []
        for dim in order:
            while len(found) < most and taken[dim] < size[dim]:
                found.append(take(dim))
        return found

    run = min(run, max(1, math.prod(size) // threads), size[order[0]])
    registers = bits(_bits(run))
    lanes = bits(_bits(threads))
    lanes += [(0,) * rank] * (_bits(threads) - len(lanes))
    registers += bits(_bits(math.prod(size)))
    taken = list(size)
    warps = [take(dim) for dim in encoding.order for _ in range(_bits(encoding.warps_per_cta[dim]))]
    return LinearEncoding(rank, tuple(registers), tuple(lanes), tuple(warps))


def _bits(count: int) -> int:
    return count.bit_length() - 1
