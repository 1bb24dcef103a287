"""What a kernel with 2D block accesses checks of its arguments, evaluated at each launch.

Level: runtime; no compiler module is imported. A condition is `(relation, expression, bound)`, where the bound is an
expression, too (`analysis/bounds.py`); a surface is the conditions on one matrix. Guarantees: where a surface is not
among the failing ones, the hardware takes every access to it in every program of the launch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from mltriton.analysis.bounds import Expression, Known, evaluate, exactly
from mltriton.records import NamedTuple

Condition = tuple[str, Expression, Expression]
Surface = tuple[Condition, ...]

MULTIPLE, AT_LEAST, AT_MOST = "a multiple of", "at least", "at most"
_MOST_REMEMBERED = 256  # launches with different arguments whose failing surfaces are kept


def holds(relation: str, number: Known, bound: Known) -> bool:
    """Whether a relation is certain."""
    match relation:
        case "a multiple of":
            return bound.number is not None and number.divisor % bound.number == 0
        case "at least":
            return number.least is not None and bound.most is not None and number.least >= bound.most
        case "at most":
            return number.most is not None and bound.least is not None and number.most <= bound.least
        case _:
            raise ValueError(f"no relation {relation!r}")


class Use(NamedTuple):
    """What a surface is, for the reader of a warning: a matrix of elements of so many bytes in the array that is
    argument `matrix`, the field of a surface that each condition is about, and where the program accesses it.
    """

    matrix: str
    element_bytes: int
    fields: tuple[str, ...]
    places: tuple[str, ...]


class LaunchGuards:
    """The surfaces of the kernel `name`, also as JSON's lists. Where `uses` says what they are, there is one warning of
    each that fails.
    """

    def __init__(self, surfaces: Sequence[Surface], uses: Sequence[Use] = (), name: str = "") -> None:
        self._uses = [Use(*use) for use in _tuples(uses)]
        self._name = name
        self._told: set[Surface] = set()
        self.surfaces: tuple[Surface, ...] = _tuples(surfaces)
        conditions = [condition for surface in self.surfaces for condition in surface]
        used = {number for condition in conditions for number in arguments_of(condition)}
        exact = {number for condition in conditions for number in arguments_of(condition, exact=True)}
        low = max((cast(int, bound) for relation, _, bound in conditions if relation == MULTIPLE), default=1)
        self._masks = tuple((number, -1 if number in exact else low - 1) for number in sorted(used))
        self._remembered: dict[tuple[int, ...], tuple[Surface, ...]] = {}

    def failing(self, slots: Sequence[int]) -> tuple[Surface, ...]:
        """The surfaces that the hardware does not take for these arguments: addresses, and integers in 64 bits."""
        key = tuple([slots[number] & mask for number, mask in self._masks])
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            arguments = {number: _signed(bits) for (number, _), bits in zip(self._masks, key, strict=True)}
            found = tuple(surface for surface in self.surfaces if not accepts(surface, arguments))
            if found and self._uses:
                self._warn(found, arguments)
            self._remembered[key] = found
        return found

    def _warn(self, failing: Sequence[Surface], arguments: Mapping[int, int]) -> None:
        from mltriton.targets.xe.launch_warnings import warn

        told = [(surface, use) for surface, use in zip(self.surfaces, self._uses, strict=True) if surface in failing]
        warn(self._name, [pair for pair in told if pair[0] not in self._told], arguments)
        self._told.update(failing)


def accepts(surface: Surface, arguments: Mapping[int, int]) -> bool:
    """Whether all conditions on a surface hold for the arguments."""

    def known(number: int) -> Known:
        return exactly(arguments[number])

    return all(holds(relation, evaluate(x, known), evaluate(bound, known)) for relation, x, bound in surface)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 > 0 else bits


# What divides a result depends on what divides the operands, not on how large they are.
_KEEP_DIVISORS = (MULTIPLE, "add", "sub", "mul", "either", "stepped")


def arguments_of(expression: Any, *, exact: bool = False) -> set[int]:
    """The arguments in an expression or a condition; with `exact`, those of which more matters than what divides them:
    an address as good as any other at a multiple of 64 is not remembered as another one.
    """
    if not isinstance(expression, tuple):
        return set()
    kind, *rest = cast("tuple[Any, ...]", expression)
    if kind == "argument":
        return set() if exact else {rest[0]}
    exact = exact and kind in _KEEP_DIVISORS
    found: set[int] = set()
    return found.union(*(arguments_of(part, exact=exact) for part in rest))


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, cast("list[Any]", value))) if isinstance(value, list | tuple) else value
