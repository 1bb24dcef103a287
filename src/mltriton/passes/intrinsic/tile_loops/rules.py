"""How an operation's result at an index comes from its operands at theirs: a rule for each operation.

Level: warp to intrinsic. `Evaluator.at` follows definitions by these; `operations.py` says which belongs to what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mltriton.analysis.address_uses import is_place
from mltriton.analysis.natural_numbers import is_natural
from mltriton.dialects import arith, tile, tt, ttg
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, I32, FloatType, IntegerType, TensorType, Type
from mltriton.passes.intrinsic.tile_loops.accesses import compare, load_at
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.emitter import refuse
from mltriton.passes.intrinsic.tile_loops.forms import (
    Affine,
    Form,
    Index,
    Vector,
    constant_index,
    is_uniform,
)
from mltriton.passes.intrinsic.tile_loops.indexing import divide, divided, reshaped_index

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator

SHORTEST = 4  # lanes that are put together of two halves


def elementwise(e: Evaluator, op: Operation, index: Index, lanes: int) -> Form:
    """Element by element."""
    forms = [e.at(operand, index, lanes) for operand in op.operands]
    return combine(e, type(op), forms, cast(TensorType, op.results[0].type).element, lanes, op.attributes)


def division(e: Evaluator, op: arith.DivSI | arith.RemSI, index: Index, lanes: int) -> Form:
    """Element by element; affine where the lanes cross no multiple of a known divisor."""
    number, divisor = (e.at(operand, index, lanes) for operand in op.operands)
    parts = divided(e, number, divisor, lanes) if is_natural(op.operands[0], e.naturals) else None
    if parts is None:
        return combine(e, type(op), [number, divisor], cast(TensorType, op.result.type).element, lanes, op.attributes)
    return parts[isinstance(op, arith.RemSI | arith.RemUI)]


def extension(e: Evaluator, op: arith.ExtSI, index: Index, lanes: int) -> Form:
    """Element by element; affine where numbers are small, not negative, or say where memory is accessed."""
    form = e.at(op.source, index, lanes)
    element = cast(TensorType, op.result.type).element
    moves = isinstance(form, Affine) and form.base is not None and not is_uniform(form)
    if moves and not (is_natural(op.source, e.naturals) or is_place(op.result)):
        form = Vector(e.arithmetic.chunk(form, lanes))
    return combine(e, arith.ExtSI, [form], element, lanes, {})


def constant(e: Evaluator, op: arith.Constant, index: Index, lanes: int) -> Form:
    """A splat constant."""
    value = op.value
    if not isinstance(value, DenseAttr) or not value.is_splat:
        raise refuse(op, "a constant whose elements differ is not supported on this target")
    element = cast(TensorType, op.result.type).element
    return e.arithmetic.wrap(e.emitter.number(value.splat, element))


def select(e: Evaluator, op: arith.Select, index: Index, lanes: int) -> Form:
    """Element by element; the first value where the condition is known to hold."""
    return e.at(op.true_value, index, lanes) if op in e.unmasked else elementwise(e, op, index, lanes)


def make_range(e: Evaluator, op: tt.MakeRange, index: Index, lanes: int) -> Form:
    """start + coordinate."""
    return combine(e, arith.AddI, [index[0], constant_index(op.start)], I32, lanes, {})


def splat(e: Evaluator, op: tt.Splat, index: Index, lanes: int) -> Form:
    """A scalar."""
    return e.arithmetic.wrap(e.scalar(op.source))


def same_element(e: Evaluator, op: Operation, index: Index, lanes: int) -> Form:
    """The element stands elsewhere in the operand."""
    ((source, coordinates),) = op.source_elements(index, constant_index(0), None)
    if None in coordinates:
        raise refuse(op, f"{op.name} computes where its elements are, and has no rule for that in tile_loops")
    return e.at(source, coordinates, lanes)


def split(e: Evaluator, op: tt.Split, index: Index, lanes: int) -> Form:
    """The coordinates name the half, too."""
    return e.at(op.source, index, lanes)


def reshape(e: Evaluator, op: tt.Reshape, index: Index, lanes: int) -> Form:
    """The element with the same row-major number; lanes that alternate between two blocks by a shuffle."""
    pairs = op.source.defining_op
    coordinate = _half(e, op, index[-1], lanes) if isinstance(pairs, tt.Join) else None
    if coordinate is None:
        return e.at(op.source, reshaped_index(e, op, index, lanes), lanes)
    assert isinstance(pairs, tt.Join)
    parts = [e.chunk(part, (*index[:-1], coordinate), lanes // 2) for part in (pairs.lhs, pairs.rhs)]
    return Vector(e.emitter.pure(tile.Interleave, parts, e.emitter.chunk_type(_element(op), lanes)))


def _half(e: Evaluator, op: tt.Reshape, last: Form, lanes: int) -> Form | None:
    """The coordinate in blocks that are joined along the last dimension, of lanes that begin with the first one's; None
    where they do not, or go along another dimension.
    """
    source, result = (cast(TensorType, value.type).shape for value in (op.source, op.result))
    is_number = isinstance(_element(op), IntegerType | FloatType) and _element(op) is not I1
    if source[:-2] != result[:-1] or not is_number or lanes < SHORTEST:
        return None
    if not isinstance(last, Affine) or last.stride != 1 or last.const % 2 or lanes % 2:
        return None
    if last.base is not None and e.emitter.multiple_of(last.base) % 2:
        return None
    first, _ = divide(e, last._replace(stride=0), 2, 1)
    return combine(e, arith.AddI, [first, Affine(I32, None, 0, 1)], I32, lanes // 2, {})


def _element(op: tt.Reshape) -> Type:
    return cast(TensorType, op.result.type).element


def join(e: Evaluator, op: tt.Join, index: Index, lanes: int) -> Form:
    """One operand or the other, as the last coordinate says."""
    return _choose(e, index[-1], 1, op.lhs, index[:-1], op.rhs, index[:-1], lanes)


def cat(e: Evaluator, op: tt.Cat, index: Index, lanes: int) -> Form:
    """The first operand where the first coordinate lies in it, else the second."""
    first = index[0]
    extent = cast(TensorType, op.lhs.type).shape[0]
    if isinstance(first, Affine) and first.base is None and isinstance(first.stride, int):
        ends = (first.const, first.const + first.stride * (lanes - 1))
        if max(ends) < extent:
            return e.at(op.lhs, index, lanes)
        if min(ends) >= extent:
            return e.at(op.rhs, (_minus(e, first, extent), *index[1:]), lanes)
    left = combine(e, arith.MinSI, [first, constant_index(extent - 1)], I32, lanes, {})
    right = combine(e, arith.MaxSI, [_minus(e, first, extent), constant_index(0)], I32, lanes, {})
    return _choose(e, first, extent, op.lhs, (left, *index[1:]), op.rhs, (right, *index[1:]), lanes)


def _minus(e: Evaluator, coordinate: Form, extent: int) -> Form:
    return combine(e, arith.AddI, [coordinate, constant_index(-extent)], I32, 0, {})


def _choose(
    e: Evaluator, coordinate: Form, limit: int, lhs: Value, left: Index, rhs: Value, right: Index, lanes: int
) -> Form:
    """lhs[left] where coordinate < limit, else rhs[right]."""
    if isinstance(coordinate, Affine) and coordinate.base is None and coordinate.stride == 0:
        return e.at(lhs, left, lanes) if coordinate.const < limit else e.at(rhs, right, lanes)
    is_left = compare(e, "slt", coordinate, constant_index(limit), lanes)
    forms = [is_left, e.at(lhs, left, lanes), e.at(rhs, right, lanes)]
    return combine(e, arith.Select, forms, cast(TensorType, lhs.type).element, lanes, {})


def indexed(e: Evaluator, op: Operation, index: Index, lanes: int) -> Form:
    """The element that the indices, its first source, name: the coordinate that `index` does not say."""
    (indices, at), _ = op.source_elements(index, constant_index(0), None)
    where, element = e.at(indices, at, lanes), cast(TensorType, indices.type).element
    if element is not I32:
        where = e.convert(where, I32, lanes)
    _, (source, coordinates) = op.source_elements(index, constant_index(0), where)
    return e.at(source, coordinates, lanes)


def load(e: Evaluator, op: tt.Load | tt.DescriptorLoad, index: Index, lanes: int) -> Form:
    """Memory."""
    return load_at(e, op, index, lanes)


def shared_load(e: Evaluator, op: ttg.LocalLoad, index: Index, lanes: int) -> Form:
    """Shared memory."""
    return e.from_tile(e.window(op.memory), op.result, index, lanes)
