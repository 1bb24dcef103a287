"""`math`: transcendental and rounding functions, on scalars and element by element on tensors.

Level: tt to intrinsic. Names and text are MLIR's. All operations are pure and elementwise.
"""

from __future__ import annotations

from mltriton.dialects.arith import Elementwise, FloatUnary, IntegerUnary
from mltriton.ir.checks import on_floats, one_type
from mltriton.ir.definition import operand


class Exp(FloatUnary):
    """e to the power of x."""

    name = "math.exp"


class Exp2(FloatUnary):
    """2 to the power of x."""

    name = "math.exp2"


class Log(FloatUnary):
    """Natural logarithm."""

    name = "math.log"


class Log2(FloatUnary):
    """Logarithm to base 2."""

    name = "math.log2"


class Sin(FloatUnary):
    """Sine, radians."""

    name = "math.sin"


class Cos(FloatUnary):
    """Cosine, radians."""

    name = "math.cos"


class Tanh(FloatUnary):
    """Hyperbolic tangent."""

    name = "math.tanh"


class Erf(FloatUnary):
    """Error function."""

    name = "math.erf"


class Sqrt(FloatUnary):
    """Square root, correctly rounded."""

    name = "math.sqrt"


class Rsqrt(FloatUnary):
    """One over the square root."""

    name = "math.rsqrt"


class AbsF(FloatUnary):
    """Absolute value of a float."""

    name = "math.absf"


class AbsI(IntegerUnary):
    """Absolute value of a signed integer."""

    name = "math.absi"


class Floor(FloatUnary):
    """Round down."""

    name = "math.floor"


class Ceil(FloatUnary):
    """Round up."""

    name = "math.ceil"


class Fma(Elementwise):
    """a * b + c, rounded once."""

    name = "math.fma"
    checks = (one_type, on_floats)
    syntax = "$a `,` $b `,` $c permissions attr-dict `:` type($a, $b, $c, result)"
    a = operand()
    b = operand()
    c = operand()
