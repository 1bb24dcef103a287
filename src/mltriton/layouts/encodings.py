"""Layout encodings: the attribute of a tensor type that says which warp owns which part.

Level: ttg and warp. Names and text are upstream's (`#ttg.blocked`, `#ttg.slice`, `#ttg.dot_op`). A blocked encoding states what a *warp* owns (`sizePerWarp`, ML-Triton
paper section 2.1); upstream's per-thread form (`sizePerThread`, `threadsPerWarp`) is read too and gives `sizePerWarp` as their product.
Guarantees: immutable, interned. `warp_tile` is the paper's Table 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from mltriton.ir.attributes import Attribute

Shape = tuple[int, ...]


class Encoding(Attribute):
    """Base of layout encodings."""

    __slots__ = ()

    def warp_tile(self, shape: Shape) -> tuple[Shape, Shape]:
        """(size per warp, warps per dimension) for a tensor of `shape`: Table 3 of the ML-Triton paper.

        Warps number dimensions in row-major order: the last dimension varies fastest. Where warps per dimension times size per warp exceeds the shape,
        warps wrap around and hold the same part.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class BlockedEncoding(Encoding):
    """`#ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>`; `order` lists dimensions, fastest first.

    With `size_per_thread` and `threads_per_warp` it is upstream's form and also says which lane owns what.
    """

    size_per_warp: Shape
    warps_per_cta: Shape
    order: Shape
    size_per_thread: Shape | None = None
    threads_per_warp: Shape | None = None

    def warp_tile(self, shape: Shape) -> tuple[Shape, Shape]:
        return self.size_per_warp, self.warps_per_cta


@dataclass(frozen=True, eq=False)
class SliceEncoding(Encoding):
    """`#ttg.slice<{dim = 1, parent = #blocked}>`: the parent with dimension `dim` taken away; the warps along it hold the same part."""

    dim: int
    parent: Encoding

    def warp_tile(self, shape: Shape) -> tuple[Shape, Shape]:
        size, warps = self.parent.warp_tile((*shape[: self.dim], 1, *shape[self.dim :]))
        return _erase(size, self.dim), _erase(warps, self.dim)


@dataclass(frozen=True, eq=False)
class DotOperandEncoding(Encoding):
    """`#ttg.dot_op<{opIdx = 0, parent = #blocked}>`: operand `op_idx` (0 = A, 1 = B) of a dot whose result has layout `parent`: K is whole in every warp."""

    op_idx: int
    parent: Encoding
    k_width: int = 0

    def warp_tile(self, shape: Shape) -> tuple[Shape, Shape]:
        size, warps = self.parent.warp_tile(shape)
        k = len(shape) - 1 - self.op_idx
        return (*size[:k], shape[k], *size[k + 1 :]), warps


def _erase(values: Shape, index: int) -> Shape:
    return (*values[:index], *values[index + 1 :])
