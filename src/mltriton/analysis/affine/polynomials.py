"""Integer polynomials over scalar values: what an index expression is as a formula.

Level: all. Takes scalar integers; changes nothing. Sums, differences, products and shifts by constants are looked
through, and so are widenings: index arithmetic is taken not to wrap (docs/architecture.md, semantics). Two polynomials
are equal when the formulas are, whatever the order of operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from itertools import count
from typing import cast

from mltriton.dialects import arith
from mltriton.ir.builder import Builder
from mltriton.ir.constants import is_narrow, splat_of
from mltriton.ir.operation import Value
from mltriton.ir.types import IndexType, IntegerType, Type

WRAPPING = (arith.AddI, arith.SubI, arith.MulI, arith.ShLI)
Monomial = tuple[Value, ...]  # a product of values, in the order in which products met them

_NUMBERS = count()


def _met(value: Value) -> int:
    """When a product met a value first: each compilation of a program meets its values in one order."""
    try:
        return value.met
    except AttributeError:
        value.met = next(_NUMBERS)
        return value.met


def wraps(value: Value) -> bool:
    """Whether what computes a value may wrap: arithmetic on fewer bits than indices have."""
    return isinstance(value.defining_op, WRAPPING) and is_narrow(value.type)


class Polynomial:
    """A sum of integer multiples of products of values. Immutable; compare with `==`."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {monomial: factor for monomial, factor in terms.items() if factor}

    @staticmethod
    def constant(number: int) -> Polynomial:
        """A number."""
        return Polynomial({(): number})

    @staticmethod
    def of(value: Value) -> Polynomial:
        """The formula of a scalar integer."""
        number = splat_of(value)
        if isinstance(number, int):
            return Polynomial.constant(number)
        op = None if wraps(value) else value.defining_op
        if isinstance(op, arith.AddI | arith.SubI | arith.MulI):
            lhs, rhs = Polynomial.of(op.lhs), Polynomial.of(op.rhs)
            return lhs + rhs if isinstance(op, arith.AddI) else lhs - rhs if isinstance(op, arith.SubI) else lhs * rhs
        if isinstance(op, arith.ExtSI | arith.IndexCast):
            return Polynomial.of(op.source)
        if isinstance(op, arith.ShLI) and isinstance(amount := splat_of(op.rhs), int) and 0 <= amount < 64:
            return Polynomial.of(op.lhs) * Polynomial.constant(1 << amount)
        return Polynomial({(value,): 1})

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Polynomial(terms)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other * Polynomial.constant(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                product = tuple(sorted((*a, *b), key=_met))
                terms[product] = terms.get(product, 0) + x * y
        return Polynomial(terms)

    def times(self, factor: int) -> Polynomial:
        """A multiple."""
        return self * Polynomial.constant(factor)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    @property
    def is_zero(self) -> bool:
        """Whether it is 0 whatever the values are."""
        return not self.terms

    @property
    def number(self) -> int | None:
        """The number that it is, if it depends on no value."""
        return self.terms.get((), 0) if set(self.terms) <= {()} else None

    @property
    def values(self) -> Iterable[Value]:
        """The values that it depends on."""
        return {value for monomial in self.terms for value in monomial}

    def emit(self, builder: Builder, type: Type) -> Value:
        """Compute it as a scalar of `type` where the builder stands."""
        products = [self._product(builder, monomial, factor, type) for monomial, factor in self.terms.items()]
        if not products:
            return arith.integer(builder, 0, type)
        return reduce(lambda a, b: builder.emit(arith.AddI, a, b), products)

    def _product(self, builder: Builder, monomial: Monomial, factor: int, type: Type) -> Value:
        values = [resized(builder, value, type) for value in monomial]
        if factor != 1 or not values:
            values.append(arith.integer(builder, factor, type))
        return reduce(lambda a, b: builder.emit(arith.MulI, a, b), values)


def resized(builder: Builder, value: Value, type: Type) -> Value:
    """A scalar integer in another integer type, sign-extended or cut off."""
    if value.type is type:
        return value
    if isinstance(value.type, IndexType) or isinstance(type, IndexType):
        return builder.emit(arith.IndexCast, value, result_types=[type])
    widens = cast(IntegerType, value.type).width < cast(IntegerType, type).width
    return builder.emit(arith.ExtSI if widens else arith.TruncI, value, result_types=[type])


ZERO = Polynomial({})
ONE = Polynomial.constant(1)
