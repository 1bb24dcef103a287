"""Layout encodings: the attribute of a tensor type that says which warp owns which part.

Level: ttg and warp. Names and text are upstream's (`#ttg.blocked`, `#ttg.slice`, `#ttg.dot_op`). A blocked encoding
states what a *warp* owns (`sizePerWarp`, ML-Triton paper section 2.1); upstream's per-thread form (`sizePerThread`,
`threadsPerWarp`) is read too and gives `sizePerWarp` as their product. Guarantees: immutable, interned. `cut` is the
paper's Table 3.
"""

from __future__ import annotations

from typing import NamedTuple

from mltriton.ir.attributes import Attribute

Shape = tuple[int, ...]


class Encoding(Attribute):
    """Base of layout encodings."""

    __slots__ = ()

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        """How a tensor of `shape` is cut between warps, dimension by dimension."""
        raise NotImplementedError

    def share(self, shape: Shape) -> Shape:
        """The shape of one warp's part of a tensor of `shape`."""
        return tuple(min(cut.size, extent) for cut, extent in zip(self.cut(shape), shape, strict=True))


class Cut(NamedTuple):
    """One dimension cut between warps: warp w has the `size` elements from ((w // stride) % warps) * size on, modulo
    the extent.

    Where warps * size exceeds the extent, several warps hold the same part.
    """

    size: int
    warps: int
    stride: int

    def parts(self, extent: int) -> int:
        """Number of different parts of a dimension of `extent` elements."""
        return max(1, min(self.warps, extent // self.size))


class BlockedEncoding(Encoding):
    """`#ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>`; `order` lists dimensions,
    fastest first, for warps too.

    With `size_per_thread` and `threads_per_warp` it is upstream's form and also says which lane owns what.
    """

    size_per_warp: Shape
    warps_per_cta: Shape
    order: Shape
    size_per_thread: Shape | None = None
    threads_per_warp: Shape | None = None

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        stride = 1
        strides = [1] * len(self.order)
        for dim in self.order:
            strides[dim] = stride
            stride *= self.warps_per_cta[dim]
        return tuple(Cut(*part) for part in zip(self.size_per_warp, self.warps_per_cta, strides, strict=True))


class SliceEncoding(Encoding):
    """`#ttg.slice<{dim = 1, parent = #blocked}>`: the parent with dimension `dim` taken away; the warps along it hold
    the same part.
    """

    dim: int
    parent: Encoding

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        cuts = self.parent.cut((*shape[: self.dim], 1, *shape[self.dim :]))
        return (*cuts[: self.dim], *cuts[self.dim + 1 :])


class DotOperandEncoding(Encoding):
    """`#ttg.dot_op<{opIdx = 0, parent = #blocked}>`: operand `op_idx` (0 = A, 1 = B) of a dot whose result has layout
    `parent`: K is whole in every warp.
    """

    op_idx: int
    parent: Encoding
    k_width: int = 0

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        cuts = self.parent.cut(shape)
        k = len(shape) - 1 - self.op_idx
        return (*cuts[:k], Cut(shape[k], cuts[k].warps, cuts[k].stride), *cuts[k + 1 :])


def as_blocked(encoding: Encoding, shape: Shape) -> BlockedEncoding | None:
    """The blocked encoding that cuts a tensor of `shape` the same way (Table 3 of the ML-Triton paper); None where
    warps are numbered as no blocked one does.
    """
    if isinstance(encoding, BlockedEncoding):
        return encoding
    cuts = encoding.cut(shape)
    order = tuple(sorted(range(len(shape)), key=lambda dim: (cuts[dim].stride, cuts[dim].warps > 1, -dim)))
    blocked = BlockedEncoding(tuple(cut.size for cut in cuts), tuple(cut.warps for cut in cuts), order)
    numbered_alike = all(a.stride == b.stride or a.warps == 1 for a, b in zip(blocked.cut(shape), cuts, strict=True))
    return blocked if numbered_alike else None


def same_cut(a: Encoding, b: Encoding, shape: Shape) -> bool:
    """Whether every warp holds the same part of a tensor of `shape` under both encodings, so that a conversion
    between them moves nothing.
    """
    return a is b or all(
        same_part(x, y, extent) for x, y, extent in zip(a.cut(shape), b.cut(shape), shape, strict=True)
    )


def same_part(a: Cut, b: Cut, extent: int) -> bool:
    """Whether every warp has the same part of a dimension of `extent` elements under both cuts."""
    if min(a.size, extent) != min(b.size, extent):
        return False
    return a.parts(extent) == b.parts(extent) == 1 or (a.warps, a.stride) == (b.warps, b.stride)
