"""reorder-broadcast: compute first, then repeat.

Level: tt. Takes any program and changes it in place. Element-wise operations on splats become operations on scalars,
and on blocks broadcast from one small shape operations on the small blocks; broadcasts and changes of shape of splats
become splats; the uniform part of a pointer offset moves to the base pointer. Guarantees: the same values; index
arithmetic happens on the smallest blocks on which it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, tt
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import constant_of, splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import Patterns, apply_patterns
from mltriton.ir.promises import of_moved
from mltriton.ir.types import TensorType, Type, like


class ReorderBroadcast(Pass):
    """Move element-wise operations in front of splats and broadcasts."""

    name = "reorder-broadcast"

    def run(self, module: Module) -> Module:
        kinds = {type(op) for op in module.walk() if op.elementwise and op.pure}
        apply_patterns(module, {**dict.fromkeys(kinds, elementwise), **PATTERNS})
        return module


def elementwise(builder: Builder, op: Operation) -> Sequence[Value] | None:
    """f(splat(x), splat(y)) is splat(f(x, y)); f(broadcast(x), broadcast(y), splat(z)) is broadcast(f(x, y,
    splat(z))).
    """
    type = op.results[0].type
    if not isinstance(type, TensorType):
        return None
    blocks = [value for value in op.operands if isinstance(value.type, TensorType)]
    if not blocks or all(constant_of(value) is not None for value in blocks):
        return None  # folding does the rest
    small = _common_source(blocks)
    if small is None:
        return None
    operands = [_reduced(builder, value, small) for value in op.operands]
    (result_type,) = (_sized(result.type, small) for result in op.results)
    inner = builder.insert(op.__class__(operands, [result_type], op.attributes, loc=op.loc, segments=op.segments))
    return [builder.emit(tt.Broadcast if small else tt.Splat, inner.result, result_types=[type])]


def _common_source(blocks: Sequence[Value]) -> tuple[int, ...] | None:
    """The shape from which all blocks are repeated: () where all are splats; None where there is no such shape."""
    shapes: set[tuple[int, ...]] = set()
    for value in blocks:
        op = value.defining_op
        if isinstance(op, tt.Broadcast):
            shapes.add(cast(TensorType, op.source.type).shape)
        elif not isinstance(op, tt.Splat) and splat_of(value) is None:
            return None
    return None if len(shapes) > 1 else shapes.pop() if shapes else ()


def _reduced(builder: Builder, value: Value, shape: tuple[int, ...]) -> Value:
    """An operand before it is repeated from `shape`."""
    if not isinstance(value.type, TensorType):
        return value
    op = value.defining_op
    type = _sized(value.type, shape)
    if isinstance(op, tt.Broadcast):
        return op.source
    if isinstance(op, tt.Splat):
        return builder.emit(tt.Splat, op.source, result_types=[type]) if shape else op.source
    constant = constant_of(value)
    assert isinstance(constant, DenseAttr)
    return arith.filled(builder, constant.splat, type)


def _sized(type: Type, shape: tuple[int, ...]) -> Type:
    block = cast(TensorType, type)
    return TensorType(shape, block.element) if shape else block.element


def reshaped_splat(
    builder: Builder, op: tt.Broadcast | tt.ExpandDims | tt.Reshape | tt.Trans
) -> Sequence[Value] | None:
    """A splat in another shape is a splat."""
    inner = op.source.defining_op
    if not isinstance(inner, tt.Splat):
        return None
    return [builder.emit(tt.Splat, inner.source, result_types=[op.result.type])]


def expanded_broadcast(builder: Builder, op: tt.ExpandDims) -> Sequence[Value] | None:
    """expand_dims(broadcast(x)) is broadcast(expand_dims(x))."""
    inner = op.source.defining_op
    if not isinstance(inner, tt.Broadcast):
        return reshaped_splat(builder, op)
    expanded = builder.emit(tt.ExpandDims, inner.source, axis=op.axis)
    return [builder.emit(tt.Broadcast, expanded, result_types=[op.result.type])]


def offset_pointer(builder: Builder, op: tt.AddPtr) -> Sequence[Value] | None:
    """p + splat(s) moves the base of p by s, where p has one."""
    if isinstance(op.offset.type, TensorType):
        step = op.offset.defining_op
        if isinstance(step, tt.Splat) and has_base(op.ptr):
            return [moved_by(builder, op.ptr, step.source)]
    return elementwise(builder, op)


def has_base(pointers: Value) -> bool:
    """Whether a block of pointers is made by offsets and broadcasts from the splat of one pointer."""
    op = pointers.defining_op
    while isinstance(op, tt.AddPtr | tt.Broadcast | tt.ExpandDims):
        op = op.operands[0].defining_op
    return isinstance(op, tt.Splat)


def moved_by(builder: Builder, pointers: Value, amount: Value) -> Value:
    """`pointers` + splat(`amount`), with the amount added to the base pointer where there is one."""
    op = pointers.defining_op if has_base(pointers) else None
    if isinstance(op, tt.Splat):
        base = builder.emit(tt.AddPtr, op.source, amount)
        return builder.emit(tt.Splat, base, result_types=[pointers.type])
    if isinstance(op, tt.AddPtr | tt.Broadcast | tt.ExpandDims):
        base = moved_by(builder, op.operands[0], amount)
        known = of_moved(op.attributes)
        copy = op.__class__([base, *op.operands[1:]], [pointers.type], known, loc=op.loc, segments=op.segments)
        return builder.insert(copy).result
    step = builder.emit(tt.Splat, amount, result_types=[like(pointers.type, amount.type)])
    return builder.emit(tt.AddPtr, pointers, step)


# Besides these, element-wise operations of any kind.
PATTERNS: Patterns = {
    tt.AddPtr: offset_pointer,
    tt.Broadcast: reshaped_splat,
    tt.ExpandDims: expanded_broadcast,
    tt.Reshape: reshaped_splat,
    tt.Trans: reshaped_splat,
}
