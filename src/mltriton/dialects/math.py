"""`math`: transcendental and rounding functions, on scalars and element by element on tensors.

Level: tt to intrinsic. Names and text are MLIR's. All operations are pure and elementwise.
"""

from __future__ import annotations

from mltriton.dialects.arith import Elementwise, Unary
from mltriton.ir.definition import operand


class Exp(Unary):
    """e to the power of x."""

    name = "math.exp"


class Exp2(Unary):
    """2 to the power of x."""

    name = "math.exp2"


class Log(Unary):
    """Natural logarithm."""

    name = "math.log"


class Log2(Unary):
    """Logarithm to base 2."""

    name = "math.log2"


class Sin(Unary):
    """Sine, radians."""

    name = "math.sin"


class Cos(Unary):
    """Cosine, radians."""

    name = "math.cos"


class Tanh(Unary):
    """Hyperbolic tangent."""

    name = "math.tanh"


class Erf(Unary):
    """Error function."""

    name = "math.erf"


class Sqrt(Unary):
    """Square root, correctly rounded."""

    name = "math.sqrt"


class Rsqrt(Unary):
    """One over the square root."""

    name = "math.rsqrt"


class AbsF(Unary):
    """Absolute value of a float."""

    name = "math.absf"


class AbsI(Unary):
    """Absolute value of a signed integer."""

    name = "math.absi"


class Floor(Unary):
    """Round down."""

    name = "math.floor"


class Ceil(Unary):
    """Round up."""

    name = "math.ceil"


class Fma(Elementwise):
    """a * b + c, rounded once."""

    name = "math.fma"
    syntax = "$a `,` $b `,` $c permissions attr-dict `:` type($a, $b, $c, result)"
    a = operand()
    b = operand()
    c = operand()
