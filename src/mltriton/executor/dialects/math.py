"""`math` on numpy. Functions are computed in float64 and rounded once, so that they are as exact as the type allows.

Level: tt to intrinsic.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable
from typing import Any

import numpy as np

from mltriton.dialects import math
from mltriton.executor.code import Handler, Maker, Table
from mltriton.executor.dialects.arith import floats, operands_own, without_warp
from mltriton.executor.values import Array, choose, rounder
from mltriton.ir.operation import Operation
from mltriton.ir.types import F64, element_type

_erf_of_objects = np.frompyfunc(python_math.erf, 1, 1)


def exact(function: Callable[..., Array]) -> Maker:
    """A float function computed in float64 and rounded to the type."""

    def make(op: Operation) -> Handler:
        to_type = rounder(element_type(op.results[0].type))

        def call(warp: Any, *operands: Array) -> Array:
            return to_type(function(*[values.astype(np.float64) for values in operands]))

        return call

    return make


def erf(values: Array) -> Array:
    """The error function."""
    return np.asarray(_erf_of_objects(values), np.float64)[()]


def rsqrt(values: Array) -> Array:
    """One over the square root."""
    return 1.0 / np.sqrt(values)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in float64, the errors of product and sum (Dekker, Knuth) added before the last rounding."""
    product, error = _two_product(a, b)
    total = product + c
    part = total - product
    rest = (product - (total - part)) + (c - part) + error
    corrected = total + rest
    return choose(np.isfinite(corrected) & (rest != 0), corrected, total)  # a zero keeps its sign


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = a * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - a)
    return high, a - high


def fma(op: math.Fma) -> Handler:
    """Products of f32 and narrower are exact in float64; only f64 needs error terms."""
    type = element_type(op.result.type)
    if type is F64:
        return without_warp(fused_multiply_add)
    to_type = rounder(type)
    return lambda warp, a, b, c: to_type(a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64))


def absolute(op: math.AbsI) -> Handler:
    """Absolute value of a signed integer; the least one stays."""
    return lambda warp, values: np.abs(values)


TABLE: Table = {
    math.Exp: exact(np.exp),
    math.Exp2: exact(np.exp2),
    math.Log: exact(np.log),
    math.Log2: exact(np.log2),
    math.Sin: exact(np.sin),
    math.Cos: exact(np.cos),
    math.Tanh: exact(np.tanh),
    math.Erf: exact(erf),
    math.Sqrt: exact(np.sqrt),
    math.Rsqrt: exact(rsqrt),
    math.AbsF: operands_own(np.abs),
    math.AbsI: absolute,
    math.Floor: floats(np.floor),
    math.Ceil: floats(np.ceil),
    math.Fma: fma,
}
