"""Compute the polynomial coefficients of `mltriton/targets/llvm/polynomials.py`.

Each polynomial interpolates its function at Chebyshev points of the interval, in 60-digit decimal arithmetic, which
comes within a small factor of the best polynomial of that degree; the coefficients are then rounded to the target type.

Run `python scripts/fit_polynomials.py` to print the table, with `--check` to compare it with the file.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext
from pathlib import Path

getcontext().prec = 60
Function = Callable[[Decimal], Decimal]
TABLE = Path(__file__).parent.parent / "src/mltriton/targets/llvm/polynomials.py"
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")


def series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """first + first * ratio(1) + first * ratio(1) * ratio(2) + ..."""
    total = term = first
    n = 0
    while abs(term) > Decimal(10) ** -58:
        n += 1
        term *= ratio(n)
        total += term
    return total


def sine(x: Decimal) -> Decimal:
    """sin(x), x in radians."""
    return series(x, lambda n: -x * x / (2 * n * (2 * n + 1)))


def cosine(x: Decimal) -> Decimal:
    """cos(x), x in radians."""
    return series(Decimal(1), lambda n: -x * x / (2 * n * (2 * n - 1)))


def erf(x: Decimal) -> Decimal:
    """The error function."""
    return 2 * x / PI.sqrt() * (-x * x).exp() * series(Decimal(1), lambda n: 2 * x * x / (2 * n + 1))


def tanh(x: Decimal) -> Decimal:
    """The hyperbolic tangent."""
    e = (2 * x).exp()
    return (e - 1) / (e + 1)


def log1p(x: Decimal) -> Decimal:
    """log(1 + x)."""
    return (1 + x).ln()


ZERO, EIGHTH, HALF, ONE = Decimal(0), Decimal("0.125"), Decimal("0.5"), Decimal(1)


@dataclass(frozen=True)
class Fit:
    """`function` on [low, high] by a polynomial of `degree`, in each of the two types (None: not needed there)."""

    name: str
    function: Function
    low: Decimal
    high: Decimal
    f32: int | None
    f64: int | None
    note: str


LN2 = Decimal(2).ln()
F_LOW, F_HIGH = Decimal("0.5").sqrt() - 1, Decimal(2).sqrt() - 1
S2 = (F_HIGH / (2 + F_HIGH)) ** 2
T = Decimal("0.625") ** 2
BEYOND = Decimal("0.0001")  # how far rounding may go past the half; it also keeps 0 from being a point
QUARTER = (PI / 4 + Decimal("0.001")) ** 2  # rounding x / (pi/2) may go a little beyond pi/4


def _root(function: Function) -> Function:
    return lambda z: function(z.sqrt())


FITS = (
    Fit("EXP", lambda r: (r.exp() - 1 - r) / (r * r), -LN2 / 2, LN2 / 2 + BEYOND, 4, 10, "exp(r) = 1 + r + r^2 P(r)"),
    Fit("EXP2", lambda r: (Decimal(2) ** r - 1) / r, -HALF, HALF + BEYOND, 5, 11, "2^r = 1 + r P(r)"),
    # Near 0 r P(r) adds little, so that P may err more there.
    Fit("EXP2_SHORT", lambda r: (Decimal(2) ** r - 1) / r, EIGHTH, ONE, 3, None, "2^r = 1 + r P(r), 0 <= r <= 1"),
    Fit("LOG", lambda f: (log1p(f) - f + f * f / 2) / f**3, F_LOW, F_HIGH, 8, None, "log(1+f) = f - f^2/2 + f^3 P(f)"),
    Fit(
        "LOG_S",
        _root(lambda s: (log1p(s) - log1p(-s) - 2 * s) / s**3),
        Decimal(0),
        S2,
        None,
        6,
        "log((1+s)/(1-s)) = 2s + s^3 P(s^2)",
    ),
    Fit("SIN", _root(lambda r: (sine(r) - r) / r**3), ZERO, QUARTER, 3, 6, "sin(r) = r + r^3 P(r^2)"),
    Fit("COS", _root(lambda r: (cosine(r) - 1 + r * r / 2) / r**4), ZERO, QUARTER, 2, 5, "cos(r) = 1 - r^2/2 + r^4 P"),
    Fit("TANH", _root(lambda x: (tanh(x) - x) / x**3), ZERO, T, 4, 11, "tanh(x) = x + x^3 P(x^2), x <= 0.625"),
    Fit("ERF", _root(lambda x: erf(x) / x), ZERO, ONE, 6, None, "erf(x) = x P(x^2), x <= 1"),
    Fit("ERF_TAIL", lambda x: -(1 - erf(x)).ln(), ONE, Decimal("3.96"), 9, None, "erf(x) = 1 - exp(-P(x)), x >= 1"),
    Fit("ERF", _root(lambda x: erf(x) / x), Decimal(0), Decimal("2.25"), None, 16, "erf(x) = x P(x^2), x <= 1.5"),
    Fit(
        "ERF_TAIL",
        lambda x: -(1 - erf(x)).ln(),
        Decimal("1.5"),
        Decimal("5.95"),
        None,
        23,
        "erf(x) = 1 - exp(-P(x)), x >= 1.5",
    ),
)  # fmt: skip


def interpolate(points: list[Decimal], values: list[Decimal]) -> list[Decimal]:
    """Coefficients, lowest first, of the polynomial through the points (Newton's divided differences)."""
    table = list(values)
    for level in range(1, len(points)):
        for i in range(len(points) - 1, level - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (points[i] - points[i - level])
    coefficients = [table[-1]]
    for point, value in zip(reversed(points[:-1]), reversed(table[:-1]), strict=True):
        shifted = [Decimal(0), *coefficients]
        coefficients = [s - point * c for s, c in zip(shifted, [*coefficients, Decimal(0)], strict=True)]
        coefficients[0] += value
    return coefficients


def rounded(value: Decimal, is_f32: bool) -> float:
    """The nearest float, or f32."""
    return struct.unpack("<f", struct.pack("<f", float(value)))[0] if is_f32 else float(value)


def fit(entry: Fit, degree: int, is_f32: bool) -> list[float]:
    """The rounded coefficients, lowest degree first."""
    middle, half = (entry.high + entry.low) / 2, (entry.high - entry.low) / 2
    points = [middle + half * cosine(PI * (2 * i + 1) / (2 * degree + 2)) for i in range(degree + 1)]
    return [rounded(c, is_f32) for c in interpolate(points, [entry.function(point) for point in points])]


def parts(value: Decimal, *bits: int) -> list[float]:
    """`value` as a sum of floats of the given numbers of significant bits."""
    result: list[float] = []
    for width in bits:
        if not value:
            break
        exponent = width - 1 - (abs(value).ln() / LN2).to_integral_value(rounding="ROUND_FLOOR")
        part = (value * Decimal(2) ** exponent).to_integral_value() / Decimal(2) ** exponent
        result.append(float(part))
        value -= part
    return result


SPLITS = {
    "float": {
        "LN2": parts(LN2, 12, 24),
        "HALF_PI": parts(PI / 2, 24, 24, 24),
        "HALF_PI_SHORT": parts(PI / 2, 12, 12, 12, 24),
    },
    "double": {
        "LN2": parts(LN2, 32, 53),
        "HALF_PI": parts(PI / 2, 33, 33, 53),
        "HALF_PI_SHORT": parts(PI / 2, 33, 33, 53),
    },
}


def table_text() -> str:
    """The generated file."""
    lines = [
        '"""Polynomial coefficients and split constants of the vector math functions.',
        "",
        "Generated by scripts/fit_polynomials.py, which says how; do not edit. Lowest degree first. Level: data.",
        '"""',
        "",
        "# fmt: off",
        "POLYNOMIALS: dict[str, dict[str, tuple[float, ...]]] = {",
    ]
    for element, is_f32 in (("float", True), ("double", False)):
        lines.append(f'    "{element}": {{')
        for entry in FITS:
            degree = entry.f32 if is_f32 else entry.f64
            if degree is not None:
                lines.append(f'        "{entry.name}": (  # {entry.note}')
                lines += [f"            {c!r}," for c in fit(entry, degree, is_f32)]
                lines.append("        ),")
        lines.append("    },")
    lines += ["}", "", "SPLITS: dict[str, dict[str, tuple[float, ...]]] = {"]
    for element, constants in SPLITS.items():
        lines.append(f'    "{element}": {{')
        lines += [f'        "{name}": {tuple(values)!r},' for name, values in constants.items()]
        lines.append("    },")
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TABLE.read_text() == table_text() else f"{TABLE} is not what the script computes")
    print(table_text(), end="")
