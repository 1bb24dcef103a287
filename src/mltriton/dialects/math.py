"""`math`: transcendental and rounding functions, on scalars and element by element on tensors.

Level: tt to intrinsic. Names and text are MLIR's. All operations are pure and elementwise.
"""

from __future__ import annotations

from mltriton.dialects.arith import Elementwise, FloatUnary, IntegerUnary
from mltriton.ir.checks import on_floats, one_type
from mltriton.ir.definition import operand


class Exp(FloatUnary, name="math.exp"):
    """e to the power of x."""


class Exp2(FloatUnary, name="math.exp2"):
    """2 to the power of x."""


class Log(FloatUnary, name="math.log"):
    """Natural logarithm."""


class Log2(FloatUnary, name="math.log2"):
    """Logarithm to base 2."""


class Sin(FloatUnary, name="math.sin"):
    """Sine, radians."""


class Cos(FloatUnary, name="math.cos"):
    """Cosine, radians."""


class Tanh(FloatUnary, name="math.tanh"):
    """Hyperbolic tangent."""


class Erf(FloatUnary, name="math.erf"):
    """Error function."""


class Sqrt(FloatUnary, name="math.sqrt"):
    """Square root, correctly rounded."""


class Rsqrt(FloatUnary, name="math.rsqrt"):
    """One over the square root."""


class AbsF(FloatUnary, name="math.absf"):
    """Absolute value of a float."""


class AbsI(IntegerUnary, name="math.absi"):
    """Absolute value of a signed integer."""


class Floor(FloatUnary, name="math.floor"):
    """Round down."""


class Ceil(FloatUnary, name="math.ceil"):
    """Round up."""


class Fma(Elementwise, name="math.fma"):
    """a * b + c, rounded once."""

    checks = (one_type, on_floats)
    syntax = "$a `,` $b `,` $c permissions attr-dict `:` type($a, $b, $c, result)"
    a = operand()
    b = operand()
    c = operand()
