"""Rectangles of matrices: where an access's matrix starts, where the block lies in it, and where it ends.

Level: tt to ttg. Takes the formula of a block of pointers and the bounds on its indices, and shares the terms of its
first address out between base and offsets. Guarantees: base, offsets and strides give the same addresses; what is out
of bounds is before the matrix or beyond its ends. Offsets hold what makes the ends simple, and what loops move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mltriton.analysis.affine.formula import Bound, Formula, Iteration
from mltriton.analysis.affine.polynomials import ZERO, Monomial, Polynomial
from mltriton.ir.operation import Value
from mltriton.ir.types import IntegerType, TensorType, byte_width
from mltriton.records import NamedTuple


class Reason(NamedTuple):
    """Why a block of pointers is not regular, and what to change."""

    why: str
    hint: str | None = None


class NotRegular(Exception):  # noqa: N818
    """Ends the judgement of an access."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(why)
        self.reason = Reason(why, hint)


@dataclass(frozen=True)
class Line:
    """One dimension of a rectangle: the block starts at `offset`, the matrix ends at the least of `ends` (in elements;
    none where the whole block is accessed). `may_be_negative`: the part of the offset that must be asked when the
    program runs whether it is.
    """

    stride: Polynomial
    offset: Polynomial
    ends: tuple[Polynomial, ...]
    may_be_negative: Polynomial = ZERO


@dataclass(frozen=True)
class Rectangle:
    """A matrix: `base` and `shift` (elements) give its first element; dimension `contiguous` has stride 1. Where one of
    `scalars` is false nothing is inside.
    """

    block: TensorType
    base: Value
    shift: Polynomial
    lines: tuple[Line, Line]
    contiguous: int
    scalars: tuple[Value, ...]


class Numbers(Protocol):
    """What is known of scalars."""

    def is_natural(self, value: Polynomial, facts: Iterable[Polynomial]) -> bool:
        """Whether a number is not negative where none of `facts` is."""
        ...

    def is_aligned(self, elements: Polynomial, size: int) -> bool:
        """Whether so many elements of `size` bytes keep a base aligned."""
        ...


class Shares:
    """Shares the terms of an access's first address out between base and offsets. None of `facts` is negative where an
    element matters, and none of `in_mask` where the mask holds.
    """

    def __init__(
        self,
        numbers: Numbers,
        block: TensorType,
        formula: Formula,
        bounds: Sequence[Bound],
        contiguous: int,
        facts: frozenset[Polynomial],
        in_mask: frozenset[Polynomial],
    ) -> None:
        self.numbers = numbers
        self.block = block
        self.formula = formula
        self.bounds = bounds
        self.contiguous = contiguous
        self.facts = facts
        self.in_mask = in_mask
        self.rest = formula.first
        self.size = byte_width(block.element)

    def parts(self) -> tuple[Polynomial, tuple[Line, Line]]:
        """The shift of the base, and both dimensions."""
        rows = 1 - self.contiguous
        offsets = {self.contiguous: self._cancelling(self.contiguous), rows: self._cancelling(rows)}
        offsets[rows] += self._whole_rows(rows)
        offsets[self.contiguous] += self._columns()
        lines = {dim: self._line(dim, offset) for dim, offset in offsets.items()}
        return self.rest, (lines[0], lines[1])

    def _uppers(self, dim: int) -> list[Polynomial]:
        return [bound.limit for bound in self.bounds if bound.dim == dim and bound.is_upper]

    def _lower(self, dim: int) -> Polynomial | None:
        """The index from which on elements are inside, where it is not known to be 0 or less."""
        limits = [bound.limit for bound in self.bounds if bound.dim == dim and not bound.is_upper]
        open_ones = [limit for limit in limits if not self.numbers.is_natural(ZERO - limit, self.in_mask)]
        if len(open_ones) > 1:
            raise NotRegular("the mask has several lower bounds of one dimension", "Compare with their maximum.")
        return open_ones[0] if open_ones else None

    def _take(self, dim: int, amount: Polynomial) -> bool:
        """Move `amount` steps along a dimension out of the rest, if that makes it shorter, and offsets can hold it."""
        if any(map(_is_wide, amount.values)):
            return False
        rest = self.rest - amount * self.formula.steps[dim]
        if len(rest.terms) >= len(self.rest.terms):
            return False
        self.rest = rest
        return True

    def _cancelling(self, dim: int) -> Polynomial:
        """The terms that make an end of the matrix simpler: it is then the same for all programs or iterations."""
        taken = ZERO
        for upper in self._uppers(dim)[:1]:
            for monomial, factor in upper.terms.items():
                amount = Polynomial({monomial: -factor})
                if monomial and self._take(dim, amount):
                    taken += amount
        return taken

    def _whole_rows(self, dim: int) -> Polynomial:
        """Multiples of the distance between rows; what keeps the base aligned may stay there."""
        taken, stride = ZERO, self.formula.steps[dim]
        has_ends = bool(self._uppers(dim))
        for monomial, factor in list(self.rest.terms.items()):
            amount = _divided(monomial, factor, stride)
            term = Polynomial({monomial: factor})
            moves = any(isinstance(value, Iteration) for value in monomial)
            stays = (has_ends or not moves) and self.numbers.is_aligned(term, self.size)
            if amount is None or (not moves and any(len(each) > 1 for each in amount.terms)):
                continue  # another dimension of the tensor, as a rule: one that chooses the matrix
            if not stays and self._take(dim, amount):
                taken += amount
        return taken

    def _columns(self) -> Polynomial:
        """What is no multiple of rows and not a part of the base."""
        taken, has_ends = ZERO, bool(self._uppers(self.contiguous))
        for monomial, factor in list(self.rest.terms.items()):
            term = Polynomial({monomial: factor})
            moves = any(isinstance(value, Iteration) for value in monomial)
            if moves and has_ends:
                continue
            stays = not moves and self.numbers.is_aligned(term, self.size)
            if len(monomial) <= 1 and not stays and self._take(self.contiguous, term):
                taken += term
        return taken

    def _line(self, dim: int, offset: Polynomial) -> Line:
        stride, lower = self.formula.steps[dim], self._lower(dim)
        if lower is not None:  # the matrix starts where the mask does
            if any(map(_is_wide, lower.values)):
                raise NotRegular("the mask starts at a number of 64 bits", "Make it one of 32 bits.")
            self.rest += (offset + lower) * stride
            offset = ZERO - lower
        ends = tuple(upper + offset for upper in self._uppers(dim))
        if lower is not None or self.numbers.is_natural(offset, self.facts):
            return Line(stride, offset, ends)
        invariant = {m: n for m, n in offset.terms.items() if not any(isinstance(value, Iteration) for value in m)}
        start = Polynomial(invariant)
        if not self.numbers.is_natural(offset - start, self.facts):
            raise NotRegular("the pointers may move backwards", "Let loops move pointers forwards.")
        return Line(stride, offset, ends, start)


def _is_wide(value: Value) -> bool:
    """Whether a scalar may be too large for an offset, which has 32 bits."""
    return not isinstance(value, Iteration) and not (isinstance(value.type, IntegerType) and value.type.width <= 32)


def _divided(monomial: Monomial, factor: int, stride: Polynomial) -> Polynomial | None:
    """A term divided by the first one of a stride."""
    if stride.is_zero:
        return None
    divisor, number = next(iter(stride.terms.items()))
    left = list(monomial)
    for value in divisor:
        if value not in left:
            return None
        left.remove(value)
    return Polynomial({tuple(left): factor // number}) if factor % number == 0 else None
