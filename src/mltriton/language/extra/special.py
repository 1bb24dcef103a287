"""`libdevice`'s error functions and their inverses, the normal distribution, the gamma function.

Takes fp32 or fp64 tensors; computed in fp64. Relative errors in fp64 below 1e-12 (`erfcx` 1e-14), of `lgamma` below
that times the larger of 1 and its value; in fp32 of one unit in the last place. Source: Chebyshev series fitted in 40
digits; P. J. Acklam's approximation of the inverse normal distribution, refined once; C. Lanczos' series of the gamma
function with g = 7.
"""

from __future__ import annotations

import math as host
from collections.abc import Callable, Sequence

from mltriton.language import types
from mltriton.language.arithmetic import fma
from mltriton.language.building import made_builtin
from mltriton.language.casting import cast
from mltriton.language.comparison import where
from mltriton.language.extra.angles import sinpi
from mltriton.language.extra.elementary import copysign, isinf, wide
from mltriton.language.math import abs, erf, exp, exp2, floor, log, log2, sqrt
from mltriton.language.tensor import tensor

__all__ = ["erfc", "erfcinv", "erfcx", "erfinv", "lgamma", "normcdf", "normcdfinv", "tgamma"]

# erfcx(x) (1 + 2 x) by t = (x - 3) / (x + 3).
ERFCX = (
    1.17756257419656, 0.005353904539615676, -0.09377550342284209, 0.05436652555744322, -0.018976596707845208,
    0.004453426061462712, -0.0006335531710553147, 1.7661719523171593e-05, 1.2841532864056671e-05,
    -2.0072285659059913e-06, -1.807522790414837e-07, 7.549828343825093e-08, 1.885668523838603e-09,
    -2.699519049798364e-09, -1.460079119939105e-11, 1.0361607445969489e-10, 1.475715976623473e-12,
    -4.277340064396911e-12, -2.07922492859799e-13, 1.8134502003176963e-13, 1.973425574544739e-14,
    -7.287943737592673e-15, -1.5169878690228116e-15, 2.3514112258781403e-16, 1.0006111691821667e-16,
)  # fmt: skip
# Acklam: numerators and denominators, the highest power first, of the middle and of the tails.
MIDDLE = (
    (-3.969683028665376e01, 2.209460984245205e02, -2.759285104469687e02, 1.383577518672690e02, -3.066479806614716e01,
     2.506628277459239e00),
    (-5.447609879822406e01, 1.615858368580409e02, -1.556989798598866e02, 6.680131188771972e01, -1.328068155288572e01,
     1.0),
)  # fmt: skip
TAIL = (
    (-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e00, -2.549732539343734e00,
     4.374664141464968e00, 2.938163982698783e00),
    (7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0),
)  # fmt: skip
TAIL_BELOW = 0.02425
LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip
ROOT = host.sqrt(2.0)
LARGEST_ERFC = 27.5  # erfc vanishes beyond

Unary = Callable[[tensor], tensor]


def in_double(function: Unary) -> Unary:
    """A builtin of a function of fp64 that takes fp32, too."""
    name = function.__name__

    def widened(x: object) -> tensor:
        value = wide(x, name)
        return cast(function(cast(value, types.float64)), value.dtype)

    return made_builtin(widened, name, function.__doc__)


def chebyshev(coefficients: Sequence[float], t: tensor) -> tensor:
    """A Chebyshev series at -1 <= t <= 1 (Clenshaw)."""
    last: tensor | float = 0.0
    before: tensor | float = 0.0
    for coefficient in reversed(coefficients[1:]):
        last, before = t * last * 2.0 - before + coefficient, last
    return t * last - before + coefficients[0]


def polynomial(coefficients: Sequence[float], x: tensor) -> tensor:
    """A polynomial, the coefficient of the highest power first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def _erfcx(x: tensor) -> tensor:
    """erfc(x) exp(x x) for x >= 0."""
    usual = chebyshev(ERFCX, (x - 3.0) / (x + 3.0)) / (1.0 + 2.0 * x)
    return where(x < float("inf"), usual, where(isinf(x), 0.0, x))


@in_double
def erfc(x: tensor) -> tensor:
    """1 - erf(x), to the last places where erf(x) is near 1, too."""
    size = abs(x)
    far = where(size < LARGEST_ERFC, size, LARGEST_ERFC)
    square = far * far
    # exp(-x x) with what x x lost by rounding.
    tail = _erfcx(far) * (exp(-square) * (1.0 - fma(far, far, -square)))
    tail = where(size < LARGEST_ERFC, tail, where(x == x, 0.0, x))
    return where(size < 0.5, 1.0 - erf(x), where(x < 0.0, 2.0 - tail, tail))


@in_double
def erfcx(x: tensor) -> tensor:
    """erfc(x) exp(x x)."""
    positive = _erfcx(abs(x))
    return where(x < 0.0, 2.0 * exp(x * x) - positive, positive)


def _below(x: tensor) -> tensor:
    """The normal distribution's mass below x <= 0."""
    return 0.5 * exp(x * x * -0.5) * _erfcx(-x / ROOT)


@in_double
def normcdf(x: tensor) -> tensor:
    """The mass of the normal distribution below x."""
    tail = _below(-abs(x))
    return where(x > 0.0, 1.0 - tail, tail)


def _quantile(mass: tensor) -> tensor:
    """Where the normal distribution has `mass` below, from 0 to 0.5."""
    is_tail = mass < TAIL_BELOW
    far = sqrt(log(where(is_tail, mass, 0.01)) * -2.0)
    middle = where(is_tail, 0.5, mass) - 0.5
    square = middle * middle
    near = polynomial(MIDDLE[0], square) * middle / polynomial(MIDDLE[1], square)
    guess = where(is_tail, polynomial(TAIL[0], far) / polynomial(TAIL[1], far), near)
    step = (_below(guess) - mass) * host.sqrt(2.0 * host.pi) * exp(guess * guess * 0.5)  # Halley's
    return guess - step / (1.0 + guess * step * 0.5)


@in_double
def normcdfinv(x: tensor) -> tensor:
    """Where the normal distribution has the mass x below; infinite for 0 and 1, NaN outside."""
    mass = where(x > 0.5, 1.0 - x, x)
    found = where(mass > 0.0, _quantile(where(mass > 0.0, mass, 0.5)), float("-inf"))
    signed = where(x > 0.5, -found, found)
    return where(mass >= 0.0, signed, float("nan"))


@in_double
def erfcinv(x: tensor) -> tensor:
    """Where erfc is x; infinite for 0 and 2, NaN outside."""
    mass = where(x > 1.0, 2.0 - x, x) * 0.5
    found = where(mass > 0.0, _quantile(where(mass > 0.0, mass, 0.5)) / -ROOT, float("inf"))
    signed = where(x > 1.0, -found, found)
    return where(mass >= 0.0, signed, float("nan"))


@in_double
def erfinv(x: tensor) -> tensor:
    """Where erf is x; infinite for -1 and 1, NaN outside."""
    size = abs(x)
    mass = (1.0 - size) * 0.5
    far = _quantile(where(mass > 0.0, mass, 0.5)) / -ROOT
    near = far - (erf(far) - size) * (0.5 * host.sqrt(host.pi)) * exp(far * far)  # Newton's, for numbers near 0
    found = where(mass > 0.0, where(size < 0.5, near, far), float("inf"))
    return where(size <= 1.0, copysign(where(size < 1e-8, size * (0.5 * host.sqrt(host.pi)), found), x), float("nan"))


def _lanczos(x: tensor) -> tensor:
    """The series at x >= 0.5."""
    total = LANCZOS[1] / x + LANCZOS[0]
    for number, coefficient in enumerate(LANCZOS[2:], 1):
        total = total + coefficient / (x + float(number))
    return total


@in_double
def lgamma(x: tensor) -> tensor:
    """The logarithm of the size of the gamma function; infinite for 0 and negative integers."""
    is_reflected = x < 0.5
    above = where(is_reflected, 1.0 - x, x)
    base = above + 6.5
    usual = (above - 0.5) * log(base) - base + 0.5 * host.log(2.0 * host.pi) + log(_lanczos(above))
    usual = where(above < float("inf"), usual, above)
    wave = abs(sinpi(where(is_reflected, x, 0.5)))
    reflected = where(wave > 0.0, log(host.pi / wave) - usual, float("inf"))
    return where(isinf(x), float("inf"), where(is_reflected, reflected, usual))


@in_double
def tgamma(x: tensor) -> tensor:
    """The gamma function; infinite for 0, NaN for negative integers."""
    is_reflected = x < 0.5
    above = where(is_reflected, 1.0 - x, x)
    base = above + 6.5
    half = exp2((above - 0.5) * 0.5 * log2(base))
    usual = host.sqrt(2.0 * host.pi) * _lanczos(above) * half * exp(-base) * half
    usual = where(above > 180.0, float("inf"), usual)
    wave = sinpi(where(is_reflected, x, 0.5))
    whole = where(x == 0.0, copysign(float("inf"), x), float("nan"))
    reflected = where(wave == 0.0, whole, host.pi / (wave * usual))
    reflected = where(floor(x) == x, whole, reflected)
    return where(is_reflected, where(x == float("-inf"), float("nan"), reflected), where(above == above, usual, above))
