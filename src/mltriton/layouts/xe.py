"""Encodings of Intel's matrix engine and block loads: `#ttig.dpas` and `#ttig.subgroup_2d_block`.

Level: ttg and warp. Names and fields are those of Intel's Triton back end. Guarantees: immutable, interned; the
`cut` between warps follows from the same fields as the place of each element (`hardware.py`).
"""

from __future__ import annotations

from mltriton.layouts.encodings import Cut, Encoding, Shape

WORD = 4  # bytes that a register has for each lane


class DpasEncoding(Encoding):
    """`#ttig.dpas<{...}>`: the result of dots on the systolic array.

    One instruction multiplies [repeat_count, systolic_depth * ops_per_channel] by [that, execution_size];
    `rep_cluster` instructions down and across lie next to each other, then the warps, then both are repeated over the
    tensor. `ops_per_channel` is 1 for 32-bit, 2 for 16-bit and 4 for 8-bit operands.

    The engine multiplies row by row and does not know which rows they are: `row_bases` says for the bits 1, 2, 4, ...
    of a row's number in the instruction which row of the tile it is, of the left operand and of the result alike. None
    stands for the natural order, (1, 2, 4).
    """

    repeat_count: int
    systolic_depth: int
    execution_size: int
    ops_per_channel: int
    threads_per_warp: int
    warps_per_cta: Shape
    rep_cluster: Shape
    row_bases: Shape | None = None

    @property
    def rows(self) -> Shape:
        """The bases of the rows of one instruction."""
        return self.row_bases or tuple(1 << bit for bit in range(self.repeat_count.bit_length() - 1))

    @property
    def tile(self) -> Shape:
        """Rows and columns (after batches) of the result that a warp has next to each other."""
        *batch, rows, columns = self.rep_cluster
        return *batch, self.repeat_count * rows, self.execution_size * columns

    @property
    def depth(self) -> int:
        """Products that one instruction adds up."""
        return self.systolic_depth * self.ops_per_channel

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        return tuple(_cuts(self.tile, self.warps_per_cta))


class Subgroup2DBlockEncoding(Encoding):
    """`#ttig.subgroup_2d_block<{...}>`: what a 2D block load leaves in the registers of a warp.

    `block` is the height and width of one block, of which `blocks` lie side by side: what one load brings. Lanes run
    along its width. `element_bytes` is the field that upstream calls kWidth. Where a warp has more, `size_per_warp`
    says how much lies next to each other: loads are repeated down, then across, before the next warp's part. Without
    it a warp has one load's block, and warps along the fastest dimension of `order` hold the same part: the left
    operand of a dot has order [1, 0], the right one [0, 1]. A tensor of rank 3 and more has `size_per_warp`, and as
    many matrices of a warp, one after the other, as its leading sizes say.

    `packed_rows`, where it is not 1: so many rows lie side by side in a word of each lane, as a transposing load brings
    them. Columns beyond the last lane are then in the next word.
    """

    warps_per_cta: Shape
    block: Shape
    blocks: int
    order: Shape
    element_bytes: int
    threads_per_warp: int = 16
    size_per_warp: Shape | None = None
    packed_rows: int = 1

    def is_vnni(self, element_bytes: int) -> bool:
        """Whether it is loaded with the elements of 32 bits below each other in one register: a right operand."""
        return self.columns_first and element_bytes < WORD and self.block[1] == self.threads_per_warp

    @property
    def tile(self) -> Shape:
        """Rows and columns (after batches) of one load."""
        return (*[1] * (len(self.warps_per_cta) - 2), self.block[0], self.block[1] * self.blocks)

    @property
    def columns_first(self) -> bool:
        """Whether it is meant for the right operand of a dot, of which a lane takes columns."""
        return self.order[0] == len(self.order) - 2

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        if self.size_per_warp is not None:
            return tuple(_cuts(self.size_per_warp, self.warps_per_cta))
        cuts = _cuts(self.tile, self.warps_per_cta)
        whole = self.order[0]
        cuts[whole] = Cut(shape[whole], cuts[whole].warps, cuts[whole].stride)
        return tuple(cuts)


def _cuts(sizes: Shape, warps_per_cta: Shape) -> list[Cut]:
    """Parts of these sizes, warps along the last dimension first."""
    cuts: list[Cut] = []
    stride = 1
    for size, warps in zip(reversed(sizes), reversed(warps_per_cta), strict=True):
        cuts.insert(0, Cut(size, warps, stride))
        stride *= warps
    return cuts
