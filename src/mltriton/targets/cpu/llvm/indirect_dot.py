"""Dots of few rows on lines: `c += a @ b` where b is read once, where it lies, through an array of pointers.

Level: `llvm`. `indirect_dot_function` gives the name of an internal function, defined once per module, that computes

    c[i, j] = (c[i, j] if accumulate else 0) + sum over k of a[i, k] * b[k, j]        for i < rows, j < columns

for each matrix of a batch, with signature `void (ptr a, i64 a_stride, i64 a_batch, ptr lines, ptr c, i64 c_stride, i64
c_batch, i1 accumulate)`, strides in elements. In the "row" layout a line is b[k, :]: a register tile of c gathers
multiples of the lines. In the "column" layout it is b[:, j]: every line is multiplied with every row of a lane by lane,
and the lanes are added up at the end, several lines together. The array `lines` has line i of all matrices before line
i + 1 of any; `chunk` lines of one matrix are multiplied before those of the next one. Memory is the limit: the tiles of
one chunk prefetch the lines of the chunk `ahead` of it in the array's order, each as many as it multiplies. The loops
are in a function of their own, because around a call LLVM reloads all constants of the function that calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mltriton.records import record
from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.dot import CACHE_LINE
from mltriton.targets.llvm.emit.narrow import widen
from mltriton.targets.llvm.types import F32, I1, I32, I64, PTR, VOID, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function, Module

_PARAMETERS = (
    ("noalias a", PTR),
    ("a_stride", I64),
    ("a_batch", I64),
    ("noalias lines", PTR),
    ("noalias c", PTR),
    ("c_stride", I64),
    ("c_batch", I64),
    ("accumulate", I1),
)
_TILE_PARAMETERS = (
    ("noalias a", PTR),
    ("a_stride", I64),
    ("noalias lines", PTR),
    ("noalias later", PTR),
    ("noalias c", PTR),
    ("c_stride", I64),
    ("accumulate", I1),
    ("first", I64),
)
Step = Callable[[Value, Sequence[Value]], list[Value]]  # (index, sums so far) -> new sums
_BITS = {"f32": "float", "f16": "i16", "bf16": "i16"}


@record(frozen=True)
class IndirectShape:
    """What one function computes: `rows` x `columns` of f32 from `k` products each.

    `left` and `right` are the element types of a and b ("f32", "f16", "bf16"); "bf16" for both multiplies pairs.
    `layout` says whether a line of b is a "row" or a "column".
    """

    left: str
    right: str
    rows: int
    columns: int
    k: int
    layout: str
    batch: int = 1
    chunk: int = 1
    ahead: int = 0

    @property
    def name(self) -> str:
        """A name that says all of it."""
        sizes = f"{self.rows}x{self.columns}x{self.k}_{self.batch}_{self.chunk}_{self.ahead}"
        return f"{self.left}_{self.right}_{self.layout}_{sizes}"


def indirect_dot_function(module: Module, features: CpuFeatures, shape: IndirectShape) -> str:
    """The name of the function for `shape`, defined in `module` on the first call.

    ValueError for element types or lengths that it does not take.
    """
    name = f"indirect_dot_{shape.name}"
    if not module.defines(name):
        generator = _Generator(module, features, shape)
        generator.check()
        generator.dot(name)
    return name


@record(frozen=True)
class _Generator:
    module: Module
    features: CpuFeatures
    shape: IndirectShape

    @property
    def pairs(self) -> bool:
        """Whether one instruction multiplies two neighbours."""
        return self.shape.left == "bf16"

    @property
    def lanes(self) -> int:
        """Accumulators in one register."""
        return self.features.f32_lanes

    def check(self) -> None:
        """Refuse types without instructions and lines that do not fill registers."""
        shape = self.shape
        if self.pairs and not (shape.right == "bf16" and self.features.bf16_dot):
            raise ValueError(f"{self.features.name} has no dot of {shape.left} and {shape.right}")
        if not self.pairs and shape.left != "f32":
            raise ValueError(f"the left operand of an indirect dot is f32, not {shape.left}")
        length = shape.k if shape.layout == "column" else shape.columns
        if length % self.step:
            raise ValueError(f"a line has a multiple of {self.step} elements, not {length}")
        if self.pairs and shape.k % 2:
            raise ValueError(f"pairs need an even number of products, not {shape.k}")

    @property
    def step(self) -> int:
        """Elements of a line that are read at a time."""
        return self.lanes * (2 if self.pairs else 1)

    def dot(self, name: str) -> None:
        """Chunks of lines; for each the matrices, and for each of those the register tiles of c."""
        shape, is_column = self.shape, self.shape.layout == "column"
        columns = self._tile_columns()
        part = replace(shape, columns=columns, k=shape.k if is_column else shape.chunk)
        tile_name = f"lines_{part.name}"
        if not self.module.defines(tile_name):
            tile = self.module.function(tile_name, VOID, _TILE_PARAMETERS, extra="noinline ")
            generator = replace(self, shape=replace(part, columns=shape.columns))
            (generator._column_tile if is_column else generator._row_tile)(tile, columns)
        function = self.module.function(name, VOID, _PARAMETERS, extra="noinline ")
        a, a_stride, a_batch, lines, c, c_stride, c_batch, accumulate = function.parameters
        a_type = self._type(shape.left)
        count = shape.columns if is_column else shape.k
        with function.loop(0, count, shape.chunk, name="chunk") as chunks:
            first = chunks.index
            more = accumulate if is_column else function.or_(accumulate, function.icmp("ne", first, 0))
            with function.loop(0, shape.batch, name="matrix") as matrices:
                matrix = matrices.index
                here = function.gep(a, function.mul(matrix, a_batch), a_type)
                into = function.gep(c, function.mul(matrix, c_batch), F32)
                if not is_column:
                    here = function.gep(here, first, a_type)
                start = function.gep(lines, function.add(function.mul(first, shape.batch), matrix), PTR)
                ahead = function.mul(function.add(first, shape.ahead), shape.batch)
                later = function.gep(lines, function.add(ahead, function.mul(matrix, shape.chunk)), PTR)
                with function.loop(0, shape.chunk if is_column else shape.columns, columns, name="column") as loop:
                    column = function.add(first, loop.index) if is_column else loop.index
                    if is_column:
                        start = function.gep(start, function.mul(loop.index, shape.batch), PTR)
                        later = function.gep(later, loop.index, PTR)
                    address = function.gep(into, column, F32)
                    function.call(tile_name, VOID, here, a_stride, start, later, address, c_stride, more, loop.index)
        function.ret()

    def _tile_columns(self) -> int:
        """Columns of a register tile: accumulators for half of the registers."""
        room = max(1, self.features.vector_registers // 2 // self.shape.rows)
        widest = 1 << (room.bit_length() - 1)
        if self.shape.layout == "column":
            return min(widest, self.lanes, self.shape.chunk)
        # The greatest power of two that divides the columns is at least a register's, as is a tile.
        whole = self.shape.columns & -self.shape.columns
        return min(max(widest * self.lanes, self.step), whole)

    # Lines are columns of b: inner products

    def _column_tile(self, function: Function, columns: int) -> None:
        """Inner products of all rows of a and `columns` lines."""
        shape = self.shape
        a, a_stride, lines, later, c, c_stride, accumulate, _ = function.parameters
        pointers = [function.load(PTR, function.gep(lines, j * shape.batch, PTR)) for j in range(columns)]
        prefetched = [function.load(PTR, function.gep(later, j, PTR)) for j in range(columns)]
        a_rows = [function.gep(a, function.mul(a_stride, i), self._type(shape.left)) for i in range(shape.rows)]
        zero = constant(F32.with_lanes(self.lanes), 0)

        def multiply(index: Value, sums: Sequence[Value]) -> list[Value]:
            for pointer in prefetched:
                self._prefetch(function, pointer, index, self.step)
            right = [self._load(function, pointer, index, shape.right) for pointer in pointers]
            left = [self._load(function, pointer, index, shape.left) for pointer in a_rows]
            products = ((x, y) for x in left for y in right)
            return [self._multiply_add(function, x, y, total) for (x, y), total in zip(products, sums, strict=True)]

        sums = self._sums(function, shape.k, self.step, [zero] * (shape.rows * columns), multiply)
        for i in range(shape.rows):
            total = _sum_lanes(function, sums[i * columns : (i + 1) * columns])
            address = function.gep(c, function.mul(c_stride, i), F32)
            function.store(self._plus_old(function, accumulate, address, total), address)
        function.ret()

    def _multiply_add(self, function: Function, x: Value, y: Value, total: Value) -> Value:
        if not self.pairs:
            return function.fmuladd(x, y, total)
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * self.lanes}"
        pairs = vector("bfloat", 2 * self.lanes)
        return function.pure_call(name, total.type, total, function.bitcast(x, pairs), function.bitcast(y, pairs))

    # Lines are rows of b: multiples of them are added up

    def _row_tile(self, function: Function, columns: int) -> None:
        """All rows of c in `columns` columns from `first` on."""
        shape = self.shape
        a, a_stride, lines, later, c, c_stride, accumulate, first = function.parameters
        vectors = range(0, columns, self.step)
        element, group = self._type(shape.left), 2 if self.pairs else 1
        a_rows = [function.gep(a, function.mul(a_stride, i), element) for i in range(shape.rows)]
        start = self._old(function, accumulate, c, c_stride, columns)

        def multiply(index: Value, sums: Sequence[Value]) -> list[Value]:
            steps = [function.add(index, r) for r in range(group)]
            addresses = [function.gep(lines, function.mul(number, shape.batch), PTR) for number in steps]
            pointers = [function.load(PTR, address) for address in addresses]
            self._prefetch_share(function, later, first, columns, index)
            right = [part for v in vectors for part in self._row_parts(function, pointers, function.add(first, v))]
            left = [self._broadcast(function, function.gep(row, index, element)) for row in a_rows]
            products = ((x, y) for x in left for y in right)
            return [self._multiply_add(function, x, y, total) for (x, y), total in zip(products, sums, strict=True)]

        sums = self._sums(function, shape.k, group, start, multiply)
        for address, total in zip(self._addresses(function, c, c_stride, columns), sums, strict=True):
            function.store(total, address, F32.bytes)
        function.ret()

    def _prefetch_share(self, function: Function, later: Value, first: Value, columns: int, index: Value) -> None:
        """Bring nearer what falls to the step at line `index` of the tile at column `first`: all steps share the lines
        of `later` evenly and in order.
        """
        shape, group = self.shape, 2 if self.pairs else 1
        share = max(1, columns * group)  # elements of a step
        steps = shape.k // group
        step = function.add(function.mul(function.lshr(first, _log2(columns)), steps), function.lshr(index, group - 1))
        address = function.mul(step, share)
        number, rest = (function.binary(name, address, shape.columns) for name in ("udiv", "urem"))
        line = function.load(PTR, function.gep(later, number, PTR))
        self._prefetch(function, line, rest, share)

    def _row_parts(self, function: Function, pointers: Sequence[Value], index: Value) -> list[Value]:
        """A register of a line, or two registers with pairs of elements of two lines."""
        parts = [self._load(function, pointer, index, self.shape.right) for pointer in pointers]
        if not self.pairs:
            return parts
        halves = [range(first, first + self.lanes) for first in (0, self.lanes)]
        both = [[lane + line for lane in half for line in (0, self.step)] for half in halves]
        return [function.shuffle(parts[0], parts[1], lanes) for lanes in both]

    def _broadcast(self, function: Function, address: Value) -> Value:
        """One element, or a pair of neighbours, of a row of a in every lane."""
        if not self.pairs:
            return function.splat(function.load(F32, address), self.lanes)
        pair = function.splat(function.load(I32, address, 2), self.lanes)
        return function.bitcast(pair, vector("i16", self.step))

    def _addresses(self, function: Function, c: Value, c_stride: Value, columns: int) -> list[Value]:
        """The addresses of the registers of a tile of c."""
        rows = [function.gep(c, function.mul(c_stride, i), F32) for i in range(self.shape.rows)]
        return [function.gep(row, column, F32) for row in rows for column in range(0, columns, self.lanes)]

    def _old(self, function: Function, accumulate: Value, c: Value, c_stride: Value, columns: int) -> list[Value]:
        """A tile of c, or zeros."""
        type_ = F32.with_lanes(self.lanes)
        addresses = self._addresses(function, c, c_stride, columns)
        return function.choose(
            accumulate,
            lambda: [function.load(type_, address, F32.bytes) for address in addresses],
            lambda: [constant(type_, 0) for _ in addresses],
            name="old",
        )

    # What both share

    def _type(self, name: str) -> Type:
        return vector(_BITS[name], 1)

    def _load(self, function: Function, pointer: Value, index: Value, name: str) -> Value:
        """A register of a line, or of a row of a, from element `index` on: f32, or pairs as they lie."""
        element = self._type(name)
        bits = function.load(element.with_lanes(self.step), function.gep(pointer, index, element), element.bytes)
        return bits if self.pairs or name == "f32" else widen(function, self.features.f16_conversion, bits, name)

    def _sums(self, function: Function, size: int, step: int, sums: list[Value], body: Step) -> list[Value]:
        """`body` for 0, step, ... below `size`. Not unrolled: LLVM would put the prefetches of several steps together,
        and memory is slow when it is asked for much at once.
        """
        with function.loop(0, size, step, carried=sums, name="k") as loop:
            loop.yield_(*body(loop.index, loop.carried))
        return loop.results

    def _plus_old(self, function: Function, accumulate: Value, address: Value, total: Value) -> Value:
        def added() -> list[Value]:
            return [function.fadd(function.load(total.type, address, F32.bytes), total)]

        return function.choose(accumulate, added, lambda: [total], name="old")[0]

    def _prefetch(self, function: Function, pointer: Value, index: Value, elements: int) -> None:
        """Bring `elements` of a line nearer."""
        element = self._type(self.shape.right)
        for offset in range(0, elements, CACHE_LINE // element.bytes):
            function.prefetch(function.gep(pointer, function.add(index, offset), element))


def _log2(number: int) -> int:
    return number.bit_length() - 1


def _sum_lanes(function: Function, sums: Sequence[Value]) -> Value:
    """Lane j of the result is the sum of the lanes of vector j, for a power of two of vectors.

    Two vectors are folded into one as long as there are two; the last one is folded onto itself.
    """
    vectors, lanes = list(sums), sums[0].type.lanes
    part = lanes  # lanes that belong to one sum
    while part > 1:
        part //= 2
        firsts = [lane for lane in range(lanes) if lane // part % 2 == 0]
        if len(vectors) > 1:
            both = [*firsts, *(lane + lanes for lane in firsts)]
            pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
        else:
            both, pairs, lanes = firsts, [(vectors[0], vectors[0])], lanes // 2
        vectors = [_added(function, a, b, both, [lane + part for lane in both]) for a, b in pairs]
    return vectors[0]


def _added(function: Function, a: Value, b: Value, some: Sequence[int], others: Sequence[int]) -> Value:
    """The sum of two choices of lanes of a and b."""
    if len(some) == 1:
        return function.fadd(function.extract(a, some[0]), function.extract(a, others[0]))
    return function.fadd(function.shuffle(a, b, some), function.shuffle(a, b, others))
