"""hoist-transposes: a block is transposed where it is loaded, not after it was masked, scaled or converted.

Level: tt. Takes any program and changes it in place. A `tt.trans` of a matrix moves up through element-wise operations
(`arith.select` and masks among them) to the loads of block pointers and descriptors below, which `fold-transposes` then
makes transposing ones. A load with a pointer for each element whose block becomes an operand of a dot is done
transposed itself: each lane then reads what the dot wants it to have. Guarantees: the same values; loads stay where
they were; what is loaded is loaded once, and only what is cheap (constants, ranges, masks of rows and columns) may be
computed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.block_io import is_block_load
from mltriton.dialects import arith, tt
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType, byte_width, pointee

EXCHANGED = (1, 0)
BlockLoad = tt.DescriptorLoad | tt.Load


class HoistTransposes(Pass):
    """Move transposes up to the loads."""

    name = "hoist-transposes"

    def run(self, module: Module) -> Module:
        for function in module.body.block.ops:
            for op in [op for op in function.walk() if isinstance(op, tt.Trans) and tuple(op.order) == EXCHANGED]:
                loads = _loads(op.source)
                if loads and not is_block_load(op.source.defining_op) and _pays(op, loads):
                    op.replace_by([_exchanged(Builder().before(op), op.source)])
        return module


def _loads(value: Value) -> list[BlockLoad] | None:
    """The loads that a transposed `value` would be loaded by; None where it cannot be transposed this way."""
    op = value.defining_op
    if op is None:
        return None
    if isinstance(op, tt.Splat | tt.ExpandDims) or splat_of(value) is not None or 1 in _shape(value):
        return []
    if isinstance(op, tt.Broadcast):
        return _loads(op.source)
    if isinstance(op, BlockLoad) and is_block_load(op):
        return [op] if value.uses == 1 else None
    if not (op.elementwise and op.pure) and not isinstance(op, tt.Load):
        return None
    below = [_loads(operand) for operand in op.operands if isinstance(operand.type, TensorType)]
    found = [load for loads in below for load in loads or ()]
    if None in below or (found and (value.uses > 1 or isinstance(op, tt.Load))):
        return None
    if isinstance(op, tt.Load):
        return [op] if value.uses == 1 and not op.volatile else None
    return found


def _shape(value: Value) -> tuple[int, ...]:
    return cast(TensorType, value.type).shape


def _pays(op: tt.Trans, loads: Sequence[BlockLoad]) -> bool:
    """Whether loads by pointers leave their lanes neighbours along the rows, as a dot takes them."""
    by_pointers = [load for load in loads if not is_block_load(load)]
    if not by_pointers:
        return True
    function = op.ancestor(tt.Func)
    assert isinstance(function, tt.Func)
    axes = AxisInfoAnalysis(function)
    return _feeds_dot(op.result) and all(_runs_along_rows(axes, cast(tt.Load, load)) for load in by_pointers)


def _runs_along_rows(axes: AxisInfoAnalysis, load: tt.Load) -> bool:
    element = pointee(load.ptr.type)
    return axes.contiguous_bytes(load.ptr, 1) > max(byte_width(element), axes.contiguous_bytes(load.ptr, 0))


def _feeds_dot(value: Value) -> bool:
    users = list(value.users)
    return bool(users) and all(
        isinstance(user, tt.Dot) or (user.elementwise and user.pure and _feeds_dot(user.results[0])) for user in users
    )


def _exchanged(builder: Builder, value: Value) -> Value:
    """The transposed block."""
    op, type = value.defining_op, cast(TensorType, value.type)
    made = type.with_shape(type.shape[::-1])
    number = splat_of(value)
    if number is not None:
        return arith.filled(builder, number, made)
    if isinstance(op, tt.Splat):
        return builder.emit(tt.Splat, op.source, result_types=[made])
    if isinstance(op, tt.ExpandDims):
        return builder.emit(tt.ExpandDims, op.source, axis=1 - op.axis)
    if isinstance(op, tt.Broadcast):
        return builder.emit(tt.Broadcast, _exchanged(builder, op.source), result_types=[made])
    if op is None or is_block_load(op) or (1 in type.shape and not (op.elementwise and op.pure)):
        return builder.emit(tt.Trans, value, order=EXCHANGED, result_types=[made])
    if isinstance(op, tt.Load):
        builder = Builder().before(op)
    operands = [_exchanged(builder, x) if isinstance(x.type, TensorType) else x for x in op.operands]
    copied = builder.insert(op.__class__(operands, [made], dict(op.attributes), loc=op.loc, segments=op.segments))
    copied.results[0].hint = value.hint
    return copied.results[0]
