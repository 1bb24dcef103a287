"""Programs of scalars and chunks, whose tiles are scratch memory.

Level: intrinsic. Values are scalars and *chunks* (1D tensors of at most the target's lanes). Tiles are thread-private
scratch memory addressed through ordinary scalar pointers (`!tt.ptr<f32, 5>`), read and written by contiguous chunk
accesses; a dot is a micro-kernel on memory. Everything else is `arith`, `math` and `scf` on scalars and chunks,
`tt.load`/`tt.store`/`tt.atomic_*` on scalar pointers or chunks of pointers (gather, scatter), `tt.make_range`,
`tt.splat`, `tt.addptr`, and `tt.reduce` of a chunk to a scalar. Strides and counts are i64, in elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import (
    pointer,
    require,
    require_attributes,
    require_bytes,
    require_type,
    require_types,
    tensor,
    types_of,
)
from mltriton.ir.definition import (
    boolean,
    enum,
    integer,
    integers,
    operand,
    optional,
    string,
    variadic,
)
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, I32, I64, PointerType, TensorType, Type, pointee

__all__ = [
    "Dot",
    "IndirectDot",
    "Interleave",
    "Lane",
    "Load",
    "Prefetch",
    "Print",
    "Scratch",
    "Store",
    "Transpose",
]


class Scratch(Operation, name="tile.scratch", pure=True):
    """`tile.scratch {bytes, offset} : !tt.ptr<f32, 5>`: a part of the thread's scratch memory, `bytes` long, contents
    undefined at first; at `offset` bytes (a multiple of 64) once `allocate-scratch` has said so.

    What only one loop accesses is new in each of its iterations, unless it is `kept`.
    """

    syntax = "attr-dict `:` type(result)"
    offset = integer()
    bytes = integer()
    kept = boolean()

    def verify(self) -> None:
        require_attributes(self, "bytes")
        require(self, (self.offset or 0) % 64 == 0, "the offset is a multiple of 64", found=self.offset)
        require(self, self.bytes > 0, "scratch memory has a size", found=self.bytes)
        space = pointer(self, "the result", self.result).address_space
        require(self, space == 5, "scratch memory is thread-private", "address space 5", space)


class Load(Operation, name="tile.load", reads=True):
    """`tile.load %ptr [, %mask [, %other]] : tensor<16xf32>`: lane l reads ptr + l (of the chunk's element type; i1
    in memory is one byte, 0 or 1).

    Masked-off lanes read nothing and give `other` (0 when absent). `align` is the known alignment in bytes (default:
    the element's); `nontemporal` is a hint. A `volatile` one is done where it stands, each time.
    """

    syntax = "$ptr (`,` $mask^)? (`,` $other^)? attr-dict `:` type(result)"
    ptr = operand()
    mask = optional()
    other = optional()
    align = integer()
    nontemporal = boolean()
    volatile = boolean()

    def verify(self) -> None:
        chunk = chunk_at(self, self.ptr, self.result)
        verify_mask(self, self.mask, chunk)
        if self.other is not None:
            require(self, self.mask is not None, "`other` needs a mask")
            require_type(self, "other", self.other.type, chunk)


class Store(Operation, name="tile.store", writes=True):
    """`tile.store %ptr, %chunk [, %mask]`: lane l writes ptr + l where the mask is true."""

    syntax = "$ptr `,` $value (`,` $mask^)? attr-dict `:` type($value)"
    ptr = operand()
    value = operand()
    mask = optional()
    align = integer()
    nontemporal = boolean()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []

    def verify(self) -> None:
        verify_mask(self, self.mask, chunk_at(self, self.ptr, self.value))


class Transpose(Operation, name="tile.transpose", pure=True):
    """`tile.transpose %r0, ..., %rn`: n chunks of n * g lanes, in which g neighbours move together (1; 2 or 4 for the
    packing that pair and quad dots want); lane j * g + r of result i is lane i * g + r of operand j.
    """

    syntax = "$rows attr-dict `:` type($rows)"
    rows = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [value.type for value in operands]

    def verify(self) -> None:
        rows = types_of(self.rows)
        require_types(self, "the results", types_of(self.results), rows)
        for row in self.rows:
            type = tensor(self, "a row", row)
            require_type(self, "a row", type, rows[0])
            whole = type.rank == 1 and type.size in (len(rows), 2 * len(rows), 4 * len(rows))
            require(self, whole, "as many rows as lanes, pairs or quads of them", len(rows), type)


class Interleave(Operation, name="tile.interleave", pure=True):
    """`tile.interleave %a, %b [, %c, %d]`: n chunks of L lanes become one chunk of n L lanes: a0 b0 (c0 d0) a1 b1 ...
    (the packing that pair and quad dots want).
    """

    syntax = "$parts attr-dict `:` type($parts) `->` type(result)"
    parts = variadic()

    def verify(self) -> None:
        require(self, len(self.parts) in (2, 4), "interleaves pairs or quads", "2 or 4 chunks", len(self.parts))
        first = tensor(self, "a chunk", self.parts[0])
        for part in self.parts:
            require_type(self, "a chunk", part.type, first)
        require_type(self, "the result", self.result.type, first.with_shape((first.size * len(self.parts),)))


class Lane(Operation, name="tile.lane", pure=True):
    """`tile.lane %chunk[%i]`: one lane as a scalar; `index` is an i32 scalar."""

    syntax = "$source `[` $index `]` attr-dict `:` type($source) `->` type(result)"
    source = operand()
    index = operand()

    def verify(self) -> None:
        chunk = tensor(self, "the source", self.source)
        require(self, chunk.rank == 1, "the source is a chunk", "rank 1", chunk)
        require_type(self, "the index", self.index.type, I32)
        require_type(self, "the result", self.result.type, chunk.element)


class Dot(Operation, name="tile.dot", reads=True, writes=True):
    """`tile.dot %a, %a_stride, %b, %b_stride, %c, %c_stride, %k, %accumulate {m, n, group, a_layout}`: a micro-kernel
    on memory.

    c[i, j] = (c[i, j] if accumulate else 0) + sum over k of a[i, k] * b[k, j] for i < m, j < n; c has the
    accumulator's type (f32, f64, i32). Addresses in elements of the pointers' types: c at i * c_stride + j. With g =
    `group` (1; 2 for 16-bit pairs; 4 for 8-bit quads) and `k` counting groups: a (`a_layout` "row") at i * a_stride +
    k * g + r, or ("column", g = 1 only) at k * a_stride + i; b at k * b_stride + j * g + r, for r < g. With `panel`,
    b comes in panels of that many columns, `panel_stride` apart: at (j // panel) * panel_stride + k * b_stride +
    (j % panel) * g + r. Bytes of a or b may be read as unsigned (`a_unsigned`, `b_unsigned`).
    """

    syntax = (
        "$a `,` $a_stride `,` $b `,` $b_stride `,` $c `,` $c_stride `,` $k `,` $accumulate "
        "attr-dict `:` type($a) `,` type($b) `,` type($c)"
    )
    a = operand()
    a_stride = operand()
    b = operand()
    b_stride = operand()
    c = operand()
    c_stride = operand()
    k = operand()
    accumulate = operand()
    m = integer()
    n = integer()
    group = integer(1)
    panel = integer()
    panel_stride = integer(0)
    a_layout = enum("tile_layout", "row")
    a_unsigned = boolean()
    b_unsigned = boolean()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []

    def verify(self) -> None:
        a, b, _ = (pointer(self, *each).pointee for each in (("a", self.a), ("b", self.b), ("c", self.c)))
        require_bytes(self, a_unsigned=(self.a_unsigned, a), b_unsigned=(self.b_unsigned, b))
        for what, value in (
            ("a's stride", self.a_stride),
            ("b's stride", self.b_stride),
            ("c's stride", self.c_stride),
        ):
            require_type(self, what, value.type, I64)
        require_type(self, "k", self.k.type, I64)
        require_type(self, "accumulate", self.accumulate.type, I1)
        require_attributes(self, "m", "n")
        sizes = (self.m, self.n, self.group)
        require(self, min(sizes) > 0, "m, n and group are positive", found=sizes)
        grouped_column = self.a_layout == "column" and self.group != 1
        require(self, not grouped_column, "a column layout has no groups", "group = 1", self.group)


class IndirectDot(Operation, name="tile.indirect_dot", reads=True, writes=True):
    """`tile.indirect_dot %a, %a_stride, %a_batch, %lines, %c, %c_stride, %c_batch, %accumulate {m, n, k, batch, chunk,
    ahead, b_layout}`: dots of few rows whose right operands lie in lines of their own.

    c[i, j] = (c[i, j] if accumulate else 0) + sum over r of a[i, r] * b[r, j] for i < m, j < n, r < k, in each of
    `batch` matrices. `lines` points to an array of pointers, line after line and for each line those of all matrices:
    with `b_layout` "row" pointer r * batch + number is that of b[r, 0 .. n - 1], with "column" pointer
    j * batch + number that of b[0 .. k - 1, j]. a is row-major, element (i, r) at number * a_batch + i * a_stride + r;
    c has the accumulator's type, element (i, j) at number * c_batch + i * c_stride + j. `chunk` lines of one matrix are
    multiplied before those of the next one; pointers to `ahead` more lines follow, for lines to be prefetched.
    """

    syntax = (
        "$a `,` $a_stride `,` $a_batch `,` $lines `,` $c `,` $c_stride `,` $c_batch `,` $accumulate "
        "attr-dict `:` type($a) `,` type($lines) `,` type($c)"
    )
    a = operand()
    a_stride = operand()
    a_batch = operand()
    lines = operand()
    c = operand()
    c_stride = operand()
    c_batch = operand()
    accumulate = operand()
    m = integer()
    n = integer()
    k = integer()
    batch = integer(1)
    chunk = integer(1)
    ahead = integer(0)
    b_layout = enum("tile_layout", "row")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []

    @property
    def element(self) -> Type:
        """The type of b's elements."""
        return pointee(pointee(self.lines.type))

    def verify(self) -> None:
        for what, value in (("a", self.a), ("c", self.c)):
            pointer(self, what, value)
        lines = pointer(self, "the lines", self.lines)
        require(self, isinstance(lines.pointee, PointerType), "lines are pointers", "!tt.ptr<!tt.ptr<...>>", lines)
        strides = {"a's stride": self.a_stride, "a's batch stride": self.a_batch}
        strides |= {"c's stride": self.c_stride, "c's batch stride": self.c_batch}
        for what, value in strides.items():
            require_type(self, what, value.type, I64)
        require_type(self, "accumulate", self.accumulate.type, I1)
        require_attributes(self, "m", "n", "k")
        sizes = (self.m, self.n, self.k, self.batch, self.chunk)
        require(self, min(sizes) > 0, "m, n, k, batch and chunk are positive", found=sizes)
        count = self.k if self.b_layout == "row" else self.n
        require(self, count % self.chunk == 0, "chunks are whole", f"a divisor of {count} lines", self.chunk)


class Prefetch(Operation, name="tile.prefetch", reads=True, writes=True):
    """`tile.prefetch %ptr`: brings the cache line at `ptr` nearer, with `write` to be written. Any address will do."""

    syntax = "$ptr attr-dict `:` type($ptr)"
    ptr = operand()
    write = boolean()

    def verify(self) -> None:
        pointer(self, "the address", self.ptr)


def chunk_at(op: Operation, ptr: Value, value: Value) -> TensorType:
    """The type of a chunk that is read or written at a scalar pointer to its elements."""
    chunk = tensor(op, "the chunk", value)
    require(op, chunk.rank == 1, "a chunk has one dimension", "rank 1", chunk)
    require_type(op, "what the pointer points to", pointer(op, "the address", ptr).pointee, chunk.element)
    return chunk


def verify_mask(op: Operation, mask: Value | None, chunk: TensorType) -> None:
    """A mask has one i1 for each lane."""
    if mask is not None:
        require_type(op, "the mask", mask.type, chunk.with_element(I1))


class Print(Operation, name="tile.print", reads=True, writes=True):
    """`tile.print "prefix", %value at [%i, %j]`: prints elements of a block, as `tt.print` does: a scalar, the one at
    these coordinates; of a chunk lane l, the one at (i, j + l). `prefix` is all that precedes the number; `widths` are
    the characters that each coordinate takes at least.
    """

    syntax = "$prefix `,` $value `at` `[` $coordinates `]` attr-dict `:` type($value)"
    prefix = string("")
    widths = integers()
    hex = boolean()
    value = operand()
    coordinates = variadic()

    def verify(self) -> None:
        require(self, len(self.coordinates) > 0, "an element has coordinates")
        require(self, len(self.widths) == len(self.coordinates), "each coordinate has a width")
        for coordinate in self.coordinates:
            require_type(self, "a coordinate", coordinate.type, I32)
