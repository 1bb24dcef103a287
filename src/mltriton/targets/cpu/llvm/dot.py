"""Dots: `c += a @ b` on memory, by micro-kernels that hold a register tile of c.

Level: `llvm`. `call_dot` calls an internal function, defined once per module, that computes

    c[i, j] = (c[i, j] if accumulate else 0) + sum over k, r of a[i, k, r] * b[k, j, r]        for i < m, j < n

from `(ptr a, i64 a_stride, ptr b, i64 b_stride, ptr c, i64 c_stride, i64 k, i1 accumulate)`, strides in elements of the
pointers' types. `r` runs over the group that one instruction multiplies: 1 element (f32, f64, i32), a
bf16 pair or an i8 quad, next to each other in memory; `k` counts groups. `a` is "row" (row i at i * a_stride, its k
next to each other) or "column" (step k at k * a_stride, rows next to each other; groups of 1 only). `b` has step k at
k * b_stride, columns next to each other: a row-major matrix as it is, or panels of so many columns one after the other.

Rows are walked in register tiles, and columns within a row tile, so that the rows of `a` stay in the first-level cache
while `b` streams. Rows of `a` that are far from each other in memory are copied next to each other first: a power of
two apart, they would share a few sets of that cache. The next ones are brought nearer meanwhile. A register tile is a
call of a noinline micro-kernel: LLVM allocates registers per function, and a loop nest around it makes it spill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mltriton.records import NamedTuple
from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.dot_instructions import INSTRUCTIONS, DotInstruction
from mltriton.targets.llvm.types import I1, I8, I64, PTR, VOID, Type, Value, constant
from mltriton.targets.llvm.writer import Function, Module

CACHE_LINE = 64
COPIED_ROWS = 16384  # bytes of rows of `a`, at most, that are copied: half of a small first-level cache
FEWEST_TILES = 4  # side by side, for which rows of `a` are worth a copy
MOST_PREFETCHED = 256  # bytes of each row of `a`, for a register tile
SPREAD = 3072  # bytes from one row of `a` to the next from which on they are
UNROLL = 4  # steps of k between two loop branches at most: they share address arithmetic, for 4-wide front ends
PRODUCTS = 48  # multiplications of single elements between two loop branches; with more, loops of AVX-512 are slower
FEW_ROWS = 8  # what is left of so many times as many rows has a micro-kernel of its own that is not unrolled

PARAMETERS = (
    ("noalias a", PTR),
    ("a_stride", I64),
    ("noalias b", PTR),
    ("b_stride", I64),
    ("noalias c", PTR),
    ("c_stride", I64),
    ("k", I64),
    ("accumulate", I1),
)


class DotShape(NamedTuple):
    """What one dot function computes: `rows` x `columns` of c from elements of `dtype`.

    `dtype` is "f32", "f64", "i32", "bf16" or "i8", `a_layout` "row" or "column". With `panel`, b comes in panels of
    that many columns, `panel_stride` elements apart. `has_rest` says whether k may be no multiple of `unroll`;
    `unsigned` names the operands of "i8" that are read so: "", "a", "b" or "ab". `steps` is k where that is known and
    rows of `a` may be spread in memory, else 0. A micro-kernel's loop does `unroll` steps at a time.
    """

    dtype: str
    rows: int
    columns: int
    a_layout: str = "row"
    panel: int | None = None
    panel_stride: int = 0
    has_rest: bool = True
    unsigned: str = ""
    steps: int = 0
    unroll: int = UNROLL

    def name(self, prefix: str) -> str:
        """A name that says all of it."""
        panels = "" if self.panel is None else f"_panels{self.panel}_{self.panel_stride}"
        rest = "_any_k" if self.has_rest else ""
        unrolled = "" if self.unroll == UNROLL else f"_unroll{self.unroll}"
        signs = f"_unsigned_{self.unsigned}" if self.unsigned else ""
        spread = f"_spread{self.steps}" if self.steps else ""
        return (
            f"{prefix}_{self.dtype}{signs}_{self.a_layout}_{self.rows}x{self.columns}{panels}{rest}{unrolled}{spread}"
        )


def call_dot(function: Function, features: CpuFeatures, shape: DotShape, *arguments: Value) -> None:
    """Call the dot function of `shape`, which the module defines on the first call.

    One function does for panels and for `b` as it is, where nothing but the distance of columns, its last argument,
    differs. KeyError for a dtype the instruction set has no dot for; ValueError for a layout or width the dtype's
    groups forbid.
    """
    generator = _Generator(function.module, features, INSTRUCTIONS[shape.dtype](features, shape.unsigned))
    generator.check(shape)
    instruction = generator.instruction
    apart = shape.panel_stride // shape.panel if shape.panel else instruction.group
    defined = shape if instruction.bias_step else shape._replace(panel=None, panel_stride=0)
    name = defined.name("dot")
    if not function.module.defines(name):
        generator.dot(name, defined)
    function.call(name, VOID, *arguments, constant(I64, apart))


class _Generator(NamedTuple):
    module: Module
    features: CpuFeatures
    instruction: DotInstruction

    def check(self, shape: DotShape) -> None:
        """Refuse what groups cannot do."""
        group = self.instruction.group
        if group > 1 and shape.a_layout == "column":
            raise ValueError(f"{shape.dtype} is multiplied in groups of {group}: a must be row-major")
        if group > 1 and shape.columns % 4:
            raise ValueError(f"{shape.dtype} is multiplied 4 columns at a time, not {shape.columns}")
        width = self.features.tile(shape.dtype).vectors * self.lanes
        if shape.panel is not None and (shape.panel != width or shape.columns % width or shape.panel_stride % width):
            raise ValueError(f"{shape.dtype} is multiplied {width} columns at a time, not in panels of {shape.panel}")

    @property
    def lanes(self) -> int:
        """Accumulators in one register."""
        return self.features.lanes(self.instruction.accumulator.bits)

    def dot(self, name: str, shape: DotShape) -> None:
        """The loops over register tiles."""
        instruction = self.instruction
        function = self.module.function(name, VOID, (*PARAMETERS, ("b_column", I64)), extra="noinline ")
        a, a_stride, b, b_stride, c, c_stride, k, accumulate, b_column = function.parameters
        tile = self.features.tile(shape.dtype)
        bias = self._column_bias(function, shape)
        copies = self._copied_length(shape)
        copy = function.alloca(instruction.a_type, tile.rows * copies) if copies else None

        def rows_of_a(row: Value, rows: int) -> tuple[Value, Value]:
            """Where the rows of a register tile begin, and their stride; copied where they are far from each other."""
            offset = row if shape.a_layout == "column" else function.mul(a_stride, row)
            lines = function.gep(a, offset, instruction.a_type)
            if copy is None:
                return lines, a_stride
            is_spread = function.icmp("sge", a_stride, SPREAD // instruction.a_type.bytes)
            copied = function.select(is_spread, constant(I64, rows), constant(I64, 0))
            function.call(self._copy_function(shape), VOID, lines, a_stride, copy, copied)
            return function.select(is_spread, copy, lines), function.select(is_spread, constant(I64, copies), a_stride)

        def tile_of(lines: tuple[Value, Value], row: Value, rows: int, column: Value, columns: int) -> None:
            is_rest = rows < tile.rows and rows * FEW_ROWS < shape.rows
            unroll = self._unroll(rows * columns // self.lanes)
            piece = shape._replace(rows=rows, columns=columns, panel=None, panel_stride=0, steps=0, unroll=unroll)
            micro = self._micro_kernel(piece._replace(unroll=1, has_rest=False) if is_rest else piece)
            c_offset = function.add(function.mul(c_stride, row), column)
            extra = [] if bias is None else [function.gep(bias, column, instruction.accumulator)]
            function.call(
                micro,
                VOID,
                *lines,
                function.gep(b, function.mul(column, b_column), instruction.b_type),
                b_stride,
                function.gep(c, c_offset, instruction.accumulator),
                c_stride,
                k,
                accumulate,
                *extra,
            )

        for row, rows in _steps(function, cut_rows(shape.rows, tile.rows), "row"):
            lines = rows_of_a(row, rows)
            for column, columns in _steps(function, cut(shape.columns, tile.vectors * self.lanes), "column"):
                self._prefetch_below(function, shape, (row, rows), (column, columns))
                tile_of(lines, row, rows, column, columns)
        function.ret()

    def _prefetch_below(
        self, function: Function, shape: DotShape, rows: tuple[Value, int], columns: tuple[Value, int]
    ) -> None:
        """Bring rows of `a` below those of a register tile nearer, each tile in a row of them its share of k."""
        a, a_stride, *_ = function.parameters
        a_type, (row, count), (column, width) = self.instruction.a_type, rows, columns
        length = shape.steps * self.instruction.group * a_type.bytes
        share = -(-length * width // shape.columns)
        if not length or shape.a_layout == "column" or length < shape.columns or share > MOST_PREFETCHED:
            return
        below = function.gep(a, function.mul(a_stride, function.add(row, count)), a_type)
        below = function.gep(below, function.mul(column, length // shape.columns), I8)
        with function.loop(0, count, name="below") as loop:
            line = function.gep(below, function.mul(a_stride, loop.index), a_type)
            for place in range(0, share, CACHE_LINE):
                function.prefetch(function.gep(line, place, I8), level=2)

    def _unroll(self, products: int) -> int:
        """Steps of k at a time, with so many multiplications each."""
        is_enough = self.instruction.group == 1 and products * (UNROLL // 2) >= PRODUCTS
        return UNROLL // 2 if is_enough else UNROLL

    def _copied_length(self, shape: DotShape) -> int:
        """Elements from one copied row of `a` to the next, of which the last cache line is not used; 0 for no copy."""
        tile, a_type = self.features.tile(shape.dtype), self.instruction.a_type
        length = shape.steps * self.instruction.group
        stride = length + CACHE_LINE // a_type.bytes
        is_worth_it = shape.columns >= FEWEST_TILES * tile.vectors * self.lanes and shape.a_layout == "row"
        fits = length % self.features.lanes(a_type.bits) == 0 and tile.rows * stride * a_type.bytes <= COPIED_ROWS
        return stride if length and is_worth_it and fits else 0

    def _copy_function(self, shape: DotShape) -> str:
        """The name of a function that puts rows of `a` next to each other: one, since all register tiles share it."""
        name, a_type = f"copy_{self.instruction.a_type}_{shape.steps}", self.instruction.a_type
        if self.module.defines(name):
            return name
        parameters = [("noalias a", PTR), ("a_stride", I64), ("noalias copy", PTR), ("rows", I64)]
        function = self.module.function(name, VOID, parameters, extra="noinline ")
        a, a_stride, copy, rows = function.parameters
        lanes = self.features.lanes(a_type.bits)
        with function.loop(0, rows, name="row") as row:
            source = function.gep(a, function.mul(row.index, a_stride), a_type)
            target = function.gep(copy, function.mul(row.index, self._copied_length(shape)), a_type)
            with function.loop(0, shape.steps * self.instruction.group, lanes, name="vector") as loop:
                value = function.load(a_type.with_lanes(lanes), function.gep(source, loop.index, a_type), a_type.bytes)
                function.store(value, function.gep(target, loop.index, a_type), a_type.bytes)
        function.ret()
        return name

    def _column_bias(self, function: Function, shape: DotShape) -> Value | None:
        """What each column's accumulators must be reduced by, in memory, where the instruction adds too much."""
        instruction = self.instruction
        if instruction.bias_step is None:
            return None
        _, _, b, b_stride, _, _, k, *_ = function.parameters
        bias = function.alloca(instruction.accumulator, shape.columns)
        for column, lanes in _vectors(shape.columns, self.lanes):
            panel, inside = divmod(column, shape.panel or shape.columns)
            first = panel * shape.panel_stride + inside * instruction.group
            start = function.gep(b, first, instruction.b_type)
            zero = constant(instruction.accumulator.with_lanes(lanes), 0)
            with function.loop(0, k, carried=[zero], name="bias") as loop:
                vector = self._load_b(function, start, function.mul(loop.index, b_stride), lanes)
                loop.yield_(instruction.bias_step(function, loop.carried[0], vector))
            function.store(loop.results[0], function.gep(bias, column, instruction.accumulator))
        return bias

    def _micro_kernel(self, shape: DotShape) -> str:
        """One register tile of `shape`, all of it in registers over the whole of k."""
        name, instruction = shape.name("tile"), self.instruction
        if self.module.defines(name):
            return name
        parameters = [*PARAMETERS, ("noalias bias", PTR)] if instruction.bias_step else PARAMETERS
        function = self.module.function(name, VOID, parameters, extra="noinline ")
        _, _, _, _, c, c_stride, k, _, *bias = function.parameters
        vectors = list(_vectors(shape.columns, self.lanes))
        element = instruction.accumulator
        lines = [function.gep(c, function.mul(c_stride, row), element) for row in range(shape.rows)]
        cells = [
            (function.gep(line, column, element), element.with_lanes(lanes))
            for line in lines
            for column, lanes in vectors
        ]
        start = self._first_accumulators(function, cells)
        if bias:
            pointers = [function.gep(bias[0], column, element) for column, _ in vectors] * shape.rows
            start = [
                function.sub(value, function.load(value.type, pointer))
                for value, pointer in zip(start, pointers, strict=True)
            ]
        self._prefetch_beside(function, lines, shape.columns)
        unrolled = function.and_(k, -shape.unroll) if shape.has_rest else k
        with function.loop(0, unrolled, shape.unroll, carried=start, name="k") as loop:
            values = loop.carried
            for step in range(shape.unroll):
                values = self._step(function, shape, vectors, loop.index, step, values)
            loop.yield_(*values)
        results = loop.results
        if shape.has_rest:
            with function.loop(unrolled, k, carried=results, name="rest") as rest:
                rest.yield_(*self._step(function, shape, vectors, rest.index, 0, rest.carried))
            results = rest.results
        for value, (pointer, _) in zip(results, cells, strict=True):
            function.store(value, pointer)
        function.ret()
        return name

    def _prefetch_beside(self, function: Function, lines: Sequence[Value], columns: int) -> None:
        """Bring the tile of c to the right of this one nearer for writing: it is most likely the next."""
        element = self.instruction.accumulator
        for line in lines:
            for column in range(columns, 2 * columns, CACHE_LINE // element.bytes):
                function.prefetch(function.gep(line, column, element), write=True)

    def _first_accumulators(self, function: Function, cells: Sequence[tuple[Value, Type]]) -> list[Value]:
        return function.choose(
            function.parameters[7],
            lambda: [function.load(type_, pointer) for pointer, type_ in cells],
            lambda: [constant(type_, 0) for _, type_ in cells],
            name="start",
        )

    def _step(
        self,
        function: Function,
        shape: DotShape,
        vectors: Sequence[tuple[int, int]],
        index: Value,
        step: int,
        accumulators: Sequence[Value],
    ) -> list[Value]:
        """The accumulators after step `index + step` of k: one product with the index for all steps of an iteration."""
        instruction = self.instruction
        a, a_stride, b, b_stride, *_ = function.parameters
        b_offset = function.add(function.mul(index, b_stride), function.mul(b_stride, step))
        panels = [
            self._load_b(function, function.gep(b, column * instruction.group, instruction.b_type), b_offset, lanes)
            for column, lanes in vectors
        ]
        is_column = shape.a_layout == "column"
        a_step = a_stride if is_column else constant(I64, instruction.group)
        a_offset = function.add(function.mul(index, a_step), function.mul(a_step, step))
        results: list[Value] = []
        for row in range(shape.rows):
            line = function.gep(a, row if is_column else function.mul(a_stride, row), instruction.a_type)
            scalar = function.load(
                instruction.a_load, function.gep(line, a_offset, instruction.a_type), instruction.a_type.bytes
            )
            for panel in panels:
                results.append(instruction.step(function, accumulators[len(results)], scalar, panel))
        return results

    def _load_b(self, function: Function, start: Value, offset: Value, lanes: int) -> Value:
        pointer = function.gep(start, offset, self.instruction.b_type)
        return function.load(self.instruction.b_load.with_lanes(lanes), pointer, self.instruction.b_type.bytes)


def _steps(function: Function, pieces: Sequence[tuple[int, int]], name: str) -> Iterator[tuple[Value, int]]:
    """Walk (how many, length) pieces. Yields (first, length) inside the loops that it writes."""
    first = 0
    for count, length in pieces:
        with function.loop(first, first + count * length, length, name=name) as loop:
            yield loop.index, length
        first += count * length


def cut(size: int, step: int) -> list[tuple[int, int]]:
    """(how many, length) of the pieces of `size`: whole steps, then what is left."""
    whole, rest = divmod(size, step)
    return [piece for piece in ((whole, step), (1, rest)) if all(piece)]


def cut_rows(size: int, step: int) -> list[tuple[int, int]]:
    """As `cut`, but a small rest is put together with the last whole step and halved.

    Two middling register tiles are faster than a large and a small one.
    """
    whole, rest = divmod(size, step)
    if not whole or not 0 < rest < step // 2 or (step + rest) % 2:
        return cut(size, step)
    return [piece for piece in ((whole - 1, step), (2, (step + rest) // 2)) if all(piece)]


def _vectors(columns: int, lanes: int) -> Iterator[tuple[int, int]]:
    """(first column, lanes) of the vectors that cover `columns`: whole registers, then smaller powers of two."""
    column = 0
    while column < columns:
        while lanes > columns - column:
            lanes //= 2
        yield column, lanes
        column += lanes
