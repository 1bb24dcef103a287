"""The formula of an operation's result, from those of its operands.

Level: tt to ttg. A table by the class of operation; None where a result has no formula. Provisos are made here: of
remainders, minima, maxima and choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from mltriton.analysis.formula import Bound, Formula, Mask, moved_bounds, result_dim
from mltriton.analysis.polynomials import ONE, ZERO, Polynomial
from mltriton.dialects import arith, tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, TensorType, element_type, shape_of


class Known(Protocol):
    """The formulas of other values."""

    def of(self, value: Value) -> Formula | None:
        """The formula of an integer, a pointer, or a block of either."""
        ...

    def mask(self, value: Value) -> Mask:
        """What a block of i1 says of places."""
        ...


def _constant(formulas: Known, op: arith.Constant) -> Formula | None:
    number = splat_of(op.result)
    if not isinstance(number, int) or element_type(op.result.type) is I1:
        return None
    return Formula(Polynomial.constant(number), _still(op))


def _still(op: Operation) -> tuple[Polynomial, ...]:
    return (ZERO,) * len(shape_of(op.results[0].type))


def _splat(formulas: Known, op: tt.Splat) -> Formula | None:
    source = formulas.of(op.source)
    return replace(source, steps=_still(op)) if source is not None else None


def _range(formulas: Known, op: tt.MakeRange) -> Formula:
    return Formula(Polynomial.constant(op.start), (ONE,))


def _same(formulas: Known, op: arith.ExtSI | arith.IndexCast | ttg.ConvertLayout) -> Formula | None:
    return formulas.of(op.source) if element_type(op.source.type) is not I1 else None


def _moved(formulas: Known, op: tt.ExpandDims | tt.Broadcast | tt.Trans) -> Formula | None:
    source = formulas.of(op.source)
    if source is None:
        return None
    steps = [ZERO] * len(shape_of(op.result.type))
    for dim, step in enumerate(source.steps):
        if (to := result_dim(op, dim)) is not None:
            steps[to] = step
    provisos = moved_bounds(op, source.provisos)
    return None if provisos is None else replace(source, steps=tuple(steps), provisos=frozenset(provisos))


def _sum(formulas: Known, op: arith.AddI | arith.SubI | tt.AddPtr) -> Formula | None:
    lhs, rhs = (formulas.of(value) for value in op.operands)
    if lhs is None or rhs is None or (rhs.base is not None):
        return None
    return lhs - rhs if isinstance(op, arith.SubI) else lhs + rhs


def _product(formulas: Known, op: arith.MulI) -> Formula | None:
    lhs, rhs = (formulas.of(value) for value in op.operands)
    if lhs is None or rhs is None or lhs.base is not None or rhs.base is not None:
        return None
    return lhs.times(rhs.first) if rhs.is_uniform else rhs.times(lhs.first) if lhs.is_uniform else None


def _shifted(formulas: Known, op: arith.ShLI) -> Formula | None:
    source, amount = formulas.of(op.lhs), formulas.of(op.rhs)
    number = amount.first.number if amount is not None and amount.is_uniform else None
    if source is None or number is None or not 0 <= number < 31:
        return None
    return source.times(Polynomial.constant(1 << number))


def _remainder(formulas: Known, op: arith.RemSI | arith.RemUI) -> Formula | None:
    """An element that is neither negative nor as large as the divisor is its own remainder."""
    index, divisor = formulas.of(op.lhs), formulas.of(op.rhs)
    if index is None or divisor is None or not divisor.is_uniform:
        return None
    return _within(index, ZERO - index.first, divisor.first - index.first)


def _within(index: Formula, lower: Polynomial | None, upper: Polynomial | None) -> Formula | None:
    """Places that go on by ones along one dimension, promised to be `lower <= place < upper`."""
    moving = [dim for dim, step in enumerate(index.steps) if not step.is_zero]
    if len(moving) != 1 or index.steps[moving[0]].number != 1:
        return None
    limits = ((False, lower), (True, upper))
    bounds = {Bound(moving[0], is_upper, limit) for is_upper, limit in limits if limit is not None}
    return replace(index, provisos=index.provisos | bounds)


def _least(formulas: Known, op: arith.MinSI) -> Formula | None:
    return _clamped(formulas, op.operands, lambda index, end: (None, end + ONE - index))


def _greatest(formulas: Known, op: arith.MaxSI) -> Formula | None:
    return _clamped(formulas, op.operands, lambda index, end: (end - index, None))


Limits = tuple[Polynomial | None, Polynomial | None]


def _clamped(
    formulas: Known, operands: Sequence[Value], limits: Callable[[Polynomial, Polynomial], Limits]
) -> Formula | None:
    parts = [formulas.of(value) for value in operands]
    for index, end in (parts, parts[::-1]):
        if index is not None and end is not None and end.is_uniform and not index.is_uniform:
            return _within(index, *limits(index.first, end.first))
    return None


def _choice(formulas: Known, op: arith.Select) -> Formula | None:
    """Where a comparison of places holds, the first value."""
    if not isinstance(op.condition.type, TensorType):
        return None
    mask, chosen = formulas.mask(op.condition), formulas.of(op.true_value)
    if chosen is None or mask.scalars or mask.rest:
        return None
    return replace(chosen, provisos=chosen.provisos | set(mask.bounds))


RULES: dict[type[Operation], Callable[[Known, Any], Formula | None]] = {
    arith.Constant: _constant,
    tt.Splat: _splat,
    tt.MakeRange: _range,
    tt.ExpandDims: _moved,
    tt.Broadcast: _moved,
    tt.Trans: _moved,
    ttg.ConvertLayout: _same,
    arith.ExtSI: _same,
    arith.IndexCast: _same,
    arith.AddI: _sum,
    arith.SubI: _sum,
    tt.AddPtr: _sum,
    arith.MulI: _product,
    arith.ShLI: _shifted,
    arith.RemSI: _remainder,
    arith.RemUI: _remainder,
    arith.MinSI: _least,
    arith.MaxSI: _greatest,
    arith.Select: _choice,
}
