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

__all__ = ["Bitcast", "ExtF", "ExtSI", "ExtUI", "FPToSI", "FPToUI", "IndexCast", "SIToFP", "TruncF", "TruncI", "UIToFP"]


class ExtSI(Cast, name="arith.extsi"):
    """Sign extension."""

    checks = (between(IntegerType, IntegerType), widens)


class ExtUI(Cast, name="arith.extui"):
    """Zero extension."""

    checks = (between(IntegerType, IntegerType), widens)


class TruncI(Cast, name="arith.trunci"):
    """Truncation to fewer bits."""

    checks = (between(IntegerType, IntegerType), narrows)


class ExtF(Cast, name="arith.extf"):
    """Float to a wider float: exact."""

    checks = (between(FloatType, FloatType), widens)


class TruncF(Cast, name="arith.truncf"):
    """Float to a narrower float, rounding to nearest even."""

    checks = (between(FloatType, FloatType), narrows)


class SIToFP(Cast, name="arith.sitofp"):
    """Signed integer to float."""

    checks = (between(IntegerType, FloatType),)


class UIToFP(Cast, name="arith.uitofp"):
    """Unsigned integer to float."""

    checks = (between(IntegerType, FloatType),)


class FPToSI(Cast, name="arith.fptosi"):
    """Float to signed integer, rounding to zero; out of range is unspecified."""

    checks = (between(FloatType, IntegerType),)


class FPToUI(Cast, name="arith.fptoui"):
    """Float to unsigned integer, rounding to zero; out of range is unspecified."""

    checks = (between(FloatType, IntegerType),)


class Bitcast(Cast, name="arith.bitcast"):
    """The same bits as another type of the same width."""

    checks = (between((IntegerType, FloatType), (IntegerType, FloatType)), keeps_width)


class IndexCast(Cast, name="arith.index_cast"):
    """Between `index` and an integer type."""

    checks = (between((IntegerType, IndexType), (IntegerType, IndexType)),)
