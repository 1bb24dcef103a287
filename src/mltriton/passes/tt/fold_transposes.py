"""fold-transposes: a block that is only used transposed is loaded so.

Level: tt. Takes any program and changes it in place. A load through a descriptor or a block pointer made right here,
whose only user is a `tt.trans` of a matrix, becomes one through a block pointer with the dimensions exchanged: where
the hardware transposes on the way, moving elements between lanes is saved. Guarantees: the same values; the access
stays where it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import arith, tt
from mltriton.dialects.builtin import Module
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import Patterns, apply_patterns
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


PATTERNS: Patterns = {tt.DescriptorLoad: descriptor_load, tt.Load: block_load}
