"""Which lane takes what, where no instruction decides: neighbouring lanes hold neighbouring elements.

Level: ttg to warp. Takes the cut between warps of an encoding; gives a `#ttg.linear` encoding with the same cut, in
which a lane has a run of elements along the fastest dimension, lanes follow each other along it as far as it goes and
then along the next, and what is left lies in further registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mltriton.layouts.encodings import Cut, Encoding, Shape
from mltriton.layouts.explicit import Bases, LinearEncoding
from mltriton.layouts.hardware import linear_layout

LANE_BYTES = 16  # that a lane accesses at a time, at most


def with_lanes(
    encoding: Encoding, shape: Shape, threads: int, run: int = 1, order: Shape | None = None
) -> LinearEncoding:
    """The encoding with `threads` lanes that hold `run` neighbours along the first dimension of `order` (fastest
    first; the last dimension where None), fewer where a warp has not so much. `shape` is that of the largest tensor.
    """
    order = order or tuple(reversed(range(len(shape))))
    cuts = encoding.cut(shape)
    size, rank = tuple(cut.size for cut in cuts), len(shape)
    taken = [1] * rank

    def bits(most: int) -> list[Shape]:
        """The next bits along the fastest dimensions that are left, `most` at most."""
        found: list[Shape] = []
        for dim in order:
            while len(found) < most and taken[dim] < size[dim]:
                found.append(_along(dim, taken[dim], rank))
                taken[dim] *= 2
        return found

    run = min(run, max(1, math.prod(size) // threads), size[order[0]])
    registers = bits(_bits(run))
    lanes = bits(_bits(threads))
    lanes += [(0,) * rank] * (_bits(threads) - len(lanes))
    registers += bits(_bits(math.prod(size)))
    return LinearEncoding(rank, tuple(registers), tuple(lanes), _warps(cuts))


def by_rows(encoding: Encoding, shape: Shape) -> LinearEncoding:
    """The same elements in the same lanes, with a lane's registers in row-major order."""
    layout = linear_layout(encoding, shape)
    registers = tuple(sorted(layout.vectors("register")))
    return LinearEncoding(len(shape), registers, layout.vectors("lane"), layout.vectors("warp"))


def lane_run(encoding: Encoding, shape: Shape, dim: int) -> int:
    """How many neighbours along a dimension a lane has in a row."""
    run = 1
    for vector in linear_layout(encoding, shape).vectors("register"):
        if vector != _along(dim, run, len(shape)):
            break
        run *= 2
    return run


def order_of(encoding: Encoding, shape: Shape) -> Shape:
    """The dimensions of a block, first that along which a lane has neighbours; the last where it has none."""
    first = linear_layout(encoding, shape).vectors("register")[:1]
    fastest = next((dim for vector in first for dim, step in enumerate(vector) if step), len(shape) - 1)
    return (fastest, *(dim for dim in reversed(range(len(shape))) if dim != fastest))


def _warps(cuts: Sequence[Cut]) -> Bases:
    """The parts of each warp, bit by bit of its number."""
    rank = len(cuts)
    found: dict[int, Shape] = {}
    for dim, cut in enumerate(cuts):
        for step in range(_bits(cut.warps)):
            found[_bits(cut.stride) + step] = _along(dim, cut.size << step, rank)
    return tuple(found.get(bit, (0,) * rank) for bit in range(max(found, default=-1) + 1))


def _along(dim: int, step: int, rank: int) -> Shape:
    return tuple(step * (d == dim) for d in range(rank))


def _bits(count: int) -> int:
    return count.bit_length() - 1
