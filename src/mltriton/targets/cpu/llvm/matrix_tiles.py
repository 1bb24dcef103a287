"""Dots on matrix tiles (AMX): the same functions as `dot.py` writes, by instructions that multiply tiles.

Level: `llvm`. A tile is a register of up to 16 rows of 64 bytes. `tile_dot_function` gives the name of an internal
function of the signature and meaning that `dot.py` states, for a row-major `a` and groups that fill 4 bytes (bf16 and
f16 pairs, i8 quads). C is walked in blocks of 2 x 2 tiles; where rows, columns or k are no multiples of a tile's,
smaller tiles follow. The sizes of all tiles are one table in memory, loaded in front of the blocks that have them: that
clears the tiles, so no state is left between blocks, and the function releases them at its end. Rows of `a` that do not
lie in scratch memory are brought to the second-level cache a block of rows ahead, while tiles multiply: the hardware
does not follow as many rows as a tile has.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18 (tile palette 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mltriton.records import NamedTuple
from mltriton.targets.cpu.llvm.dot import PARAMETERS, DotShape, cut
from mltriton.targets.llvm.types import BF16, F16, F32, I1, I8, I32, VOID, Type, Value, constant
from mltriton.targets.llvm.writer import Function, Module

SIDE = 16  # rows of a tile, columns of accumulators, and groups of k
ROW_BYTES = 64
BLOCK = 2 * SIDE  # rows and columns of C in four tiles
_CONFIG_BYTES, _COLUMN_BYTES_AT, _ROWS_AT = 64, 16, 48
MOST_PREFETCHES = 16  # in a step of four products
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
        function, shape = self.function, self.shape
        pieces = [list(_placed(cut(size, BLOCK))) for size in (shape.rows, shape.columns)]
        for (first_row, row_count, rows), (first_column, column_count, columns) in product(*pieces):
            block = Block(rows, columns, groups.step)
            name = f"tiles_{rows}x{columns}x{groups.step}"
            function.declared_call("llvm.x86.ldtilecfg", VOID, self.module.bytes_constant(name, block.config()))
            with function.loop(first_row, first_row + row_count * rows, rows, name="row") as down:
                end = first_column + column_count * columns
                with function.loop(first_column, end, columns, name="column") as across:
                    self._block(block, down.index, across.index, groups, accumulate)

    def _block(self, block: Block, row: Value, column: Value, groups: range, accumulate: Value) -> None:
        """One block of C, which stays in tiles over all of `groups`."""
        function = self.function
        a, a_stride, b, b_stride, c, c_stride, *_ = function.parameters
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
        left = function.gep(a, function.mul(a_stride, row), element)
        per_column = self.shape.panel_stride // self.shape.panel if self.shape.panel else group
        right = function.gep(b, function.mul(column, per_column), element)
        below = self._rows_below(block, row, column)
        with function.loop(groups.start, groups.stop, groups.step, name="k") as loop:
            for line in below:
                function.prefetch(function.gep(line, function.mul(loop.index, group), element), level=2)
            a_step = function.gep(left, function.mul(loop.index, group), element)
            b_step = function.gep(right, function.mul(loop.index, b_stride), element)
            self._step(block, a_step, b_step)
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

    def _step(self, block: Block, a: Value, b: Value) -> None:
        """Products of one step of k. Each operand is loaded right before its first use."""
        function, instruction = self.function, self.instruction
        _, a_stride, _, b_stride, *_ = function.parameters
        element, multiply = instruction.element, instruction.names[self.shape.unsigned]
        loaded: set[int] = set()

        def load(tile: int, address: Value, stride: Value) -> Value:
            if tile not in loaded:
                loaded.add(tile)
                name = "tileloaddt164" if tile >= _B else "tileloadd64"
                self._call(name, constant(I8, tile), address, function.mul(stride, element.bytes))
            return constant(I8, tile)

        for i, (down, _) in block.halves(0):
            for j, (across, _) in block.halves(1):
                left = load(_A + i, function.gep(a, function.mul(a_stride, down), element), a_stride)
                right = load(_B + j, function.gep(b, across * instruction.group, element), b_stride)
                self._call(multiply, constant(I8, 2 * i + j), left, right)

    def _call(self, name: str, *arguments: Value) -> None:
        self.function.declared_call(f"llvm.x86.{name}", VOID, *arguments)


def _placed(pieces: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """(first, how many, length) of (how many, length) pieces one after the other."""
    first = 0
    for count, length in pieces:
        yield first, count, length
        first += count * length
