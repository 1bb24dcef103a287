"""What is known of an integer: bounds and a divisor; and expressions over a kernel's arguments that tell it.

Level: all, and runtime: no compiler module is imported here, so that a launch can evaluate what the compiler wrote
down. An expression (as JSON, too) is an int, `("argument", number)`, `("known", least, most, divisor)`,
`("opaque", divisor)` for what only the kernel sees, or `(operation, bits, x, y)` with an operation of `OPERATIONS` on
integers of so many bits. Guarantees: what `evaluate` says holds for every value that the expression may have; of a
result that may wrap only a divisor is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, mul, sub
from typing import Any

from mltriton.records import NamedTuple

HIGHEST = 1 << 62  # the power of two that divides 0, as far as anyone asks

Expression = int | tuple[Any, ...]


class Known(NamedTuple):
    """An integer from `least` to `most` (None: no bound is known) that `divisor`, a power of two, divides."""

    least: int | None = None
    most: int | None = None
    divisor: int = 1

    @property
    def number(self) -> int | None:
        """The integer, where only one is possible."""
        return self.least if self.least == self.most else None

    @property
    def is_natural(self) -> bool:
        """Whether it is not negative."""
        return self.least is not None and self.least >= 0


def exactly(number: int) -> Known:
    """One known integer."""
    return Known(number, number, min(number & -number, HIGHEST) if number else HIGHEST)


def _sum(x: Known, y: Known) -> Known:
    return Known(_both(add, x.least, y.least), _both(add, x.most, y.most), min(x.divisor, y.divisor))


def _difference(x: Known, y: Known) -> Known:
    return Known(_both(sub, x.least, y.most), _both(sub, x.most, y.least), min(x.divisor, y.divisor))


def _product(x: Known, y: Known) -> Known:
    divisor = min(x.divisor * y.divisor, HIGHEST)
    if x.is_natural and y.is_natural:
        return Known(_both(mul, x.least, y.least), _both(mul, x.most, y.most), divisor)
    return Known(divisor=divisor)


def _quotient(x: Known, y: Known) -> Known:
    by = y.number
    if by is None or by <= 0 or not x.is_natural:
        return Known()
    divisor = x.divisor // by if by & (by - 1) == 0 and x.divisor >= by else 1
    return Known(_both(_truncated, x.least, by), _both(_truncated, x.most, by), divisor)


def _remainder(x: Known, y: Known) -> Known:
    by, divisor = y.number, min(x.divisor, y.divisor)
    return Known(0, by - 1, divisor) if by is not None and by > 0 and x.is_natural else Known(divisor=divisor)


def _bits_of_both(x: Known, y: Known) -> Known:
    mosts = [z.most for z in (x, y) if z.is_natural and z.most is not None]
    least = 0 if x.is_natural or y.is_natural else None
    return Known(least, min(mosts, default=None), max(x.divisor, y.divisor))


def _least(x: Known, y: Known) -> Known:
    mosts = [z.most for z in (x, y) if z.most is not None]
    return Known(_both(min, x.least, y.least), min(mosts, default=None), min(x.divisor, y.divisor))


def _greatest(x: Known, y: Known) -> Known:
    leasts = [z.least for z in (x, y) if z.least is not None]
    return Known(max(leasts, default=None), _both(max, x.most, y.most), min(x.divisor, y.divisor))


def _either(x: Known, y: Known) -> Known:
    return Known(_both(min, x.least, y.least), _both(max, x.most, y.most), min(x.divisor, y.divisor))


def _stepped(start: Known, step: Known) -> Known:
    """`start` + n * `step` for any n >= 0."""
    falls, rises = step.most is not None and step.most <= 0, step.is_natural
    divisor = min(start.divisor, step.divisor)
    return Known(start.least if rises else None, start.most if falls else None, divisor)


def _both(operation: Callable[[int, int], int], x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else operation(x, y)


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _rest(x: int, y: int) -> int:
    return x - _truncated(x, y) * y


# By operation: how to compute it, where there is one answer, and what it gives of what is known.
OPERATIONS: dict[str, tuple[Callable[[int, int], int] | None, Callable[[Known, Known], Known]]] = {
    "add": (add, _sum),
    "sub": (sub, _difference),
    "mul": (mul, _product),
    "div": (_truncated, _quotient),
    "rem": (_rest, _remainder),
    "and": (int.__and__, _bits_of_both),
    "min": (min, _least),
    "max": (max, _greatest),
    "either": (None, _either),
    "stepped": (None, _stepped),
}


_WRAPPING = ("add", "sub", "mul")
NOTHING = Known()


def evaluate(
    expression: Expression | Sequence[Any], argument: Callable[[int], Known], opaque: Known = NOTHING
) -> Known:
    """What is known of an expression, where `argument` says it of each argument, and `opaque` of what is opaque."""
    if isinstance(expression, int):
        return exactly(expression)
    kind, *rest = expression
    match kind:
        case "argument":
            return argument(rest[0])
        case "known":
            return Known(*rest)
        case "opaque":
            return opaque._replace(divisor=max(opaque.divisor, rest[0]))
        case _:
            bits, x, y = rest
            return combined(kind, bits, evaluate(x, argument, opaque), evaluate(y, argument, opaque))


def combined(operation: str, bits: int, x: Known, y: Known) -> Known:
    """What is known of the result of an operation on integers of so many bits."""
    compute, rule = OPERATIONS[operation]
    a, b = x.number, y.number
    if compute is not None and a is not None and b is not None and (b or operation not in ("div", "rem")):
        made = exactly(compute(a, b))
    else:
        made = rule(x, y)
    return made if _fits(operation, made, bits) else Known(divisor=made.divisor)


def _fits(operation: str, made: Known, bits: int) -> bool:
    """Whether a result does not wrap, so that its bounds are true. Steps of loops never do."""
    if made.least is None or made.most is None:
        return operation not in _WRAPPING
    end = 1 << bits - 1
    return -end <= made.least and made.most < end
