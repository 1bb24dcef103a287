"""Encodings of NVIDIA's matrix instructions: `#ttg.nvidia_mma`, version 2 (`mma.sync`) and version 3 (`wgmma`).

Level: ttg to llvm. Name and text are upstream's; `repCluster` is ours. Source: PTX ISA, "Matrix Fragments for
mma.m16n8k*" and "Register Fragments and Shared Memory Matrix Layouts" of wgmma. In both, with g = lane / 4 and
t = lane % 4, a lane has of each 16 x 8 of the result the elements (g, 2t), (g, 2t + 1) and the same 8 rows below.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mltriton.layouts.base import Cut, MatrixEncoding, SharedEncoding, cuts, last_first
from mltriton.layouts.encodings import DotOperandEncoding, NoLanesError
from mltriton.layouts.fields import Fields, Shape, check_ranks, integer, powers, require
from mltriton.layouts.growing import Growing, Vectors, steps
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.shared import SWIZZLES, NvmmaSharedEncoding, swizzled

if TYPE_CHECKING:
    from mltriton.targets.base import DotSize, ResultPerWarp

ROWS = 16  # of the result of one instruction in one warp
COLUMNS = 8  # of the smallest result; `wgmma` has a multiple of it
MOST_COLUMNS = 256
HEIGHTS = (ROWS, 2 * ROWS, 4 * ROWS)  # of what a warp has of results of `wgmma`, or of two or four of them
WORD = 4  # bytes of a register
MOST_WARPS_OF_WIDE = 12  # with as many registers as results of 256 columns take
GROUP = 4  # warps that one wgmma keeps busy: their 16 rows lie below each other


class NvidiaMmaEncoding(MatrixEncoding):
    """`#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>`.

    `instruction` is what one instruction gives to a warp: 16 rows and 8 columns of version 2, [16, N, K] of version 3.
    There it may be several instructions below each other, 32 or 64 rows: each has every second, or fourth, group of 8
    rows, so that a warp's rows lie next to each other.
    `rep_cluster` instructions down and across lie next to each other in a warp (none is stated where it is one, as in
    upstream's text), then the warps, then both are repeated over the tensor. Warps are numbered along the last
    dimension first in version 2; along the rows first in version 3, where four of them act together.
    """

    mnemonic = "ttg.nvidia_mma"
    alias = "mma"
    version: int
    warps_per_cta: Shape
    instruction: Shape
    rep_cluster: Shape = ()
    minor: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of one instruction's result in one warp."""
        rows, columns = self.instruction[:2] if self.version == 3 else self.instruction[-2:]
        return rows, columns

    @property
    def together(self) -> int:
        return GROUP if self.version == 3 else 1

    @property
    def cluster(self) -> Shape:
        """`rep_cluster`, all of it."""
        return self.rep_cluster or (1,) * len(self.warps_per_cta)

    @property
    def tile(self) -> Shape:
        """Rows and columns (after batches) of the result that a warp has next to each other."""
        *batch, rows, columns = self.cluster
        return *batch, self.size[0] * rows, self.size[1] * columns

    @property
    def warp_order(self) -> Shape:
        """The dimensions in which warps are numbered, the fastest first."""
        rank = len(self.warps_per_cta)
        order = last_first(rank)
        return order if self.version == 2 else (rank - 2, rank - 1, *order[2:])

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        return cuts(self.tile, self.warps_per_cta, self.warp_order)

    def linear_layout(self, shape: Shape) -> LinearLayout:
        rows, columns = self.size
        registers: Vectors = [(0, 1), (rows // 2, 0), *((0, column) for column in steps(COLUMNS, columns))]
        registers += self._further_rows
        lanes: Vectors = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
        layout = Growing.matrix(len(shape), registers, lanes, (rows, columns))
        layout.repeat("register", -1, self.cluster[-1])
        layout.repeat("register", -2, self.cluster[-2])
        return self._filled(layout, shape, (-1, -2))

    @property
    def _further_rows(self) -> Vectors:
        """Where the rows of further instructions lie: 8 by 8 between those of the first."""
        return [(row, 0) for row in steps(8, self.size[0] // 2)]

    def _filled(self, layout: Growing, shape: Shape, matrix: Shape, shared: int | None = None) -> LinearLayout:
        """Warps, which have the same along dimension `shared`, then batches, then registers along `matrix`."""
        rank = len(shape)
        for dim in self.warp_order[:2]:
            count = self.warps_per_cta[dim]
            layout.share("warp", count) if dim == shared else layout.repeat("warp", dim, count)
        return layout.batches(self.cluster, self.warps_per_cta).fill(shape, (*matrix, *range(rank - 2)))

    def lane_tile(self, rank: int) -> Shape:
        return (*[1] * (rank - 2), *self.size)

    def piece(self, box: Shape) -> NvidiaMmaEncoding:
        *batch, rows, columns = box
        cluster = (*batch, max(1, rows // self.size[0]), max(1, columns // self.size[1]))
        return self.replaced(warps_per_cta=(1,) * len(box), rep_cluster=_stated(cluster))

    # Operands

    def takes_lines(self, index: int) -> bool:
        return index == 0 and self.size[0] > ROWS

    def k_width(self, element_bytes: int) -> int:
        return max(1, WORD // element_bytes)

    def operand_extent(self, operand: DotOperandEncoding, dim: int) -> int:
        is_k = dim == len(self.warps_per_cta) - 1 - operand.op_idx
        return 8 * operand.k_width if is_k else self.extent(dim)

    def operand_tile(self, operand: DotOperandEncoding) -> Shape:
        """As much as `ldmatrix.x4` brings, where a warp has that much: four matrices of 8 rows of 16 bytes."""
        k = 8 * operand.k_width
        return (self.size[0], k) if operand.op_idx == 0 else (k, min(2 * COLUMNS, self.tile[-1]))

    def operand_piece(self, operand: DotOperandEncoding, box: Shape) -> NvidiaMmaEncoding:
        """Only the dimension that the operand shares with the result says anything about the result's layout."""
        *batch, rows, columns = box
        result = (rows, self.size[1]) if operand.op_idx == 0 else (self.size[0], columns)
        return self.piece((*batch, *result))

    def operand_layout(self, operand: DotOperandEncoding, shape: Shape) -> LinearLayout:
        """Registers of `kWidth` neighbours along k; lane t has the t-th of four, and the t-th of the next four."""
        width, rank = operand.k_width, len(shape)
        if not width or (self.version == 3 and operand.op_idx == 1):
            missing = "its kWidth" if not width else "it in registers: wgmma reads it from shared memory"
            raise NoLanesError(f"operand {operand.op_idx} of #ttg.nvidia_mma has no lanes without {missing}")
        along = [*steps(1, width), 4 * width]
        if operand.op_idx == 0:
            rows = self.size[0]
            registers: Vectors = [*((0, k) for k in along[:-1]), (rows // 2, 0), (0, along[-1]), *self._further_rows]
            lanes: Vectors = [(0, width), (0, 2 * width), (1, 0), (2, 0), (4, 0)]
            layout = Growing.matrix(rank, registers, lanes, (rows, 8 * width))
            layout.repeat("register", -2, self.cluster[-2])
            return self._filled(layout, shape, (-1, -2), rank - 1)
        lanes = [(width, 0), (2 * width, 0), (0, 1), (0, 2), (0, 4)]
        layout = Growing.matrix(rank, [(k, 0) for k in along], lanes, (8 * width, COLUMNS))
        layout.repeat("register", -1, self.cluster[-1])
        return self._filled(layout, shape, (-2, -1), rank - 2)

    def operand_in_shared(
        self, operand: DotOperandEncoding, shape: Shape, element_bytes: int, order: Shape
    ) -> SharedEncoding:
        """As wgmma reads it, which takes elements of other than two bytes only along K (lanes read left ones of four
        bytes that lie otherwise); for `ldmatrix` so that 8 neighbours across rows of 16 bytes are in different banks.
        """
        if self.version == 3:
            k = len(shape) - 1 - operand.op_idx
            left = operand.op_idx == 0
            is_free = left if element_bytes == 4 else element_bytes == 2 and not self.takes_lines(operand.op_idx)
            fastest = order[0] if is_free else k
            line = shape[fastest] * element_bytes
            swizzle = next((width for width in reversed(SWIZZLES) if width <= line), 0)
            return NvmmaSharedEncoding(swizzle, fastest == len(shape) - 2, 8 * element_bytes)
        return swizzled(shape[order[0]] * element_bytes, element_bytes, order)

    # Text

    def fields(self) -> Fields:
        return {
            "versionMajor": self.version,
            "versionMinor": self.minor,
            "warpsPerCTA": self.warps_per_cta,
            "instrShape": self.instruction,
            **({"repCluster": self.rep_cluster} if self.rep_cluster else {}),
        }

    @classmethod
    def build(cls, fields: Fields) -> NvidiaMmaEncoding:
        version, instruction = integer(fields, "versionMajor"), powers(fields, "instrShape")
        warps = powers(fields, "warpsPerCTA")
        cluster = powers(fields, "repCluster") if "repCluster" in fields else ()
        check_ranks(tuple(range(len(warps))), warps, *([cluster] if cluster else []))
        require(version in (2, 3), "versionMajor must be 2 (mma.sync) or 3 (wgmma)")
        if version == 2:
            one = (*[1] * (len(warps) - 2), ROWS, COLUMNS)
            require(instruction == one, f"instrShape of version 2 must be {list(one)}")
        else:
            fits = len(instruction) == 3 and instruction[0] in HEIGHTS and COLUMNS <= instruction[1] <= MOST_COLUMNS
            rows = " or ".join(map(str, HEIGHTS))
            require(fits, f"instrShape of version 3 must be [{rows}, N, K] with N from {COLUMNS} to {MOST_COLUMNS}")
            require(warps[-2] % GROUP == 0 or math.prod(warps) == 1, "four warps of version 3 lie below each other")
        return NvidiaMmaEncoding(version, warps, instruction, _stated(cluster), integer(fields, "versionMinor", 0))


def mma_sync(size: DotSize, result: ResultPerWarp) -> NvidiaMmaEncoding:
    """The encoding of results of `mma.sync`."""
    *batch, rows, columns = result.shape
    cluster = (*batch, max(1, rows // ROWS), max(1, columns // COLUMNS))
    return NvidiaMmaEncoding(2, result.warps, (*[1] * len(batch), ROWS, COLUMNS), _stated(cluster))


def wgmma(size: DotSize, result: ResultPerWarp) -> NvidiaMmaEncoding:
    """The encoding of results of `wgmma`, as wide as the per-warp shape and its registers allow."""
    *batch, rows, columns = result.shape
    most = size.n if math.prod(result.warps) <= MOST_WARPS_OF_WIDE else size.n // 2
    height = min(max(rows, ROWS), HEIGHTS[-1])
    width = min(max(columns, COLUMNS), most * ROWS // height)
    cluster = (*batch, max(1, rows // height), max(1, columns // width))
    return NvidiaMmaEncoding(3, result.warps, (height, width, size.k), _stated(cluster))


def _stated(cluster: Shape) -> Shape:
    """A cluster, where it is more than one instruction."""
    return cluster if math.prod(cluster) > 1 else ()
