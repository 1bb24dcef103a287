"""fold-transposes: a block that is only used transposed is loaded so, and a product that is transposed is stored so.

Level: tt. Takes any program and changes it in place. A load through a descriptor or a block pointer made right here,
whose only user is a `tt.trans` of a matrix, becomes one through a block pointer with the dimensions exchanged: where
the hardware transposes on the way, moving elements between lanes is saved. So is what is made of a dot, transposed and
stored: each lane has neighbours of a column. Guarantees: the same values; the access stays where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from mltriton.dialects import arith, tt
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import Patterns, apply_patterns
from mltriton.ir.reaching import reached
from mltriton.ir.types import I64, PointerType, TensorType

EXCHANGED = (1, 0)


class FoldTransposes(Pass):
    """Load transposed what is used transposed."""

    name = "fold-transposes"

    def run(self, module: Module) -> Module:
        apply_patterns(module, PATTERNS)
        return module


def descriptor_load(builder: Builder, op: tt.DescriptorLoad) -> Sequence[Value] | None:
    """Through a descriptor: outside of the tensor lies its padding."""
    maker = op.desc.defining_op
    if not _is_only_transposed(op.result) or not isinstance(maker, tt.MakeTensorDesc):
        return None
    shape = [builder.emit(arith.ExtSI, size, result_types=[I64]) for size in maker.shape]
    type = _exchanged(op.result)
    pointer = _pointer(builder, maker.base, shape, maker.strides, op.indices, type)
    hints = {"cache": op.cache, "evict": op.evict, "boundary_check": (0, 1), "padding": maker.padding}
    loaded = builder.emit(tt.Load, pointer, None, None, **hints)
    return [builder.emit(tt.Trans, loaded, order=EXCHANGED, result_types=[op.result.type])]


def block_load(builder: Builder, op: tt.Load) -> Sequence[Value] | None:
    """Through a block pointer that nothing has moved."""
    maker = op.ptr.defining_op
    if not isinstance(maker, tt.MakeTensorPtr) or not _is_only_transposed(op.result):
        return None
    type = _exchanged(op.result)
    pointer = _pointer(builder, maker.base, maker.shape, maker.strides, maker.offsets, type, maker.order)
    made = tt.Load([pointer], [type], dict(op.attributes), (), op.loc, (1, 0, 0))
    if op.boundary_check:
        made.boundary_check = tuple(1 - dim for dim in op.boundary_check)
    loaded = builder.insert(made).result
    return [builder.emit(tt.Trans, loaded, order=EXCHANGED, result_types=[op.result.type])]


def descriptor_store(builder: Builder, op: tt.DescriptorStore) -> Sequence[Value] | None:
    """Through a descriptor: nothing outside of the tensor is stored."""
    maker = op.desc.defining_op
    if not _is_transposed_product(op.value) or not isinstance(maker, tt.MakeTensorDesc):
        return None
    shape = [builder.emit(arith.ExtSI, size, result_types=[I64]) for size in maker.shape]
    pointer = _pointer(builder, maker.base, shape, maker.strides, op.indices, _exchanged(op.value))
    builder.create(tt.Store, pointer, _untransposed(builder, op.value), None, boundary_check=(0, 1))
    return []


def block_store(builder: Builder, op: tt.Store) -> Sequence[Value] | None:
    """Through a block pointer that nothing has moved."""
    maker = op.ptr.defining_op
    if not isinstance(maker, tt.MakeTensorPtr) or not _is_transposed_product(op.value):
        return None
    parts = (maker.shape, maker.strides, maker.offsets, _exchanged(op.value), maker.order)
    pointer = _pointer(builder, maker.base, *parts)
    value = _untransposed(builder, op.value)
    made = tt.Store([pointer, value], [], dict(op.attributes), (), op.loc, (1, 1, 0))
    if op.boundary_check:
        made.boundary_check = tuple(1 - dim for dim in op.boundary_check)
    builder.insert(made)
    return []


def _is_transposed_product(value: Value) -> bool:
    """Whether a matrix is what was made of a dot, transposed and perhaps converted."""
    op = value.defining_op
    if isinstance(op, tt.Trans):
        return tuple(op.order) == EXCHANGED and _has_dot(op.source)
    return _is_conversion(op) and len(list(value.users)) == 1 and _is_transposed_product(op.operands[0])


def _is_conversion(op: Operation | None) -> TypeGuard[Operation]:
    return op is not None and op.elementwise and len(op.operands) == 1


def _has_dot(value: Value) -> bool:
    """Whether a dot has a part in a block, through element-wise operations, loops and branches."""
    return any(isinstance(found.defining_op, tt.Dot) for found in reached([value], _blocks_before))


def _blocks_before(value: Value) -> list[Value]:
    op = value.defining_op
    before = op.operands if op is not None and op.elementwise else handed_from(value) or ()
    return [block for block in before if isinstance(block.type, TensorType)]


def _untransposed(builder: Builder, value: Value) -> Value:
    op = value.defining_op
    if isinstance(op, tt.Trans):
        return op.source
    assert _is_conversion(op)
    inner = _untransposed(builder, op.operands[0])
    return builder.insert(type(op)([inner], [_exchanged(value)], op.attributes, (), op.loc, op.segments)).results[0]


def _pointer(
    builder: Builder,
    base: Value,
    shape: Sequence[Value],
    strides: Sequence[Value],
    offsets: Sequence[Value],
    type: TensorType,
    order: Sequence[int] = EXCHANGED,
) -> Value:
    """A block pointer to the same block with its two dimensions exchanged."""
    parts = [list(reversed(values)) for values in (shape, strides, offsets)]
    fastest = tuple(1 - dim for dim in order)
    return builder.emit(tt.MakeTensorPtr, base, *parts, order=fastest, result_types=[PointerType(type)])


def _is_only_transposed(value: Value) -> bool:
    users = list(value.users)
    return len(users) == 1 and isinstance(users[0], tt.Trans) and tuple(users[0].order) == EXCHANGED


def _exchanged(value: Value) -> TensorType:
    type = value.type
    assert isinstance(type, TensorType)
    return type.with_shape(type.shape[::-1])


PATTERNS: Patterns = {
    tt.DescriptorLoad: descriptor_load,
    tt.Load: block_load,
    tt.DescriptorStore: descriptor_store,
    tt.Store: block_store,
}
