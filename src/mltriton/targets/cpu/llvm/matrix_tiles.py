"""Dots on matrix tiles (AMX): the same functions as `dot.py` writes, by instructions that multiply tiles.

Level: `llvm`. A tile is a register of up to 16 rows of 64 bytes. `tile_dot_function` gives the name of an internal
function of the signature and meaning that `dot.py` states, for a row-major `a` and groups that fill 4 bytes (bf16 and
f16 pairs, i8 quads). C is walked in blocks of 2 x 2 tiles; where rows, columns or k are no multiples of a tile's,
smaller tiles follow. Rows of `a` that are far from each other in memory are copied next to each other first, tile by
tile: a power of two apart, they would share a few sets of the first-level cache. The sizes of all tiles are one table
in memory, loaded in front of the blocks that have them: that clears the tiles, so no state is left between blocks, and
the function releases them at its end. Rows of `a` that do not lie in scratch memory are brought to the second-level
cache a block of rows ahead, while tiles multiply: the hardware does not follow as many rows as a tile has.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18 (tile palette 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mltriton.records import NamedTuple
from mltriton.targets.cpu.llvm.dot import PARAMETERS, DotShape, cut
from mltriton.targets.llvm.types import BF16, F16, F32, I1, I8, I32, I64, VOID, Type, Value, constant
from mltriton.targets.llvm.writer import Function, Module

SIDE = 16  # rows of a tile, columns of accumulators, and groups of k
ROW_BYTES = 64
BLOCK = 2 * SIDE  # rows and columns of C in four tiles
_CONFIG_BYTES, _COLUMN_BYTES_AT, _ROWS_AT = 64, 16, 48
MOST_PREFETCHES = 16  # in a step of four products
COPIED = 32768  # bytes of rows of `a`, at most, that are copied: what a first-level cache has room for
SPREAD = 2048  # bytes from one row of `a` to the next from which on they are
FEWEST_BLOCKS = 8  # side by side, for which rows of `a` are worth a copy
# Tile registers: sums of tile row i and column j in 2 i + j, then those of a, then those of b.
_A, _B = 4, 6


class TileInstruction(NamedTuple):
    """The instruction that multiplies tiles of one element type, by which operands are unsigned."""

    element: Type
    accumulator: Type
    names: dict[str, str]

    @property
    def group(self) -> int:
        """Elements next to each other along k that one accumulator sums in a step."""
        return 4 // self.element.bytes


INSTRUCTIONS: dict[str, TileInstruction] = {
    "bf16": TileInstruction(BF16, F32, {"": "tdpbf16ps"}),
    "f16": TileInstruction(F16, F32, {"": "tdpfp16ps"}),
    "i8": TileInstruction(I8, I32, {"": "tdpbssd", "a": "tdpbusd", "b": "tdpbsud", "ab": "tdpbuud"}),
}


class Block(NamedTuple):
    """Sizes of one block of C, in rows and columns, and the groups of k of a step."""

    rows: int
    columns: int
    groups: int

    def config(self) -> bytes:
        """The table of tile sizes: palette, bytes of a row and rows of each tile."""
        sizes = {
            2 * i + j: (rows, 4 * columns) for i, (_, rows) in self.halves(0) for j, (_, columns) in self.halves(1)
        }
        sizes |= {_A + i: (rows, 4 * self.groups) for i, (_, rows) in self.halves(0)}
        sizes |= {_B + j: (self.groups, 4 * columns) for j, (_, columns) in self.halves(1)}
        table = bytearray(_CONFIG_BYTES)
        table[0] = 1
        for tile, (rows, row_bytes) in sizes.items():
            table[_COLUMN_BYTES_AT + 2 * tile] = row_bytes
            table[_ROWS_AT + tile] = rows
        return bytes(table)

    def halves(self, dimension: int) -> list[tuple[int, tuple[int, int]]]:
        """The (number, (first, length)) of its tiles along rows (0) or columns (1)."""
        size = self[dimension]
        return list(enumerate((first, min(SIDE, size - first)) for first in range(0, size, SIDE)))


class Left(NamedTuple):
    """Rows of `a` for a block: where the first one begins, elements from row to row, and from one group to the next."""

    lines: Value
    stride: Value
    apart: Value


def tile_dot_function(module: Module, shape: DotShape, k: int) -> str:
    """The name of the dot function of `shape` for `k` groups, defined in `module` on the first call.

    ValueError for panels that are not as wide as a block.
    """
    if shape.panel is not None and (shape.panel != BLOCK or shape.columns % BLOCK):
        raise ValueError(f"{shape.dtype} is multiplied {BLOCK} columns at a time, not in panels of {shape.panel}")
    name = f"{shape.name('tiles')}_k{k}"
    if not module.defines(name):
        _Generator(module.function(name, VOID, PARAMETERS, extra="noinline "), module, shape).dot(k)
    return name


class _Generator(NamedTuple):
    function: Function
    module: Module
    shape: DotShape

    @property
    def instruction(self) -> TileInstruction:
        """How elements are multiplied."""
        return INSTRUCTIONS[self.shape.dtype]

    def dot(self, k: int) -> None:
        """All blocks of C over the whole steps of k, then over what is left of it."""
        function, whole = self.function, k - k % SIDE
        accumulate = function.parameters[7]
        if whole or not k:
            self._blocks(range(0, whole, SIDE), accumulate)
        if whole < k:
            self._blocks(range(whole, k, k - whole), constant(I1, 1) if whole else accumulate)
        function.declared_call("llvm.x86.tilerelease", VOID)
        function.ret()

    def _blocks(self, groups: range, accumulate: Value) -> None:
        """Blocks of each size, with the tiles set to it."""
        function, shape, element = self.function, self.shape, self.instruction.element
        pieces = [list(_placed(cut(size, BLOCK))) for size in (shape.rows, shape.columns)]
        copy = function.alloca(element, COPIED // element.bytes) if self._has_copies(groups) else None
        for (first_row, row_count, rows), (first_column, column_count, columns) in product(*pieces):
            block = Block(rows, columns, groups.step)
            name = f"tiles_{rows}x{columns}x{groups.step}"
            function.declared_call("llvm.x86.ldtilecfg", VOID, self.module.bytes_constant(name, block.config()))
            with function.loop(first_row, first_row + row_count * rows, rows, name="row") as down:
                left = self._left(down.index, groups, copy if rows == BLOCK else None)
                end = first_column + column_count * columns
                with function.loop(first_column, end, columns, name="column") as across:
                    self._block(block, left, down.index, across.index, groups, accumulate)

    def _has_copies(self, groups: range) -> bool:
        """Whether rows of `a` are worth a copy where they are spread: a first-level cache has room for a block's, and
        many blocks share them.
        """
        fits = groups.step == SIDE and len(groups) * BLOCK * ROW_BYTES <= COPIED
        return fits and self.shape.steps > 0 and self.shape.columns >= FEWEST_BLOCKS * BLOCK

    def _left(self, row: Value, groups: range, copy: Value | None) -> Left:
        """Rows of `a` from `row` on where they lie; or, where they are far from each other, tile by tile in `copy`."""
        function, element = self.function, self.instruction.element
        a, a_stride, *_ = function.parameters
        lines, apart = function.gep(a, function.mul(a_stride, row), element), constant(I64, self.instruction.group)
        if copy is None:
            return Left(lines, a_stride, apart)
        is_spread, width = function.icmp("sge", a_stride, SPREAD // element.bytes), ROW_BYTES // element.bytes
        copied = function.select(is_spread, constant(I64, BLOCK), constant(I64, 0))
        with function.loop(0, copied, name="copied") as down:
            line = function.gep(lines, function.mul(down.index, a_stride), element)
            target = function.gep(copy, function.mul(down.index, width), element)
            for number in range(0, len(groups) * width, width):
                value = function.load(element.with_lanes(width), function.gep(line, number, element), element.bytes)
                function.store(value, function.gep(target, BLOCK * number, element), element.bytes)
        there = (copy, constant(I64, width), constant(I64, BLOCK * width // SIDE))
        here = (lines, a_stride, apart)
        return Left(*(function.select(is_spread, *either) for either in zip(there, here, strict=True)))

    def _block(self, block: Block, left: Left, row: Value, column: Value, groups: range, accumulate: Value) -> None:
        """One block of C, which stays in tiles over all of `groups`."""
        function = self.function
        _, _, b, b_stride, c, c_stride, *_ = function.parameters
        element, accumulator, group = self.instruction.element, self.instruction.accumulator, self.instruction.group
        cells = [
            (2 * i + j, function.gep(c, function.add(function.mul(c_stride, function.add(row, down)),
                                                     function.add(column, right)), accumulator))
            for i, (down, _) in block.halves(0)
            for j, (right, _) in block.halves(1)
        ]  # fmt: skip
        c_bytes = function.mul(c_stride, accumulator.bytes)

        def start(name: str, *more: Value) -> list[Value]:
            for tile, address in cells:
                self._call(name, constant(I8, tile), *((address, *more) if more else ()))
            return []

        function.choose(accumulate, lambda: start("tileloadd64", c_bytes), lambda: start("tilezero"), name="start")
        per_column = self.shape.panel_stride // self.shape.panel if self.shape.panel else group
        right = function.gep(b, function.mul(column, per_column), element)
        below = self._rows_below(block, row, column)
        with function.loop(groups.start, groups.stop, groups.step, name="k") as loop:
            for line in below:
                function.prefetch(function.gep(line, function.mul(loop.index, group), element), level=2)
            a_step = function.gep(left.lines, function.mul(loop.index, left.apart), element)
            b_step = function.gep(right, function.mul(loop.index, b_stride), element)
            self._step(block, a_step, left.stride, b_step)
            loop.yield_()
        for tile, address in cells:
            self._call("tilestored64", constant(I8, tile), address, c_bytes)

    def _rows_below(self, block: Block, row: Value, column: Value) -> list[Value]:
        """Rows of `a` below those of a block of C, as many as it brings nearer: side by side, blocks bring them all."""
        function, element = self.function, self.instruction.element
        a, a_stride, *_ = function.parameters
        share = -(-block.rows * block.columns // self.shape.columns)
        if not self.shape.steps or share > MOST_PREFETCHES:
            return []
        across = function.lshr(column, BLOCK.bit_length() - 1)
        first = function.add(function.add(row, block.rows), function.mul(across, share))
        return [
            function.gep(a, function.mul(a_stride, function.add(first, number)), element) for number in range(share)
        ]

    def _step(self, block: Block, a: Value, a_stride: Value, b: Value) -> None:
        """Products of one step of k."""
        function, instruction = self.function, self.instruction
        _, _, _, b_stride, *_ = function.parameters
        element, multiply = instruction.element, instruction.names[self.shape.unsigned]
        for i, (down, _) in block.halves(0):
            line = function.gep(a, function.mul(a_stride, down), element)
            self._call("tileloadd64", constant(I8, _A + i), line, function.mul(a_stride, element.bytes))
        for j, (across, _) in block.halves(1):
            line = function.gep(b, across * instruction.group, element)
            self._call("tileloaddt164", constant(I8, _B + j), line, function.mul(b_stride, element.bytes))
        for (i, _), (j, _) in product(block.halves(0), block.halves(1)):
            self._call(multiply, *(constant(I8, tile) for tile in (2 * i + j, _A + i, _B + j)))

    def _call(self, name: str, *arguments: Value) -> None:
        self.function.declared_call(f"llvm.x86.{name}", VOID, *arguments)


def _placed(pieces: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """(first, how many, length) of (how many, length) pieces one after the other."""
    first = 0
    for count, length in pieces:
        yield first, count, length
        first += count * length
