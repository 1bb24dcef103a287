"""`math`: transcendental and rounding functions, on scalars and element by element on tensors.

Level: tt to intrinsic. Names and text are MLIR's. All operations are pure and elementwise.
"""

from __future__ import annotations

from mltriton.dialects.arith import Elementwise, FloatUnary, IntegerUnary
from mltriton.ir.checks import on_floats, one_type
from mltriton.ir.definition import boolean, integer, operand


class Transcendental(FloatUnary):
    """Base of functions that targets compute by polynomials where they have no instruction."""


class Exp(Transcendental, name="math.exp"):
    """e to the power of x. With `flushes` x is at most 0, and powers less than the least normal number may be 0."""

    flushes = boolean()


class Exp2(Transcendental, name="math.exp2"):
    """2 to the power of x. With `flushes` powers less than the least normal number may be 0. With `bits` nobody needs
    more of it than so many: it may err by a 64th of the last of them.
    """

    flushes = boolean()
    bits = integer(0)


class Log(Transcendental, name="math.log"):
    """Natural logarithm."""


class Log2(Transcendental, name="math.log2"):
    """Logarithm to base 2."""


class Sin(Transcendental, name="math.sin"):
    """Sine, radians."""


class Cos(Transcendental, name="math.cos"):
    """Cosine, radians."""


class Tanh(Transcendental, name="math.tanh"):
    """Hyperbolic tangent."""


class Erf(Transcendental, name="math.erf"):
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


# The transcendental functions, each with its name without the dialect's.
TRANSCENDENTAL: dict[type[Transcendental], str] = {
    kind: kind.name.partition(".")[2] for kind in Transcendental.__subclasses__()
}
