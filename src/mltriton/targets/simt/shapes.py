"""Operations that make blocks out of indices, or rearrange their elements.

Level: intrinsic -> llvm. Each rearrangement says which element of its source an index of its result wants; `moves`
finds out what that costs. Where both encodings agree, as the passes arrange, it is a name for the same registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from mltriton.dialects import arith, tt, ttg, ttig
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import TensorType
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.llvm.emit.arith import emit_constant, number_of
from mltriton.targets.llvm.types import I32, Type, Value, constant, listed
from mltriton.targets.simt.context import Emitter, Rules, coordinates
from mltriton.targets.simt.lanes import Emitted, Form, Lanes, layout_of

Vector = tuple[int, ...]


def mapped(layout: LinearLayout, shape: Vector, function: Callable[[Vector], Vector]) -> LinearLayout:
    """The layout with every element renamed by a linear function to one of a block of `shape`."""
    bases = {
        dim: [function(vector) for vector in vectors] for dim, vectors in zip(layout.inputs, layout.bases, strict=True)
    }
    return LinearLayout.of(bases, {f"dim{dim}": size for dim, size in enumerate(shape)})


def _moved(
    e: Emitter, source: IRValue, result: IRValue, function: Callable[[Vector], Vector], origin: Vector | None = None
) -> Lanes:
    """The result whose element p is element `origin` + `function`(p) of the source."""
    from_, to = cast(TensorType, source.type), cast(TensorType, result.type)
    wanted = mapped(layout_of(to), from_.shape, function)
    return e.moved(e.lanes(source), layout_of(from_), wanted, e.form_of(to), origin)


def _rearranged(e: Emitter, op: Operation) -> Lanes:
    """Each element stands elsewhere in the source."""
    return _moved(e, op.operands[0], op.results[0], lambda index: op.source_elements(index, 0, None)[0][1])


def _reshape(e: Emitter, op: tt.Reshape) -> Lanes:
    """The same elements in row-major order."""
    new, old = (cast(TensorType, value.type).shape for value in (op.result, op.source))

    def recut(index: Vector) -> Vector:
        flat = 0
        for position, size in zip(index, new, strict=True):
            flat = flat * size + position
        made: list[int] = []
        for size in reversed(old):
            made.append(flat % size)
            flat //= size
        return tuple(reversed(made))

    return _moved(e, op.source, op.result, recut)


def _assembled(e: Emitter, parts: list[IRValue], result: IRValue, steps: list[Vector], shape: Vector) -> Lanes:
    """Equal parts put together; part number i lies at the sum of the `steps` of the bits of i. `shape`: the result's,
    with a part's dimensions in it.
    """
    to = cast(TensorType, result.type)
    part = layout_of(cast(TensorType, parts[0].type))
    rank = len(part.outputs)
    values = [value for part_ in parts for value in e.lanes(part_).values]
    bases = {dim: [(*v, *(0,) * (len(shape) - rank)) for v in part.vectors(dim)] for dim in part.inputs}
    bases["register"] += steps
    source = LinearLayout.of(bases, {f"dim{dim}": size for dim, size in enumerate(shape)})
    return e.moved(Lanes(e.lanes(parts[0]).form, values), source, layout_of(to), e.form_of(to))


def _join(e: Emitter, op: tt.Join) -> Lanes:
    shape = cast(TensorType, op.result.type).shape
    return _assembled(e, [op.lhs, op.rhs], op.result, [(*(0,) * (len(shape) - 1), 1)], shape)


def _cat(e: Emitter, op: tt.Cat) -> Lanes:
    shape = cast(TensorType, op.result.type).shape
    return _assembled(e, [op.lhs, op.rhs], op.result, [(shape[0] // 2, *(0,) * (len(shape) - 1))], shape)


def _split(e: Emitter, op: tt.Split) -> list[Lanes]:
    rank = cast(TensorType, op.source.type).rank
    origins = [(*(0,) * (rank - 1), part) for part in range(2)]
    results = zip(op.results, origins, strict=True)
    return [_moved(e, op.source, result, lambda index: (*index, 0), origin) for result, origin in results]


def _piece_steps(whole: Vector, piece: Vector) -> list[Vector]:
    """Where the pieces with the numbers 1, 2, 4, ... start: pieces are numbered first dimension fastest."""
    steps: list[Vector] = []
    for dim, (size, part) in enumerate(zip(whole, piece, strict=True)):
        while part < size:
            steps.append(tuple(part if d == dim else 0 for d in range(len(whole))))
            part *= 2
    return steps


def _extract(e: Emitter, op: ttig.Extract) -> Emitted:
    source, piece = cast(TensorType, op.source.type), cast(TensorType, op.result.type)
    steps = _piece_steps(source.shape, piece.shape)
    chosen = [step for bit, step in enumerate(steps) if op.index >> bit & 1]
    origin = tuple(sum(step[dim] for step in chosen) for dim in range(source.rank))
    return _moved(e, op.source, op.result, lambda index: index, origin)


def _glue(e: Emitter, op: ttig.Glue) -> Emitted:
    whole, piece = cast(TensorType, op.result.type), cast(TensorType, op.pieces[0].type)
    return _assembled(e, op.pieces, op.result, _piece_steps(whole.shape, piece.shape), whole.shape)


def _make_range(e: Emitter, op: tt.MakeRange) -> Lanes:
    type_ = cast(TensorType, op.result.type)
    start = constant(I32, op.start)
    indices = [e.affine.add(index, start) for index in coordinates(e, layout_of(type_), 0)]
    return e.packed(indices, e.form_of(type_))


def _unsplat(e: Emitter, op: tt.Unsplat) -> Value:
    return e.registers(op.source)[0]


def _constant(e: Emitter, op: arith.Constant) -> Emitted:
    def same(number: int | float, form: Form, registers: int) -> Lanes:
        return e.packed([constant(form.element, number)] * registers, form)

    return constant_of(e, op, same, partial(_by_lane, e))


def constant_of(
    e: Emitter,
    op: arith.Constant,
    same: Callable[[int | float, Form, int], Lanes],
    by_lane: Callable[[list[int | float], Type], Value],
) -> Emitted:
    """A scalar, the `same` number in so many registers, or registers with the numbers of each lane (`by_lane`)."""
    type_, value = op.result.type, op.value
    if not isinstance(type_, TensorType):
        return emit_constant(e, op)
    assert isinstance(value, DenseAttr)
    form, layout = e.form_of(type_), layout_of(type_)
    numbers = [number_of(number, value) for number in value.values]
    if value.is_splat:
        return same(numbers[0], form, layout.count("register"))
    rows = _row_major(layout, type_)
    return e.packed([by_lane([numbers[index] for index in row], form.element) for row in rows], form)


def _row_major(layout: LinearLayout, type_: TensorType) -> list[list[int]]:
    """For each register the row-major number of its element in each lane."""
    table = layout.only(["register", "lane"]).table()
    flat = table[..., 0]
    for dim in range(1, type_.rank):
        flat = flat * type_.shape[dim] + table[..., dim]
    return flat.tolist()


def _by_lane(e: Emitter, numbers: list[int | float], element: Type) -> Value:
    """The number of this lane."""
    if len({constant(element, number) for number in numbers}) == 1:
        return constant(element, numbers[0])
    f, lane = e.function, e.calls.lane(e.function)
    most = e.machine.longest_vector
    tables = [numbers[at : at + most] for at in range(0, len(numbers), most)]
    own = [f.extract(listed(element, table), f.and_(lane, len(table) - 1)) for table in tables]
    first, *others = own
    for number, other in enumerate(others, 1):
        first = f.select(f.icmp("uge", lane, number * most), other, first)
    return first


RULES: Rules = {
    **dict.fromkeys((ttg.ConvertLayout, tt.ExpandDims, tt.Broadcast, tt.Trans), _rearranged),
    ttig.Extract: _extract,
    ttig.Glue: _glue,
    tt.Reshape: _reshape,
    tt.Join: _join,
    tt.Cat: _cat,
    tt.Split: _split,
    tt.MakeRange: _make_range,
    tt.Unsplat: _unsplat,
    arith.Constant: _constant,
}
