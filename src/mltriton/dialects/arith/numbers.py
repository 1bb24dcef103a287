"""Operations on numbers: sums, products, quotients, bits, shifts, extrema."""

from __future__ import annotations

from mltriton.dialects.arith.base import FloatBinary, FloatUnary, IntegerBinary


class AddI(IntegerBinary):
    """Integer addition."""

    name = "arith.addi"
    commutative = True


class SubI(IntegerBinary):
    """Integer subtraction."""

    name = "arith.subi"


class MulI(IntegerBinary):
    """Integer multiplication."""

    name = "arith.muli"
    commutative = True


class DivSI(IntegerBinary):
    """Signed division, rounding to zero."""

    name = "arith.divsi"


class DivUI(IntegerBinary):
    """Unsigned division."""

    name = "arith.divui"


class CeilDivSI(IntegerBinary):
    """Signed division, rounding up."""

    name = "arith.ceildivsi"


class FloorDivSI(IntegerBinary):
    """Signed division, rounding down."""

    name = "arith.floordivsi"


class RemSI(IntegerBinary):
    """Signed remainder, with the sign of the dividend."""

    name = "arith.remsi"


class RemUI(IntegerBinary):
    """Unsigned remainder."""

    name = "arith.remui"


class AndI(IntegerBinary):
    """Bitwise and."""

    name = "arith.andi"
    commutative = True


class OrI(IntegerBinary):
    """Bitwise or."""

    name = "arith.ori"
    commutative = True


class XOrI(IntegerBinary):
    """Bitwise exclusive or."""

    name = "arith.xori"
    commutative = True


class ShLI(IntegerBinary):
    """Shift left."""

    name = "arith.shli"


class ShRSI(IntegerBinary):
    """Arithmetic shift right."""

    name = "arith.shrsi"


class ShRUI(IntegerBinary):
    """Logical shift right."""

    name = "arith.shrui"


class MaxSI(IntegerBinary):
    """Signed maximum."""

    name = "arith.maxsi"
    commutative = True


class MinSI(IntegerBinary):
    """Signed minimum."""

    name = "arith.minsi"
    commutative = True


class MaxUI(IntegerBinary):
    """Unsigned maximum."""

    name = "arith.maxui"
    commutative = True


class MinUI(IntegerBinary):
    """Unsigned minimum."""

    name = "arith.minui"
    commutative = True


class AddF(FloatBinary):
    """Float addition."""

    name = "arith.addf"
    commutative = True


class SubF(FloatBinary):
    """Float subtraction."""

    name = "arith.subf"


class MulF(FloatBinary):
    """Float multiplication."""

    name = "arith.mulf"
    commutative = True


class DivF(FloatBinary):
    """Float division."""

    name = "arith.divf"


class RemF(FloatBinary):
    """Float remainder, as C's fmod."""

    name = "arith.remf"


class MaximumF(FloatBinary):
    """Maximum; NaN if an operand is NaN."""

    name = "arith.maximumf"
    commutative = True


class MinimumF(FloatBinary):
    """Minimum; NaN if an operand is NaN."""

    name = "arith.minimumf"
    commutative = True


class MaxNumF(FloatBinary):
    """Maximum; the other operand if one is NaN."""

    name = "arith.maxnumf"
    commutative = True


class MinNumF(FloatBinary):
    """Minimum; the other operand if one is NaN."""

    name = "arith.minnumf"
    commutative = True


class NegF(FloatUnary):
    """Float negation."""

    name = "arith.negf"
