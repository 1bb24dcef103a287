"""combine: operations that together are one.

Level: tt. Takes any program and changes it in place. The rules are upstream's: chains of pointer offsets, a sum with
a dot that started at zero, a select around a masked load, a broadcast product that is summed (which is a dot). One is
our own: what is widened to be compared with one number is compared as it is.
Guarantees: integers and addresses are the same; a dot that takes over a sum or a reduction rounds as dots do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import make_constant, splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import Patterns, apply_patterns
from mltriton.ir.promises import promises_in
from mltriton.ir.types import F32, TensorType, element_type

WIDENING = (arith.ExtSI, arith.ExtUI)
SMALLEST_DOT = 16  # a summed product of fewer terms is left as it is


class Combine(Pass):
    """Put operations together."""

    name = "combine"

    def run(self, module: Module) -> Module:
        apply_patterns(module, PATTERNS)
        return module


def offsets_of_offsets(builder: Builder, op: tt.AddPtr) -> Sequence[Value] | None:
    """(p + a) + b is p + (a + b), for offsets of one type, where nothing is promised of p + a."""
    inner = op.ptr.defining_op
    if not isinstance(inner, tt.AddPtr) or inner.offset.type is not op.offset.type or promises_in(inner.attributes):
        return None
    return [builder.emit(tt.AddPtr, inner.ptr, builder.emit(arith.AddI, inner.offset, op.offset))]


def sum_with_dot(builder: Builder, op: arith.AddF | arith.AddI) -> Sequence[Value] | None:
    """dot(a, b, 0) + c is dot(a, b, c)."""
    for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        dot = value.defining_op
        if isinstance(dot, tt.Dot) and splat_of(dot.c) == 0 and value.uses == 1 and dot.max_num_imprecise_acc == 0:
            made = builder.insert(tt.Dot([dot.a, dot.b, other], [op.result.type], dot.attributes, loc=dot.loc))
            return [made.result]
    return None


def select_of_load(builder: Builder, op: arith.Select) -> Sequence[Value] | None:
    """select(m, load(p, m, x), y) is load(p, m, y); m may be a scalar in the select and its splat in the load."""
    load = op.true_value.defining_op
    if not isinstance(load, tt.Load) or load.mask is None or load.volatile or load.result.uses > 1:
        return None
    if load.block is not op.block or _scalar(load.mask) is not _scalar(op.condition):
        return None
    operands = [load.ptr, load.mask, op.false_value]
    made = tt.Load(operands, [load.result.type], load.attributes, loc=load.loc, segments=(1, 1, 1))
    return [builder.insert(made).result] if _can_move_down(load, builder) else None


def _can_move_down(load: tt.Load, builder: Builder) -> bool:
    """Whether nothing between a load and the end of the block being filled may write."""
    ops = builder.block.ops
    return not any(op.writes or op.regions for op in ops[ops.index(load) + 1 :])


def _scalar(condition: Value) -> Value:
    """The scalar of a splat; any other condition is itself."""
    op = condition.defining_op
    return op.source if isinstance(op, tt.Splat) else condition


def summed_product(builder: Builder, op: tt.Reduce) -> Sequence[Value] | None:
    """sum over k of a[:, :, None] * b[None, :, :] is dot(a, b), for f32."""
    if op.axis != 1 or op.combiner is not arith.AddF:
        return None
    product = op.sources[0].defining_op
    if not isinstance(product, arith.MulF):
        return None
    for lhs, rhs in (product.operands, product.operands[::-1]):
        a, b = _expanded(lhs, 2), _expanded(rhs, 0)
        if a is not None and b is not None and cast(TensorType, a.type).shape[1] >= SMALLEST_DOT:
            result = cast(TensorType, op.results[0].type)
            zero = builder.emit(arith.Constant, value=make_constant(result, (0.0,)))
            return [builder.emit(tt.Dot, a, b, zero)]
    return None


def equal_to_wider(builder: Builder, op: arith.CmpI) -> Sequence[Value] | None:
    """A widened block equals one number where the block does, and the number is one of the narrow ones."""
    for wide, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        extension, splat = wide.defining_op, other.defining_op
        if op.predicate in ("eq", "ne") and isinstance(extension, WIDENING) and isinstance(splat, tt.Splat):
            narrow = extension.source
            number = builder.emit(arith.TruncI, splat.source, result_types=[element_type(narrow.type)])
            again = builder.emit(type(extension), number, result_types=[splat.source.type])
            same = builder.emit(arith.CmpI, again, splat.source, predicate=op.predicate)
            numbers, sames = (
                builder.emit(tt.Splat, value, result_types=[type_])
                for value, type_ in ((number, narrow.type), (same, op.result.type))
            )
            found = builder.emit(arith.CmpI, narrow, numbers, predicate=op.predicate)
            return [builder.emit(arith.AndI if op.predicate == "eq" else arith.OrI, found, sames)]
    return None


def _expanded(value: Value, axis: int) -> Value | None:
    """x where the value is an f32 x of rank 2 with a new dimension at `axis`, broadcast along that dimension only."""
    op = value.defining_op
    inner = op.source.defining_op if isinstance(op, tt.Broadcast) else None
    if not isinstance(inner, tt.ExpandDims) or inner.axis != axis:
        return None
    source, result = cast(TensorType, inner.source.type), cast(TensorType, value.type)
    kept = (*result.shape[:axis], *result.shape[axis + 1 :])
    return inner.source if source.shape == kept and source.element is F32 and source.rank == 2 else None


PATTERNS: Patterns = {
    tt.AddPtr: offsets_of_offsets,
    arith.AddF: sum_with_dot,
    arith.AddI: sum_with_dot,
    arith.CmpI: equal_to_wider,
    arith.Select: select_of_load,
    tt.Reduce: summed_product,
}
