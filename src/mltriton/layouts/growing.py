"""A linear layout under construction: a tile that grows along one dimension of the tensor at a time.

Level: ttg to llvm. What the encodings' classes make their linear layouts with.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.layouts.linear import LinearLayout

Shape = tuple[int, ...]
Vectors = list[Shape]


class Growing:
    """Bases of registers, lanes and warps; `tile` is what they reach."""

    def __init__(self, registers: Sequence[Shape], lanes: Sequence[Shape], tile: Shape) -> None:
        self.bases: dict[str, Vectors] = {"register": list(registers), "lane": list(lanes), "warp": []}
        self.tile = list(tile)

    @staticmethod
    def matrix(rank: int, registers: Sequence[Shape], lanes: Sequence[Shape], tile: Shape) -> Growing:
        """One instruction's tile of the first batch, from bases of rows and columns."""
        none = (0,) * (rank - 2)
        registers, lanes = ([(*none, *vector) for vector in vectors] for vectors in (registers, lanes))
        return Growing(registers, lanes, (*(1 for _ in none), *tile))

    def repeat(self, input: str, dim: int, count: int) -> None:
        """`count` tiles along `dim`, numbered by the next bits of `input`."""
        dim %= len(self.tile)
        for _ in range(bits(count)):
            vector = [0] * len(self.tile)
            vector[dim] = self.tile[dim]
            self.bases[input].append(tuple(vector))
            self.tile[dim] *= 2

    def share(self, input: str, count: int) -> None:
        """The next bits of `input` change nothing."""
        self.bases[input] += [(0,) * len(self.tile)] * bits(count)

    def batches(self, registers: Shape, warps: Shape) -> Growing:
        """Matrices of one warp next to each other, then those of other warps, after everything else."""
        for dim in reversed(range(len(self.tile) - 2)):
            self.repeat("register", dim, registers[dim])
            self.repeat("warp", dim, warps[dim])
        return self

    def fill(self, shape: Shape, dims: Sequence[int]) -> LinearLayout:
        """Registers repeat the tile over the tensor along `dims` in order. What lies outside wraps around."""
        for dim in dims:
            self.repeat("register", dim, max(1, shape[dim] // self.tile[dim]))
        wrapped = {
            name: [tuple(x % size for x, size in zip(vector, shape, strict=True)) for vector in vectors]
            for name, vectors in self.bases.items()
        }
        return LinearLayout.of(wrapped, {f"dim{dim}": size for dim, size in enumerate(shape)})


def steps(first: int, end: int) -> list[int]:
    """first, twice that, ... below `end`."""
    found: list[int] = []
    while first < end:
        found.append(first)
        first *= 2
    return found


def bits(count: int) -> int:
    """The bits of a number below `count`, a power of two."""
    return count.bit_length() - 1
