"""Encodings of Intel's matrix engine and block loads: `#ttig.dpas` and `#ttig.subgroup_2d_block`.

Level: ttg to llvm. Names and fields are those of Intel's Triton back end. Guarantees: the `cut` between warps follows
from the same fields as the place of each element. Source: Intel's public unit tests for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import TYPE_CHECKING

from mltriton.layouts.base import Cut, MatrixEncoding, MessageEncoding, cuts, last_first
from mltriton.layouts.encodings import DotOperandEncoding, Encoding
from mltriton.layouts.fields import Fields, Shape, check_ranks, power, powers, require, shape
from mltriton.layouts.growing import Growing, Vectors, steps
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.xe.block_limits import MOST_ROW_BYTES, MOST_ROWS

if TYPE_CHECKING:
    from mltriton.targets.base import DotSize, ResultPerWarp

SYSTOLIC_DEPTH = 8  # steps of 32 bits in which a dot instruction adds up
WORD = 4  # bytes that a register has for each lane
HALF = WORD // 2


class DpasEncoding(MatrixEncoding):
    """`#ttig.dpas<{...}>`: the result of dots on the systolic array.

    One instruction multiplies [repeat_count, systolic_depth * ops_per_channel] by [that, execution_size];
    `rep_cluster` instructions down and across lie next to each other, then the warps, then both are repeated over the
    tensor. `ops_per_channel` is 1 for 32-bit, 2 for 16-bit and 4 for 8-bit operands.

    The engine multiplies row by row and does not know which rows they are: `row_bases` says for the bits 1, 2, 4, ...
    of a row's number in the instruction which row of the tile it is, of the left operand and of the result alike. None
    stands for the natural order, (1, 2, 4).
    """

    mnemonic = "ttig.dpas"
    alias = "dpas"
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

    def row_orders(self) -> Sequence[DpasEncoding]:
        return [self.replaced(row_bases=rows) for rows in permutations(self.rows) if rows != self.rows]

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        return cuts(self.tile, self.warps_per_cta, last_first(len(self.tile)))

    def linear_layout(self, shape: Shape) -> LinearLayout:
        """A row of the instruction's tile in the lanes; a warp of 32 has two rows."""
        rows, size = self.threads_per_warp // self.execution_size, self.execution_size
        in_lanes, in_registers = self._rows(rows)
        registers: Vectors = [(row, 0) for row in in_registers]
        lanes: Vectors = [(0, column) for column in steps(1, size)] + [(row, 0) for row in in_lanes]
        layout = Growing.matrix(len(shape), registers, lanes, (self.repeat_count, size))
        layout.repeat("register", -1, self.rep_cluster[-1])
        layout.repeat("register", -2, self.rep_cluster[-2])
        layout.repeat("warp", -1, self.warps_per_cta[-1])
        layout.repeat("warp", -2, self.warps_per_cta[-2])
        return self._filled(layout, shape, (-1, -2))

    def _rows(self, at_once: int) -> tuple[Shape, Shape]:
        """The bases of the rows of one instruction, of which one register has `at_once`: those in lanes, in
        registers.
        """
        bits = at_once.bit_length() - 1
        return self.rows[:bits], self.rows[bits:]

    def _filled(self, layout: Growing, shape: Shape, matrix: Shape) -> LinearLayout:
        layout.batches(self.rep_cluster, self.warps_per_cta)
        return layout.fill(shape, (*matrix, *range(len(shape) - 2)))

    def lane_tile(self, rank: int) -> Shape:
        return (*[1] * (rank - 2), self.repeat_count, self.execution_size)

    def piece(self, box: Shape) -> DpasEncoding:
        *batch, rows, columns = box
        cluster = (max(1, rows // self.repeat_count), max(1, columns // self.execution_size))
        return self.replaced(warps_per_cta=(1,) * len(box), rep_cluster=(*batch, *cluster))

    # Operands

    def operand_extent(self, operand: DotOperandEncoding, dim: int) -> int:
        is_k = dim == len(self.rep_cluster) - 1 - operand.op_idx
        return self.depth if is_k else self.extent(dim)

    def operand_tile(self, operand: DotOperandEncoding) -> Shape:
        """As much as the largest block load brings: 32 rows of 64 bytes, where a warp has that much."""
        columns = 16 * self.ops_per_channel
        if operand.op_idx == 0:
            return min(32, self.tile[-2]), max(columns, self.depth)
        return 32, min(columns, self.tile[-1])

    def operand_piece(self, operand: DotOperandEncoding, box: Shape) -> DpasEncoding:
        """Only the dimension that the operand shares with the result says anything about the result's layout."""
        *batch, rows, columns = box
        result = (rows, self.execution_size) if operand.op_idx == 0 else (self.repeat_count, columns)
        return self.piece((*batch, *result))

    def operand_word_bytes(self, operand: DotOperandEncoding, element_bytes: int) -> int:
        if element_bytes * self.ops_per_channel != WORD or element_bytes >= WORD:
            return element_bytes
        return HALF if operand.op_idx == 0 else WORD

    def operand_layout(self, operand: DotOperandEncoding, shape: Shape) -> LinearLayout:
        return (self._left if operand.op_idx == 0 else self._right)(shape)

    def _left(self, shape: Shape) -> LinearLayout:
        """A row of the left operand lies in the lanes, two bytes next to each other in one."""
        packed = 2 if self.ops_per_channel == 4 else 1
        columns = self.depth // packed
        in_lanes, in_registers = self._rows(-(-self.threads_per_warp // columns))
        registers: Vectors = [(0, k) for k in steps(1, packed)] + [(row, 0) for row in in_registers]
        lanes: Vectors = [(0, packed * k) for k in steps(1, min(columns, self.threads_per_warp))]
        lanes += [(row, 0) for row in in_lanes]
        layout = Growing.matrix(len(shape), registers, lanes, (self.repeat_count, self.depth))
        layout.repeat("register", -2, self.rep_cluster[-2])
        layout.share("warp", self.warps_per_cta[-1])
        layout.repeat("warp", -2, self.warps_per_cta[-2])
        return self._filled(layout, shape, (-1, -2))

    def _right(self, shape: Shape) -> LinearLayout:
        """A column of the right operand lies in one lane, the elements of 32 bits next to each other (VNNI)."""
        ops, size = self.ops_per_channel, self.execution_size
        rows = self.threads_per_warp // size
        registers: Vectors = [(k, 0) for k in steps(1, ops)]
        registers += [(row * ops, 0) for row in steps(rows, self.systolic_depth)]
        lanes: Vectors = [(0, column) for column in steps(1, size)] + [(row * ops, 0) for row in steps(1, rows)]
        layout = Growing.matrix(len(shape), registers, lanes, (self.depth, size))
        layout.repeat("register", -1, self.rep_cluster[-1])
        layout.repeat("warp", -1, self.warps_per_cta[-1])
        layout.share("warp", self.warps_per_cta[-2])
        return self._filled(layout, shape, (-2, -1))

    # Text

    def fields(self) -> Fields:
        return {
            "repeatCount": self.repeat_count,
            "systolicDepth": self.systolic_depth,
            "executionSize": self.execution_size,
            "opsPerChan": self.ops_per_channel,
            "threadsPerWarp": self.threads_per_warp,
            "warpsPerCTA": self.warps_per_cta,
            "repCluster": self.rep_cluster,
            **({} if self.row_bases is None else {"rowBases": self.row_bases}),
        }

    @classmethod
    def build(cls, fields: Fields) -> DpasEncoding:
        """Upstream also writes the shapes of the operands (A, B, C), which follow from the rest."""
        numbers = ("repeatCount", "systolicDepth", "executionSize", "opsPerChan", "threadsPerWarp")
        sizes = [power(fields, name) for name in numbers]
        warps, cluster = powers(fields, "warpsPerCTA"), powers(fields, "repCluster")
        check_ranks(tuple(range(len(warps))), warps, cluster)
        made = DpasEncoding(*sizes, warps, cluster)
        require(made.threads_per_warp >= made.execution_size, "threadsPerWarp must be executionSize or more")
        if "rowBases" not in fields:
            return made
        bases = shape(fields, "rowBases")
        require(sorted(bases) == list(made.rows), f"rowBases must have each of {list(made.rows)} once")
        return made if bases == made.rows else made.replaced(row_bases=bases)


def dpas(size: DotSize, result: ResultPerWarp) -> DpasEncoding:
    """The encoding of results of the matrix engine."""
    *batch, rows, columns = result.shape
    repeat = min((count for count in size.fewer_rows if count >= rows), default=size.m)
    cluster = (*batch, max(1, rows // repeat), max(1, columns // size.n))
    ops = size.k // SYSTOLIC_DEPTH
    return DpasEncoding(repeat, SYSTOLIC_DEPTH, size.n, ops, result.lanes, result.warps, cluster)


class Subgroup2DBlockEncoding(MessageEncoding):
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

    mnemonic = "ttig.subgroup_2d_block"
    alias = "block"
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
    def fastest(self) -> int:
        return self.order[0]

    @property
    def summary(self) -> str:
        several = f"{self.blocks} blocks of " if self.blocks > 1 else "one block of "
        return f"{several}{'x'.join(map(str, self.block))}"

    @property
    def columns_first(self) -> bool:
        """Whether it is meant for the right operand of a dot, of which a lane takes columns."""
        return self.order[0] == len(self.order) - 2

    def cut(self, shape: Shape) -> tuple[Cut, ...]:
        rank = len(self.warps_per_cta)
        if self.size_per_warp is not None:
            return cuts(self.size_per_warp, self.warps_per_cta, last_first(rank))
        found = list(cuts(self.tile, self.warps_per_cta, last_first(rank)))
        whole = self.order[0]
        found[whole] = Cut(shape[whole], found[whole].warps, found[whole].stride)
        return tuple(found)

    @property
    def warps(self) -> int:
        return math.prod(self.warps_per_cta)

    def extent(self, dim: int) -> int:
        if self.size_per_warp is not None:
            return self.size_per_warp[dim] * self.warps_per_cta[dim]
        return self.tile[dim]

    def linear_layout(self, shape: Shape) -> LinearLayout:
        """Neighbouring columns in one lane as far as a row is longer than the warp; lanes along columns, then rows."""
        registers, lanes = self._one_block()
        layout = Growing.matrix(len(shape), registers, lanes, self.block)
        layout.repeat("register", -1, self.blocks)
        size, batches = self.size_per_warp, tuple(range(len(shape) - 2))
        if size is not None:
            for dim in (-2, -1, *reversed(batches)):
                layout.repeat("register", dim, max(1, size[dim] // layout.tile[dim]))
        for dim in reversed(range(len(shape))):
            if size is None and dim == self.order[0]:
                layout.share("warp", self.warps_per_cta[dim])
            else:
                layout.repeat("warp", dim, self.warps_per_cta[dim])
        return layout.fill(shape, (-2, -1, *batches))

    def _one_block(self) -> tuple[Vectors, Vectors]:
        """Registers and lanes of one block."""
        (height, width), threads = self.block, self.threads_per_warp
        if self.packed_rows > 1:
            return self._packed_rows()
        packed = -(-width // threads)
        lanes: Vectors = [(0, column) for column in steps(packed, width)]
        rows = threads >> len(lanes)
        lanes += [(row, 0) for row in steps(1, rows)]
        registers: Vectors = [(0, column) for column in steps(1, packed)]
        return registers + [(row, 0) for row in steps(rows, height)], lanes

    def _packed_rows(self) -> tuple[Vectors, Vectors]:
        """Registers and lanes of a block whose words hold rows side by side; words follow each other along columns."""
        (height, width), packed = self.block, self.packed_rows
        words: Vectors = [(0, column) for column in steps(1, width)] + [(row, 0) for row in steps(packed, height)]
        lanes = self.threads_per_warp.bit_length() - 1
        return [(row, 0) for row in steps(1, packed)] + words[lanes:], words[:lanes]

    def lane_tile(self, rank: int) -> Shape:
        return self.tile

    def piece(self, box: Shape) -> Encoding:
        (height, width), (*batch, rows, columns) = self.block, box
        block = (min(height, rows), min(width, columns))
        blocks = max(1, min(self.blocks, columns // block[1]))
        whole = (*[1] * len(batch), block[0], block[1] * blocks)
        size = None if box == whole else box
        return self.replaced(warps_per_cta=(1,) * len(box), block=block, blocks=blocks, size_per_warp=size)

    def word_bytes(self, element_bytes: int) -> int:
        if element_bytes >= WORD:
            return element_bytes
        if self.packed_rows > 1 or self.is_vnni(element_bytes):
            return WORD
        neighbours = -(-self.block[1] // self.threads_per_warp)
        return HALF if neighbours * element_bytes == HALF else element_bytes

    def fields(self) -> Fields:
        size: Fields = {} if self.size_per_warp is None else {"sizePerWarp": self.size_per_warp}
        packed: Fields = {} if self.packed_rows == 1 else {"packedRows": self.packed_rows}
        return {
            "warpsPerCTA": self.warps_per_cta,
            "instrShape": self.block,
            "numBlocks": self.blocks,
            "order": self.order,
            "kWidth": self.element_bytes,
            "threadsPerWarp": self.threads_per_warp,
            **size,
            **packed,
        }

    @classmethod
    def build(cls, fields: Fields) -> Subgroup2DBlockEncoding:
        warps, block, order = powers(fields, "warpsPerCTA"), powers(fields, "instrShape"), shape(fields, "order")
        packed, threads = power(fields, "packedRows", 1), power(fields, "threadsPerWarp")
        size = powers(fields, "sizePerWarp") if "sizePerWarp" in fields else None
        check_ranks(order, warps, *([] if size is None else [size]))
        require(len(block) == 2, "instrShape must have two sizes, rows and columns")
        require(block[0] % packed == 0, "packedRows must be a power of two that divides the rows of instrShape")
        require(block[0] * block[1] >= threads, "instrShape must have an element for each lane")
        blocks, width = power(fields, "numBlocks"), power(fields, "kWidth")
        ways = (block,) if order[0] == len(order) - 1 else (block, block[::-1])  # A message may transpose, or not.
        lines = [columns * blocks * width for rows, columns in ways if rows <= MOST_ROWS]
        require(len(lines) > 0, f"instrShape must have at most {MOST_ROWS} rows, as a message has")
        fits = min(lines) <= MOST_ROW_BYTES
        require(fits, f"rows of instrShape, numBlocks times, must have at most {MOST_ROW_BYTES} bytes")
        return Subgroup2DBlockEncoding(warps, block, blocks, order, width, threads, size, packed)
