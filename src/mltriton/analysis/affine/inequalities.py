"""Whether an integer expression cannot be negative, given that others are not.

Level: tt to ttg. Takes polynomials over scalar values; changes nothing. What operations say of their results
(quotients, remainders, minima, program ids, iterations of loops) is looked up as it is needed; contradictions are found
by Fourier-Motzkin elimination, each product of values as a variable of its own. Guarantees: `holds` says True only of
what is true; integers are taken not to wrap, and a remainder by zero not to have the other sign than its dividend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import Any

from mltriton.analysis.affine.formula import Iteration
from mltriton.analysis.affine.polynomials import ONE, ZERO, Monomial, Polynomial
from mltriton.dialects import arith, tt, ttng
from mltriton.ir.operation import Value

MOST_FACTS = 300  # in one elimination; with more, nothing is known
ROUNDS = 6

Facts = list[Polynomial]  # none is negative


def holds(goal: Polynomial, facts: Iterable[Polynomial], formula: Callable[[Value], Polynomial]) -> bool:
    """Whether `goal` cannot be negative where none of `facts` is. `formula` says what a scalar is."""
    if goal.number is not None and goal.number >= 0:
        return True
    return _Search([*facts, _negated(goal)], formula).finds_contradiction()


def _negated(fact: Polynomial) -> Polynomial:
    """Not negative exactly where `fact` is negative."""
    return MINUS_ONE - fact


MINUS_ONE = Polynomial.constant(-1)


class _Search:
    """Facts, and what follows from them by the rules of the operations whose results they speak of."""

    def __init__(self, facts: Facts, formula: Callable[[Value], Polynomial]) -> None:
        self.facts = list(dict.fromkeys(facts))
        self.formula = formula
        self.followed: set[Polynomial] = set()

    def finds_contradiction(self) -> bool:
        for _ in range(ROUNDS):
            if is_contradiction(self.facts):
                return True
            before = len(self.facts)
            for value in self._values():
                self.facts += [fact for fact in self._about(value) if fact not in self.facts]
            self.facts += [fact for fact in self._products(self.facts) if fact not in self.facts]
            if len(self.facts) == before:
                return False
        return is_contradiction(self.facts)

    def _values(self) -> list[Value]:
        """What the facts speak of, and what that is computed from."""
        found: dict[Value, None] = {}
        pending = [value for fact in self.facts for value in fact.values]
        while pending:
            value = pending.pop()
            if value not in found:
                found[value] = None
                op = None if isinstance(value, Iteration) else value.defining_op
                for operand in op.operands if type(op) in _RULES and op is not None else ():
                    pending.extend(self.formula(operand).values)
        return list(found)

    def _products(self, facts: Facts) -> Facts:
        """Products, which facts speak of, of what is not negative are not either."""
        products = dict.fromkeys(values for fact in facts for values in fact.terms if len(values) > 1)
        singles = {value: Polynomial({(value,): 1}) for values in products for value in values}
        natural = {value for value, single in singles.items() if self.follows(single)}
        return [Polynomial({values: 1}) for values in products if natural.issuperset(values)]

    def follows(self, fact: Polynomial) -> bool:
        if fact not in self.followed:
            products = self._products([fact])
            if is_contradiction([*self.facts, *products, _negated(fact)]):
                self.followed.add(fact)
        return fact in self.followed

    def _about(self, value: Value) -> Facts:
        if isinstance(value, Iteration):
            return self._of_iteration(value)
        op = value.defining_op
        rule = _RULES.get(type(op)) if op is not None else None
        return rule(self, op, Polynomial({(value,): 1})) if rule is not None else []

    def _of_iteration(self, value: Iteration) -> Facts:
        count, loop = Polynomial({(value,): 1}), value.loop
        if value.is_over:
            return [count]
        lower, upper, step = map(self.formula, (loop.lower, loop.upper, loop.step))
        return [count, upper - lower - step * count - ONE]


def _natural(search: _Search, op: Any, result: Polynomial) -> Facts:
    return [result]


def _quotient(search: _Search, op: arith.DivSI, result: Polynomial) -> Facts:
    """Rounded to zero."""
    dividend, divisor = search.formula(op.lhs), search.formula(op.rhs)
    is_natural = search.follows(dividend)
    if divisor.number is None:
        facts: Facts = []
        if is_natural and search.follows(divisor - ONE):
            facts += [result, dividend - result]
        if is_natural and search.follows(_negated(result)):
            facts.append(ZERO - divisor)
        return facts
    if divisor.number <= 0:
        return []
    whole, rest = result.times(divisor.number), Polynomial.constant(divisor.number - 1)
    facts = [whole - dividend + rest, dividend - whole + rest]
    if is_natural:
        facts += [result, dividend - whole]
    return facts


def _remainder(search: _Search, op: arith.RemSI, result: Polynomial) -> Facts:
    dividend, divisor = search.formula(op.lhs), search.formula(op.rhs)
    facts: Facts = []
    if search.follows(dividend):
        facts += [result, dividend - result]
    if search.follows(divisor - ONE):
        facts.append(divisor - result - ONE)
    return facts


def _least(search: _Search, op: arith.MinSI, result: Polynomial) -> Facts:
    return _extreme(search, op, result, 1)


def _greatest(search: _Search, op: arith.MaxSI, result: Polynomial) -> Facts:
    return _extreme(search, op, result, -1)


def _extreme(search: _Search, op: arith.MinSI | arith.MaxSI, result: Polynomial, sign: int) -> Facts:
    """The one that is not the other is the result."""
    parts = [search.formula(op.lhs), search.formula(op.rhs)]
    facts = [(part - result).times(sign) for part in parts]
    for one, other in (parts, parts[::-1]):
        if search.follows((other - result).times(sign) - ONE):
            facts.append((result - one).times(sign))
    return facts


_RULES: dict[type, Callable[[_Search, Any, Polynomial], Facts]] = {
    tt.GetProgramId: _natural,
    tt.GetNumPrograms: _natural,
    ttng.GridSize: _natural,
    arith.ExtUI: _natural,
    arith.DivSI: _quotient,
    arith.RemSI: _remainder,
    arith.MinSI: _least,
    arith.MaxSI: _greatest,
}


# Elimination.

_Row = dict[Monomial, int]


def is_contradiction(facts: Iterable[Polynomial]) -> bool:
    """Whether no rational numbers make all of `facts` not negative; False where that takes too long to find out."""
    rows = _distinct([fact.terms for fact in facts])
    while rows:
        if any(len(row) == 1 and row.get((), 0) < 0 for row in rows):
            return True
        above, below = _occurrences(rows)
        free = above.keys() ^ below.keys()  # as large or as small as a row needs
        if free:
            rows = [row for row in rows if free.isdisjoint(row)]
            continue
        if not above:
            return False
        variable = min(above, key=lambda m: above[m] * below[m] - above[m] - below[m])
        positive = [row for row in rows if row.get(variable, 0) > 0]
        negative = [row for row in rows if row.get(variable, 0) < 0]
        rest = [row for row in rows if variable not in row]
        rows = _distinct([*rest, *(_without(variable, p, n) for p in positive for n in negative)])
        if len(rows) > MOST_FACTS:
            return False
    return False


def _occurrences(rows: Sequence[_Row]) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """In how many rows each variable has a positive and a negative factor."""
    above: dict[Monomial, int] = {}
    below: dict[Monomial, int] = {}
    for row in rows:
        for monomial, factor in row.items():
            if monomial:
                counts = above if factor > 0 else below
                counts[monomial] = counts.get(monomial, 0) + 1
    return above, below


def _without(variable: Monomial, positive: _Row, negative: _Row) -> _Row:
    a, b = positive[variable], -negative[variable]
    sums = {m: b * positive.get(m, 0) + a * negative.get(m, 0) for m in {*positive, *negative}}
    return {monomial: factor for monomial, factor in sums.items() if factor}


def _distinct(rows: Sequence[_Row]) -> list[_Row]:
    """Each row once, divided by what divides it."""
    found: dict[frozenset[tuple[Monomial, int]], _Row] = {}
    for row in rows:
        divisor = gcd(*row.values())
        reduced = {monomial: factor // divisor for monomial, factor in row.items()} if divisor > 1 else row
        if reduced:
            found.setdefault(frozenset(reduced.items()), reduced)
    return list(found.values())
