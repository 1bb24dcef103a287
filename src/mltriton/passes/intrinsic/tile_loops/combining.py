"""Combine regions of reductions and scans, written on chunks or scalars.

Level: intrinsic. A region without control flow is applied to whole chunks, lane by lane; one with control flow or
effects (assertions) only to scalars. Guarantees: `neutral` is a value that changes nothing when combined, where one is
known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mltriton.dialects import arith
from mltriton.ir.attributes import DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.operation import Operation, Region, Value
from mltriton.ir.types import I1, FloatType, IntegerType, TensorType, Type
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator

_NEUTRAL: dict[type[Operation], float] = {
    arith.AddF: -0.0,
    arith.MulF: 1.0,
    arith.MaximumF: -math.inf,
    arith.MinimumF: math.inf,
    arith.MaxNumF: math.nan,
    arith.MinNumF: math.nan,
    arith.AddI: 0,
    arith.MulI: 1,
    arith.AndI: -1,
    arith.OrI: 0,
    arith.XOrI: 0,
    arith.MaxUI: 0,
    arith.MinUI: -1,
}


def is_straight(region: Region) -> bool:
    """Whether a region can be applied to whole chunks."""
    return all(op.pure and not op.regions for op in region.block.ops[:-1])


def neutral(region: Region, element: Type) -> float | None:
    """The value that combines with any other to that other one; None where it is not known."""
    ops = region.block.ops
    if len(ops) != 2 or list(ops[1].operands) != list(ops[0].results):
        return None
    if set(ops[0].operands) != set(region.block.arguments):
        return None
    if isinstance(ops[0], arith.MaxSI | arith.MinSI):
        assert isinstance(element, IntegerType)
        low = -(1 << (element.width - 1)) if element is not I1 else 0
        return low if isinstance(ops[0], arith.MaxSI) else -1 - low
    if isinstance(element, FloatType) and element.width == 8 and math.isinf(_NEUTRAL.get(type(ops[0]), 0.0)):
        return None
    return _NEUTRAL.get(type(ops[0]))


def apply(e: Evaluator, region: Region, old: Sequence[Value], new: Sequence[Value]) -> list[Value]:
    """The combination of two sets of scalars or chunks."""
    block = region.block
    shape = new[0].type
    values: dict[Value, Value] = dict(zip(block.arguments, (*old, *new), strict=True))

    def operand(value: Value) -> Value:
        found = values.get(value)
        if found is None:
            found = e.scalar(value)
            if isinstance(shape, TensorType):
                found = e.emitter.splat(found, shape.size)
        return found

    for op in block.ops[:-1]:
        if op.regions:
            values.update(_cloned(e, op, values))
            continue
        if not op.results:
            e.emitter.insert(op.__class__([operand(v) for v in op.operands], (), op.attributes, (), op.loc))
            continue
        type = op.results[0].type
        result = TensorType(shape.shape, type) if isinstance(shape, TensorType) else type
        if isinstance(op, arith.Constant):
            values[op.result] = _constant(e, op, result)
        else:
            values[op.results[0]] = e.emitter.pure(
                op.__class__, [operand(v) for v in op.operands], result, op.attributes
            )
    return [operand(value) for value in block.terminator.operands]


def _constant(e: Evaluator, op: arith.Constant, type: Type) -> Value:
    value = op.value
    assert isinstance(value, IntegerAttr | FloatAttr) and not isinstance(value, DenseAttr)
    return e.emitter.number(value.value, type)


def _cloned(e: Evaluator, op: Operation, values: dict[Value, Value]) -> dict[Value, Value]:
    """Control flow in a combination of scalars."""
    for inner in op.walk():
        for value in inner.operands:
            if value not in values and value in e.scalars:
                values[value] = e.scalars[value]
    copies = dict(values)
    e.emitter.insert(op.clone(copies))
    return {result: copies[result] for result in op.results}


def tree(e: Evaluator, region: Region, parts: Sequence[list[Value]]) -> list[Value]:
    """All parts combined, neighbours first."""
    while len(parts) > 1:
        pairs = [apply(e, region, a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(parts) & ~1 :]]
    return parts[0]
