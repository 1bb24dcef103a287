"""Conversions between types of elements."""

from __future__ import annotations

from mltriton.dialects.arith.base import Cast
from mltriton.ir.checks import (
    between,
    keeps_width,
    narrows,
    widens,
)
from mltriton.ir.types import FloatType, IndexType, IntegerType


class ExtSI(Cast):
    """Sign extension."""

    name = "arith.extsi"
    checks = (between(IntegerType, IntegerType), widens)


class ExtUI(Cast):
    """Zero extension."""

    name = "arith.extui"
    checks = (between(IntegerType, IntegerType), widens)


class TruncI(Cast):
    """Truncation to fewer bits."""

    name = "arith.trunci"
    checks = (between(IntegerType, IntegerType), narrows)


class ExtF(Cast):
    """Float to a wider float: exact."""

    name = "arith.extf"
    checks = (between(FloatType, FloatType), widens)


class TruncF(Cast):
    """Float to a narrower float, rounding to nearest even."""

    name = "arith.truncf"
    checks = (between(FloatType, FloatType), narrows)


class SIToFP(Cast):
    """Signed integer to float."""

    name = "arith.sitofp"
    checks = (between(IntegerType, FloatType),)


class UIToFP(Cast):
    """Unsigned integer to float."""

    name = "arith.uitofp"
    checks = (between(IntegerType, FloatType),)


class FPToSI(Cast):
    """Float to signed integer, rounding to zero; out of range is unspecified."""

    name = "arith.fptosi"
    checks = (between(FloatType, IntegerType),)


class FPToUI(Cast):
    """Float to unsigned integer, rounding to zero; out of range is unspecified."""

    name = "arith.fptoui"
    checks = (between(FloatType, IntegerType),)


class Bitcast(Cast):
    """The same bits as another type of the same width."""

    name = "arith.bitcast"
    checks = (between((IntegerType, FloatType), (IntegerType, FloatType)), keeps_width)


class IndexCast(Cast):
    """Between `index` and an integer type."""

    name = "arith.index_cast"
    checks = (between((IntegerType, IndexType), (IntegerType, IndexType)),)
