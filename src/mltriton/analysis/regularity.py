"""How regular numbers and pointers are along each dimension: what axis info is said in.

Level: tt to warp. `AxisInfo` is the fact, one number a dimension; `axis_info.py` says what each number means, and finds
the facts.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from mltriton.ir.types import Type, shape_of
from mltriton.records import record

HIGHEST = 1 << 62  # the divisibility of 0
Numbers = tuple[int, ...]


@record(frozen=True)
class AxisInfo:
    """See the module's docstring; one number a dimension."""

    contiguity: Numbers
    divisibility: Numbers
    constancy: Numbers
    number: int | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.contiguity)

    def in_runs(self, contiguity: Numbers) -> AxisInfo:
        """The same values seen in shorter runs, whose first elements are multiples of less."""
        divisibility = tuple(
            d if old == 1 or new % old == 0 else gcd(d, new)
            for d, old, new in zip(self.divisibility, self.contiguity, contiguity, strict=True)
        )
        return replace(self, contiguity=contiguity, divisibility=divisibility)

    def joined(self, other: AxisInfo) -> AxisInfo:
        """What holds of both."""
        runs = gcds(self.contiguity, other.contiguity)
        return AxisInfo(
            runs,
            gcds(self.in_runs(runs).divisibility, other.in_runs(runs).divisibility),
            gcds(self.constancy, other.constancy),
            self.number if self.number == other.number else None,
        )


def gcds(a: Numbers, b: Numbers) -> Numbers:
    """The greatest common divisors, dimension by dimension."""
    return tuple(map(gcd, a, b))


def unknown(type: Type) -> AxisInfo:
    """Nothing known."""
    ones = (1,) * max(1, len(shape_of(type)))
    return AxisInfo(ones, ones, ones)


def known_number(number: int, type: Type) -> AxisInfo:
    """A scalar or splat of one number."""
    shape = shape_of(type) or (1,)
    return AxisInfo((1,) * len(shape), (divisor_of(number),) * len(shape), shape, number)


def divisor_of(number: int) -> int:
    """The largest power of two that divides a number."""
    return number & -number if number else HIGHEST
