"""What `arith` and `math` operations equal when operands are constants or equal each other.

Level: tt to intrinsic. One table a kind: element functions for constants, identities with a constant on the right,
results for two equal operands. Guarantees: a fold gives bit for bit what the operation gives; where the result is
unspecified (division by zero, shifts by the width or more) nothing folds. Additions, products, quotients and square
roots of narrow floats are computed in double precision and rounded once more, which is exact because double has more
than twice their digits (S. Figueroa, "When is double rounding innocuous?").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from mltriton.dialects import arith
from mltriton.dialects import math as m
from mltriton.ir.attributes import Attribute
from mltriton.ir.constants import (
    Number,
    compute,
    constant_of,
    make_constant,
    splat_of,
    unsigned,
    width_of,
    wrap,
)
from mltriton.ir.floats import bits_to_float, convert_float, float_to_bits, round_float
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, FloatType, IndexType, Type, element_type

Fold = Value | Attribute | None
MAX_EXACT = 1 << 53  # integers up to here are exact in double precision


def fold(op: arith.Pure) -> Fold:
    """What an operation equals, by the tables below."""
    for kind, rule in _FOLDS.items():
        if isinstance(op, kind):
            return rule(op)
    return fold_elementwise(op)


def fold_elementwise(op: Operation) -> Fold:
    """The fold of any element-wise operation in the tables below."""
    cls = type(op)
    if cls.commutative and constant_of(op.operands[0]) is not None and constant_of(op.operands[1]) is None:
        first, second = op.operands
        op.set_operands([second, first])
    function, rounded = _element_function(op), round_float if cls in CHOICES else convert_float
    if function is not None and (made := compute(function, op.operands, op.results[0].type, rounded)) is not None:
        return made
    return _fold_equal(op) or _fold_neutral(op)


def _element_function(op: Operation) -> Callable[..., Number | None] | None:
    cls = op.__class__
    type = op.operands[0].type
    if element_type(type) is I1 and cls not in MODULO_2:
        return None
    if cls in UNSIGNED:
        return partial(_unsigned, UNSIGNED[cls], type)
    if cls in SHIFTS:
        return partial(_shift, SHIFTS[cls], type)
    return SIGNED.get(cls) or FLOATS.get(cls) or UNARY.get(cls)


def _unsigned(function: Callable[[int, int], int | None], type: Type, a: int, b: int) -> int | None:
    return function(unsigned(a, type), unsigned(b, type))


def _shift(function: Callable[[int, int, Type], int], type: Type, value: int, amount: int) -> int | None:
    return function(value, amount, type) if 0 <= amount < width_of(type) else None


def _truncated(a: int, b: int) -> int | None:
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    quotient = _truncated(a, b)
    return None if quotient is None else a - quotient * b


SIGNED: dict[type[Operation], Callable[[int, int], int | None]] = {
    arith.AddI: lambda a, b: a + b,
    arith.SubI: lambda a, b: a - b,
    arith.MulI: lambda a, b: a * b,
    arith.DivSI: _truncated,
    arith.RemSI: _remainder,
    arith.FloorDivSI: lambda a, b: a // b if b else None,
    arith.CeilDivSI: lambda a, b: -(-a // b) if b else None,
    arith.AndI: lambda a, b: a & b,
    arith.OrI: lambda a, b: a | b,
    arith.XOrI: lambda a, b: a ^ b,
    arith.MaxSI: max,
    arith.MinSI: min,
}

UNSIGNED: dict[type[Operation], Callable[[int, int], int | None]] = {
    arith.DivUI: lambda a, b: a // b if b else None,
    arith.RemUI: lambda a, b: a % b if b else None,
    arith.MaxUI: max,
    arith.MinUI: min,
}

SHIFTS: dict[type[Operation], Callable[[int, int, Type], int]] = {
    arith.ShLI: lambda a, b, type: a << b,
    arith.ShRSI: lambda a, b, type: a >> b,
    arith.ShRUI: lambda a, b, type: unsigned(a, type) >> b,
}

# What computes i1 right although it is stored as 0 or 1 and not as 0 or -1.
MODULO_2 = {arith.AddI, arith.SubI, arith.MulI, arith.AndI, arith.OrI, arith.XOrI, *UNSIGNED}


def _maximum(a: float, b: float) -> float | None:
    if math.isnan(a) or math.isnan(b):
        return None
    return b if a < b or (a == b and math.copysign(1, a) < 0) else a


def _minimum(a: float, b: float) -> float | None:
    if math.isnan(a) or math.isnan(b):
        return None
    return b if a > b or (a == b and math.copysign(1, b) < 0) else a


# What gives an operand or its negative, and rounds nothing: an infinity of fp8 stays one.
CHOICES = {arith.MaximumF, arith.MinimumF, arith.MaxNumF, arith.MinNumF, arith.NegF, m.AbsF}
FLOATS: dict[type[Operation], Callable[[float, float], float | None]] = {
    arith.AddF: lambda a, b: a + b,
    arith.SubF: lambda a, b: a - b,
    arith.MulF: lambda a, b: a * b,
    arith.DivF: lambda a, b: a / b,
    arith.RemF: math.fmod,
    arith.MaximumF: _maximum,
    arith.MinimumF: _minimum,
    arith.MaxNumF: _maximum,
    arith.MinNumF: _minimum,
}

UNARY: dict[type[Operation], Callable[[Any], Number]] = {
    arith.NegF: lambda a: -a,
    m.AbsF: abs,
    m.AbsI: abs,
    m.Sqrt: math.sqrt,
    m.Floor: lambda a: math.copysign(math.floor(a), a),
    m.Ceil: lambda a: math.copysign(math.ceil(a), a),
}

# Right operand -> what the operation equals: "lhs", "rhs" or zero. Floats are told apart by sign.
IDENTITIES: dict[type[Operation], dict[str, str]] = {
    arith.AddI: {"0": "lhs"},
    arith.SubI: {"0": "lhs"},
    arith.MulI: {"1": "lhs", "0": "rhs"},
    arith.DivSI: {"1": "lhs"},
    arith.DivUI: {"1": "lhs"},
    arith.FloorDivSI: {"1": "lhs"},
    arith.CeilDivSI: {"1": "lhs"},
    arith.RemSI: {"1": "0"},
    arith.RemUI: {"1": "0"},
    arith.AndI: {"0": "rhs", "-1": "lhs"},
    arith.OrI: {"0": "lhs", "-1": "rhs"},
    arith.XOrI: {"0": "lhs"},
    arith.ShLI: {"0": "lhs"},
    arith.ShRSI: {"0": "lhs"},
    arith.ShRUI: {"0": "lhs"},
    arith.AddF: {"-0.0": "lhs"},
    arith.SubF: {"0.0": "lhs"},
    arith.MulF: {"1.0": "lhs"},
    arith.DivF: {"1.0": "lhs"},
}

# What an operation on two equal integers equals.
EQUAL: dict[type[Operation], str] = {
    **dict.fromkeys((arith.AndI, arith.OrI, arith.MaxSI, arith.MinSI, arith.MaxUI, arith.MinUI), "lhs"),
    **dict.fromkeys((arith.MaximumF, arith.MinimumF, arith.MaxNumF, arith.MinNumF), "lhs"),
    **dict.fromkeys((arith.SubI, arith.XOrI), "0"),
}


def _fold_neutral(op: Operation) -> Fold:
    identities = IDENTITIES.get(op.__class__)
    number = splat_of(op.operands[1]) if identities is not None else None
    if identities is None or number is None:
        return None
    if number == 1 and element_type(op.operands[1].type) is I1:
        number = -1 if type(op) in (arith.AndI, arith.OrI) else number  # the only set bit is all bits
    return _side(op, identities.get(repr(number)))


def _fold_equal(op: Operation) -> Fold:
    rule = EQUAL.get(op.__class__)
    if rule is None or op.operands[0] is not op.operands[1]:
        return None
    return _side(op, rule)


def _side(op: Operation, rule: str | None) -> Fold:
    if rule == "0":
        return make_constant(op.results[0].type, (0,))
    return None if rule is None else op.operands[0 if rule == "lhs" else 1]


# Comparisons and selections.

INTEGER_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def fold_cmpi(op: arith.CmpI) -> Fold:
    """Constants compare; a value compared with itself is known."""
    order = INTEGER_ORDERS[op.predicate[-2:]]
    if op.lhs is op.rhs:
        return make_constant(op.result.type, (int(order(0, 0)),))
    is_signed = op.predicate[0] == "s"
    if is_signed and element_type(op.lhs.type) is I1:
        return None

    def compare(a: int, b: int) -> int:
        return int(order(a, b) if is_signed else order(unsigned(a, op.lhs.type), unsigned(b, op.lhs.type)))

    return compute(compare, op.operands, op.result.type)


def fold_cmpf(op: arith.CmpF) -> Fold:
    """Constants compare, NaN included."""
    predicate = op.predicate
    if predicate in ("true", "false"):
        return make_constant(op.result.type, (int(predicate == "true"),))

    def compare(a: float, b: float) -> int:
        unordered = math.isnan(a) or math.isnan(b)
        if predicate in ("ord", "uno"):
            return int(unordered == (predicate == "uno"))
        return int(predicate[0] == "u") if unordered else int(INTEGER_ORDERS[predicate[1:]](a, b))

    return compute(compare, op.operands, op.result.type)


def fold_select(op: arith.Select) -> Fold:
    """A known condition, equal values, or a condition selected as itself."""
    if op.true_value is op.false_value:
        return op.true_value
    condition = splat_of(op.condition)
    if condition is not None:
        return op.true_value if condition else op.false_value
    is_condition = op.result.type is op.condition.type
    if is_condition and splat_of(op.true_value) == 1 and splat_of(op.false_value) == 0:
        return op.condition
    return None


# Conversions.


def _to_float(value: int) -> float | None:
    return float(value) if abs(value) <= MAX_EXACT else None


def _to_integer(value: float, type: Type, signed: bool) -> int | None:
    number = int(value)
    low, high = (-(1 << (width_of(type) - 1)), 1 << (width_of(type) - 1)) if signed else (0, 1 << width_of(type))
    return number if low <= number < high else None


CASTS: dict[type[Operation], Callable[[Any, Type, Type], Number | None]] = {
    arith.ExtSI: lambda a, old, new: -a if old is I1 else a,
    arith.ExtUI: lambda a, old, new: unsigned(a, old),
    arith.TruncI: lambda a, old, new: a,
    arith.IndexCast: lambda a, old, new: a,
    arith.ExtF: lambda a, old, new: a,
    arith.TruncF: lambda a, old, new: a,
    arith.SIToFP: lambda a, old, new: _to_float(-a if old is I1 else a),
    arith.UIToFP: lambda a, old, new: _to_float(unsigned(a, old)),
    arith.FPToSI: lambda a, old, new: _to_integer(a, new, signed=True),
    arith.FPToUI: lambda a, old, new: _to_integer(a, new, signed=False),
}

# (outer, inner): outer(inner(x)) is x where the types agree, because the inner conversion loses nothing.
INVERSES: set[tuple[type[Operation], type[Operation]]] = {
    (arith.TruncI, arith.ExtSI),
    (arith.TruncI, arith.ExtUI),
    (arith.TruncF, arith.ExtF),
    (arith.Bitcast, arith.Bitcast),
}

# (outer, inner): outer(inner(x)) is outer(x).
ABSORBED: set[tuple[type[Operation], type[Operation]]] = {
    (arith.ExtSI, arith.ExtSI),
    (arith.ExtUI, arith.ExtUI),
    (arith.TruncI, arith.TruncI),
    (arith.ExtF, arith.ExtF),
    (arith.Bitcast, arith.Bitcast),
}


def fold_cast(op: arith.Cast) -> Fold:
    """Constants convert; conversions to the same type, back again, or twice the same way shorten."""
    if op.source.type is op.result.type:
        return op.source
    inner = op.source.defining_op
    if isinstance(inner, arith.Cast):
        pair = (type(op), type(inner))
        if inner.source.type is op.result.type and (pair in INVERSES or _is_exact_index_round_trip(op, inner)):
            return inner.source
        if pair in ABSORBED:
            op.set_operand(0, inner.source)
    old, new = element_type(op.source.type), element_type(op.result.type)
    if type(op) is arith.Bitcast:
        return compute(partial(_bitcast, old=old, new=new), op.operands, op.result.type, round_float)
    convert = CASTS.get(type(op))
    if convert is None:
        return None

    def element(value: Number) -> Number | None:
        return convert(value, old, new)

    return compute(element, op.operands, op.result.type)


def _is_exact_index_round_trip(op: Operation, inner: arith.Cast) -> bool:
    both = isinstance(op, arith.IndexCast) and isinstance(inner, arith.IndexCast)
    return both and isinstance(element_type(inner.result.type), IndexType)


def _bitcast(value: Number, old: Type, new: Type) -> Number | None:
    bits = float_to_bits(value, old) if isinstance(old, FloatType) else unsigned(int(value), old)
    return bits_to_float(bits, new) if isinstance(new, FloatType) else wrap(bits, new)


_FOLDS: dict[type[Operation], Callable[[Any], Fold]] = {
    arith.Cast: fold_cast,
    arith.CmpI: fold_cmpi,
    arith.CmpF: fold_cmpf,
    arith.Select: fold_select,
}
