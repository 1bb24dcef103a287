"""Operands of dots in the order in which micro-kernels read them.

Level: warp to intrinsic. `pack` writes a matrix as [rows / group][columns * group]: `group` consecutive rows
interleaved, converted to the micro-kernel's type; a matrix wider than a panel as [panels][rows / group][panel * group].
Memory that runs along the rows is read along the rows and transposed in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import cast

from mltriton.dialects import arith, tile, tt
from mltriton.ir.operation import Value
from mltriton.ir.types import I32, I64, TensorType, Type, byte_width, shape_of
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, Vector, constant_index
from mltriton.passes.intrinsic.tile_loops.indexing import divide
from mltriton.passes.intrinsic.tile_loops.tiles import LINE, LONG_ROW, Tile
from mltriton.records import NamedTuple, record

STRAIGHT = 8  # chunks of a row that are written without a loop


@record(frozen=True)
class Packing:
    """How a block is packed: rows and columns are dimensions of the block, `along_rows` says how memory runs.

    `panel`: columns of a panel; 0 where the whole matrix is one.
    """

    value: Value
    row_dim: int
    column_dim: int
    element: Type
    group: int
    along_rows: bool
    panel: int = 0

    @property
    def panel_stride(self) -> int:
        """Elements from one panel to the next."""
        return self.rows // self.group * self.stride

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return shape_of(self.value.type)[self.row_dim]

    @property
    def columns(self) -> int:
        """Columns of the matrix."""
        return shape_of(self.value.type)[self.column_dim]

    @property
    def stride(self) -> int:
        """Elements from one group of rows to the next."""
        if self.panel:
            return self.panel * self.group
        width = self.columns * self.group
        return width + LINE // byte_width(self.element) if width * byte_width(self.element) >= LONG_ROW else width

    def index(self, prefix: Index, row: Form, column: Form) -> Index:
        """The block's index of an element of the matrix."""
        coordinates: list[Form] = [*prefix, row, row]
        coordinates[self.row_dim], coordinates[self.column_dim] = row, column
        return tuple(coordinates)


def allocate(e: Evaluator, packing: Packing) -> Tile:
    """Room for the packed matrix."""
    panels = packing.columns // packing.panel if packing.panel else 1
    return e.scratch.raw(panels * packing.panel_stride, packing.element, (packing.panel_stride, packing.stride, 1))


def pack(e: Evaluator, packing: Packing, target: Tile, prefix: Index) -> None:
    """Fill `target` row by row; `prefix` is the index along the dimensions before the matrix."""
    lanes = gcd(packing.columns, e.emitter.lanes)
    with e.emitter.count(packing.rows // packing.group) as loop:
        row = Affine(I32, loop.counter, 0, 0)
        if packing.panel:
            _pack_panels(e, packing, target, prefix, row, gcd(packing.panel, lanes))
            return
        chunks = packing.columns // lanes
        straight, together = (2, 2) if e.refuted else (STRAIGHT, 4)  # At edges only: a third of the code, as good as.
        if chunks <= straight:
            for chunk in range(chunks):
                _pack_chunk(e, packing, target, prefix, row, Affine(I32, None, chunk * lanes, int(lanes > 1)), lanes)
        else:
            unroll = gcd(chunks, together)
            with e.emitter.count(packing.columns, unroll * lanes) as inner:
                for u in range(unroll):
                    column = Affine(I32, inner.counter, u * lanes, int(lanes > 1))
                    _pack_chunk(e, packing, target, prefix, row, column, lanes)


def _pack_panels(e: Evaluator, packing: Packing, target: Tile, prefix: Index, row: Affine, lanes: int) -> None:
    """`group` rows of every panel."""
    with e.emitter.count(packing.columns // packing.panel) as loop:
        panel = Affine(I32, loop.counter, 0, 0)
        first = e.arithmetic.times(panel, constant_index(packing.panel))
        for inside in range(0, packing.panel, lanes):
            column = e.arithmetic.add(first, constant_index(inside))
            lane = Affine(I32, column.base, column.const, int(lanes > 1))
            _pack_chunk(e, packing, target, prefix, row, lane, lanes, (panel, constant_index(inside)))


def _pack_chunk(
    e: Evaluator,
    packing: Packing,
    target: Tile,
    prefix: Index,
    row: Affine,
    column: Affine,
    lanes: int,
    at: tuple[Affine, Affine] | None = None,
) -> None:
    """`group` rows of one chunk of columns; `at` says in which panel they come and where in it."""
    a, group = e.arithmetic, packing.group
    first = a.times(row, constant_index(group))
    parts = [
        e.convert(
            e.at(packing.value, packing.index(prefix, a.add(first, constant_index(r)), column), lanes),
            packing.element,
            lanes,
        )
        for r in range(group)
    ]
    form = parts[0]
    if group > 1:
        form = Vector(_interleave(e, [a.chunk(part, lanes) for part in parts]))
    panel, inside = at or (constant_index(0), column)
    coordinate = a.times(inside, constant_index(group))
    start = Affine(coordinate.type, coordinate.base, coordinate.const, int(lanes * group > 1))
    accesses.write(e, e.address(target, (panel, row, start)), None, form, lanes * group)


def _interleave(e: Evaluator, parts: Sequence[Value]) -> Value:
    type = cast(TensorType, parts[0].type)
    return e.emitter.pure(tile.Interleave, parts, TensorType((type.size * len(parts),), type.element))


def square(e: Evaluator, packing: Packing, together: int = 1) -> int:
    """The columns of the squares that are transposed in registers, `together` rows moving as one; 1 where there is
    nothing to transpose.
    """
    return gcd(packing.columns, packing.rows // together, e.emitter.lanes) if packing.along_rows else 1


class Source(NamedTuple):
    """Memory that runs along the rows: element (row, column) at pointer + column * stride + row, all of it there."""

    pointer: Value
    stride: Value
    element: Type

    def address(self, e: Evaluator, row: Value, column: Value, number: int) -> Affine:
        """The lanes from `row` on in the column that is `number` after `column`; multiples of the stride first, so
        that they stand outside the loops.
        """
        a = e.arithmetic
        stride = a.wrap(self.stride)
        base = Affine(self.pointer.type, self.pointer, 0, 0)
        for step in (constant_index(number), a.wrap(column)):
            wide = combine(e, arith.ExtSI, [step], I64, 1, {})
            moved = combine(e, arith.MulI, [wide, stride], I64, 1, {})
            base = cast(Affine, combine(e, tt.AddPtr, [base, moved], base.type, 1, {}))
        return a.move(base, Affine(I32, row, 0, 1))


def pack_transposed(e: Evaluator, packing: Packing, target: Tile, source: Source) -> None:
    """Fill `target` in squares that are read along the rows: of whole groups, unless elements are converted."""
    group, a = packing.group, e.arithmetic
    together = group if source.element is packing.element else 1
    side = square(e, packing, together)
    lanes = side * together
    with e.emitter.count(packing.columns, side) as columns, e.emitter.count(packing.rows, lanes) as rows:
        chunks: list[Value] = []
        for number in range(side):
            address = source.address(e, rows.counter, columns.counter, number)
            form = accesses.read(e, address, None, None, source.element, lanes)
            chunks.append(a.chunk(e.convert(form, packing.element, lanes), lanes))
        made = list(e.emitter.insert(tile.Transpose(chunks, [chunk.type for chunk in chunks])).results)
        if together < group:
            made = [_interleave(e, made[i : i + group]) for i in range(0, side, group)]
        first = _group_of(e, rows.counter, group)
        panel, inside = _panel_of(e, Affine(I32, columns.counter, 0, 0), packing.panel)
        coordinate = a.times(inside, constant_index(group))
        start = Affine(coordinate.type, coordinate.base, coordinate.const, 1)
        for i, packed in enumerate(made):
            at = a.add(first, constant_index(i))
            accesses.write(e, e.address(target, (panel, at, start)), None, Vector(packed), side * group)


def _panel_of(e: Evaluator, column: Affine, width: int) -> tuple[Affine, Affine]:
    """The panel that a column belongs to, and its coordinate there."""
    if not width:
        return constant_index(0), column
    panel, inside = divide(e, column, width, 1)
    return cast(Affine, panel), cast(Affine, inside)


def _group_of(e: Evaluator, row: Value, group: int) -> Affine:
    number, _ = divide(e, Affine(I32, row, 0, 0), group, 1)
    assert isinstance(number, Affine)
    return number
