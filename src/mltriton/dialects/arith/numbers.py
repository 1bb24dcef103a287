"""Operations on numbers: sums, products, quotients, bits, shifts, extrema."""

from __future__ import annotations

from mltriton.dialects.arith.base import FloatBinary, FloatUnary, IntegerBinary

__all__ = [
    "AddF", "AddI", "AndI", "CeilDivSI", "DivF", "DivSI", "DivUI", "FloorDivSI", "MaxNumF", "MaxSI", "MaxUI",
    "MaximumF", "MinNumF", "MinSI", "MinUI", "MinimumF", "MulF", "MulI", "NegF", "OrI", "RemF", "RemSI", "RemUI",
    "ShLI", "ShRSI", "ShRUI", "SubF", "SubI", "XOrI",
]  # fmt: skip


class AddI(IntegerBinary, name="arith.addi", commutative=True):
    """Integer addition."""


class SubI(IntegerBinary, name="arith.subi"):
    """Integer subtraction."""


class MulI(IntegerBinary, name="arith.muli", commutative=True):
    """Integer multiplication."""


class DivSI(IntegerBinary, name="arith.divsi"):
    """Signed division, rounding to zero."""


class DivUI(IntegerBinary, name="arith.divui"):
    """Unsigned division."""


class CeilDivSI(IntegerBinary, name="arith.ceildivsi"):
    """Signed division, rounding up."""


class FloorDivSI(IntegerBinary, name="arith.floordivsi"):
    """Signed division, rounding down."""


class RemSI(IntegerBinary, name="arith.remsi"):
    """Signed remainder, with the sign of the dividend."""


class RemUI(IntegerBinary, name="arith.remui"):
    """Unsigned remainder."""


class AndI(IntegerBinary, name="arith.andi", commutative=True):
    """Bitwise and."""


class OrI(IntegerBinary, name="arith.ori", commutative=True):
    """Bitwise or."""


class XOrI(IntegerBinary, name="arith.xori", commutative=True):
    """Bitwise exclusive or."""


class ShLI(IntegerBinary, name="arith.shli"):
    """Shift left."""


class ShRSI(IntegerBinary, name="arith.shrsi"):
    """Arithmetic shift right."""


class ShRUI(IntegerBinary, name="arith.shrui"):
    """Logical shift right."""


class MaxSI(IntegerBinary, name="arith.maxsi", commutative=True):
    """Signed maximum."""


class MinSI(IntegerBinary, name="arith.minsi", commutative=True):
    """Signed minimum."""


class MaxUI(IntegerBinary, name="arith.maxui", commutative=True):
    """Unsigned maximum."""


class MinUI(IntegerBinary, name="arith.minui", commutative=True):
    """Unsigned minimum."""


class AddF(FloatBinary, name="arith.addf", commutative=True):
    """Float addition."""


class SubF(FloatBinary, name="arith.subf"):
    """Float subtraction."""


class MulF(FloatBinary, name="arith.mulf", commutative=True):
    """Float multiplication."""


class DivF(FloatBinary, name="arith.divf"):
    """Float division."""


class RemF(FloatBinary, name="arith.remf"):
    """Float remainder, as C's fmod."""


class MaximumF(FloatBinary, name="arith.maximumf", commutative=True):
    """Maximum; NaN if an operand is NaN."""


class MinimumF(FloatBinary, name="arith.minimumf", commutative=True):
    """Minimum; NaN if an operand is NaN."""


class MaxNumF(FloatBinary, name="arith.maxnumf", commutative=True):
    """Maximum; the other operand if one is NaN."""


class MinNumF(FloatBinary, name="arith.minnumf", commutative=True):
    """Minimum; the other operand if one is NaN."""


class NegF(FloatUnary, name="arith.negf"):
    """Float negation."""
