"""Layout encodings of tensors: the attribute of a type that says which warp owns which part.

Level: ttg and warp. Names and text are upstream's (`#ttg.blocked`, `#ttg.slice`, `#ttg.dot_op`). A blocked encoding
states what a *warp* owns (`sizePerWarp`, ML-Triton paper section 2.1); upstream's per-thread form (`sizePerThread`,
`threadsPerWarp`) is read too and gives `sizePerWarp` as their product. `cut` is the paper's Table 3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mltriton.layouts.base import Cut as Cut
from mltriton.layouts.base import Encoding as Encoding
from mltriton.layouts.base import MatrixEncoding as MatrixEncoding
from mltriton.layouts.base import MessageEncoding as MessageEncoding
from mltriton.layouts.base import NoLanesError, cuts
from mltriton.layouts.explicit import BasesEncoding
from mltriton.layouts.fields import EncodingTextError, Fields, check_ranks, integer, require, shape
from mltriton.layouts.fields import Shape as Shape

if TYPE_CHECKING:
    from mltriton.layouts.linear import LinearLayout


class BlockedEncoding(BasesEncoding):
    """`#ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>`; `order` lists dimensions,
    fastest first, for warps too.

    With `size_per_thread` and `threads_per_warp` it is upstream's form and also says which lane owns what.
    """

    mnemonic = "ttg.blocked"
    alias = "blocked"
    size_per_warp: Shape
    warps_per_cta: Shape
    order: Shape
    size_per_thread: Shape | None = None
    threads_per_warp: Shape | None = None

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        return cuts(self.size_per_warp, self.warps_per_cta, self.order)

    @property
    def warps(self) -> int:
        return math.prod(self.warps_per_cta)

    def extent(self, dim: int) -> int:
        return self.size_per_warp[dim] * self.warps_per_cta[dim]

    def linear_layout(self, shape: Shape) -> LinearLayout:
        """Elements of a thread, then threads, then warps, each along the fastest dimension first."""
        if self.size_per_thread is None or self.threads_per_warp is None:
            raise NoLanesError("a blocked encoding without sizePerThread has no lanes")
        from mltriton.layouts.growing import Growing  # Targets without lanes ask for no linear layout.

        layout = Growing([], [], (1,) * len(shape))
        for input, counts in (
            ("register", self.size_per_thread),
            ("lane", self.threads_per_warp),
            ("warp", self.warps_per_cta),
        ):
            for dim in self.order:
                layout.repeat(input, dim, counts[dim])
        return layout.fill(shape, self.order)

    def fields(self) -> Fields:
        sizes: Fields = {"sizePerWarp": self.size_per_warp}
        if self.size_per_thread is not None and self.threads_per_warp is not None:
            sizes = {"sizePerThread": self.size_per_thread, "threadsPerWarp": self.threads_per_warp}
        return {**sizes, "warpsPerCTA": self.warps_per_cta, "order": self.order}

    @classmethod
    def build(cls, fields: Fields) -> BlockedEncoding:
        warps, order = shape(fields, "warpsPerCTA"), shape(fields, "order")
        if "sizePerThread" not in fields:
            sizes = shape(fields, "sizePerWarp")
            check_ranks(order, sizes, warps)
            return BlockedEncoding(sizes, warps, order)
        size, threads = shape(fields, "sizePerThread"), shape(fields, "threadsPerWarp")
        check_ranks(order, size, threads, warps)
        return BlockedEncoding(tuple(map(math.prod, zip(size, threads, strict=True))), warps, order, size, threads)


class SliceEncoding(Encoding):
    """`#ttg.slice<{dim = 1, parent = #blocked}>`: the parent with dimension `dim` taken away; the warps along it hold
    the same part.
    """

    mnemonic = "ttg.slice"
    alias = "slice"
    dim: int
    parent: Encoding

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        cuts = self.parent.cut((*shape[: self.dim], 1, *shape[self.dim :]))
        return (*cuts[: self.dim], *cuts[self.dim + 1 :])

    @property
    def warps(self) -> int:
        return self.parent.warps

    def extent(self, dim: int) -> int:
        return self.parent.extent(dim + (dim >= self.dim))

    def linear_layout(self, shape: Shape) -> LinearLayout:
        """The parent's layout with its dimension forgotten; registers that repeat others are dropped."""
        from mltriton.layouts.hardware import linear_layout  # As above.
        from mltriton.layouts.linear import LinearLayout

        dim = self.dim
        parent = linear_layout(self.parent, (*shape[:dim], self.parent.extent(dim), *shape[dim:]))
        left = parent.without(f"dim{dim}").renamed({f"dim{d + 1}": f"dim{d}" for d in range(dim, len(shape))})
        bases = {name: list(left.vectors(name)) for name in left.inputs}
        bases["register"] = [vector for vector in bases["register"] if any(vector)]
        return LinearLayout.of(bases, dict(zip(left.outputs, left.sizes, strict=True)))

    def lane_tile(self, rank: int) -> Shape:
        whole = self.parent.lane_tile(rank + 1)
        return (*whole[: self.dim], *whole[self.dim + 1 :])

    def piece(self, box: Shape) -> Encoding:
        parent = self.parent.lane_tile(len(box) + 1)
        return SliceEncoding(self.dim, self.parent.piece((*box[: self.dim], parent[self.dim], *box[self.dim :])))

    def fields(self) -> Fields:
        return {"dim": self.dim, "parent": self.parent}

    @classmethod
    def build(cls, fields: Fields) -> SliceEncoding:
        return SliceEncoding(integer(fields, "dim"), _parent(fields))


class DotOperandEncoding(Encoding):
    """`#ttg.dot_op<{opIdx = 0, parent = #blocked}>`: operand `op_idx` (0 = A, 1 = B) of a dot whose result has layout
    `parent`: K is whole in every warp. `k_width`, where the instruction has lanes take so many elements in a row.
    """

    mnemonic = "ttg.dot_op"
    op_idx: int
    parent: Encoding
    k_width: int = 0

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        cuts = self.parent.cut(shape)
        k = len(shape) - 1 - self.op_idx
        return (*cuts[:k], Cut(shape[k], cuts[k].warps, cuts[k].stride), *cuts[k + 1 :])

    @property
    def warps(self) -> int:
        return self.parent.warps

    def extent(self, dim: int) -> int:
        return self.parent.operand_extent(self, dim)

    def linear_layout(self, shape: Shape) -> LinearLayout:
        return self.parent.operand_layout(self, shape)

    def lane_tile(self, rank: int) -> Shape:
        return (*[1] * (rank - 2), *self.parent.operand_tile(self))

    def piece(self, box: Shape) -> Encoding:
        return DotOperandEncoding(self.op_idx, self.parent.operand_piece(self, box), self.k_width)

    def word_bytes(self, element_bytes: int) -> int:
        return self.parent.operand_word_bytes(self, element_bytes)

    @property
    def alias_base(self) -> str:
        return f"dot{self.op_idx}"

    def fields(self) -> Fields:
        width: Fields = {"kWidth": self.k_width} if self.k_width else {}
        return {"opIdx": self.op_idx, "parent": self.parent, **width}

    @classmethod
    def build(cls, fields: Fields) -> DotOperandEncoding:
        index = integer(fields, "opIdx")
        require(index in (0, 1), "opIdx must be 0 or 1")
        return DotOperandEncoding(index, _parent(fields), integer(fields, "kWidth", 0))


def operand_of(dot: Encoding, index: int, element_bytes: int) -> DotOperandEncoding:
    """The encoding of operand `index` of a dot whose result has encoding `dot`."""
    return DotOperandEncoding(index, dot, dot.k_width(element_bytes) if isinstance(dot, MatrixEncoding) else 0)


def _parent(fields: Fields) -> Encoding:
    value = fields.get("parent")
    if not isinstance(value, Encoding):
        raise EncodingTextError("parent must be an encoding")
    return value


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


def parts_of(encoding: Encoding, shape: Shape) -> int:
    """Number of different parts of a tensor of `shape` that warps have."""
    return math.prod(cut.parts(extent) for cut, extent in zip(encoding.cut(shape), shape, strict=True))


def same_part(a: Cut, b: Cut, extent: int) -> bool:
    """Whether every warp has the same part of a dimension of `extent` elements under both cuts."""
    if min(a.size, extent) != min(b.size, extent):
        return False
    return a.parts(extent) == b.parts(extent) == 1 or (a.warps, a.stride) == (b.warps, b.stride)
