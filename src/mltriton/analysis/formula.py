"""Formulas of the integers and pointers of a block, `first + sum of step_d * i_d`, and bounds on its places.

Level: tt to ttg. Data, and what becomes of bounds where a block changes its shape; `block_formulas.py` says which
formula a value has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mltriton.analysis.polynomials import Polynomial
from mltriton.dialects import scf, tt
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import I32, shape_of


class Iteration(Value):
    """How many iterations of a loop there were before this one; after it (`is_over`), how many there were at all."""

    __slots__ = ("is_over", "loop")

    def __init__(self, loop: scf.For, *, is_over: bool) -> None:
        super().__init__(I32, "iteration")
        self.loop = loop
        self.is_over = is_over

    @property
    def owner(self) -> Operation | Block:
        return self.loop if self.is_over else self.loop.body.block

    @property
    def defining_op(self) -> None:
        return None


class Bound(NamedTuple):
    """Says of places in a block that `place[dim] < limit` (`is_upper`), or that `place[dim] >= limit`."""

    dim: int
    is_upper: bool
    limit: Polynomial


@dataclass(frozen=True)
class Formula:
    """Element i is `first + sum(steps[d] * i[d])`, for pointers in elements after `base`, where the provisos hold."""

    first: Polynomial
    steps: tuple[Polynomial, ...] = ()
    base: Value | None = None
    provisos: frozenset[Bound] = frozenset()

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are the same."""
        return all(step.is_zero for step in self.steps) and not self.provisos

    def __add__(self, other: Formula) -> Formula:
        steps = tuple(a + b for a, b in zip(self.steps, other.steps, strict=True))
        return Formula(self.first + other.first, steps, self.base or other.base, self.provisos | other.provisos)

    def times(self, factor: Polynomial) -> Formula:
        """Every element multiplied."""
        return replace(self, first=self.first * factor, steps=tuple(step * factor for step in self.steps))

    def __sub__(self, other: Formula) -> Formula:
        return self + other.times(Polynomial.constant(-1))


class Mask(NamedTuple):
    """A conjunction: places within `bounds`, where every scalar of `scalars` is true; `rest` is what else there is."""

    bounds: tuple[Bound, ...] = ()
    scalars: tuple[Value, ...] = ()
    rest: tuple[Value, ...] = ()


def moved_bounds(op: Any, bounds: Iterable[Bound]) -> tuple[Bound, ...] | None:
    """Bounds on places of an operation's source as bounds on those of its result; None where one is on a dimension
    that is repeated.
    """
    dims = [(result_dim(op, bound.dim), bound) for bound in bounds]
    moved = [bound._replace(dim=dim) for dim, bound in dims if dim is not None]
    return tuple(moved) if len(moved) == len(dims) else None


def result_dim(op: Any, dim: int) -> int | None:
    """The dimension of the result that a dimension of the source becomes; None for one that is repeated."""
    if isinstance(op, tt.ExpandDims):
        return dim + (dim >= op.axis)
    if isinstance(op, tt.Trans):
        return list(op.order).index(dim)
    if isinstance(op, tt.Broadcast):
        return dim if shape_of(op.source.type)[dim] == shape_of(op.result.type)[dim] else None
    return dim


def varies_in(value: Value, loop: scf.For) -> bool:
    """Whether a value may differ from one iteration of a loop to the next."""
    return _is_within(value.defining_block, loop.body.block)


def precedes(first: Value, second: Value) -> bool:
    """Whether a result of an operation is there wherever another one is."""
    op, block = second.defining_op, first.defining_block
    while op is not None and op.block is not block:
        op = op.parent_op
    before = first.defining_op
    return op is not None and before is not None and block.position(before) < block.position(op)


def _is_within(block: Block | None, outer: Block) -> bool:
    while block is not None and block is not outer:
        parent = block.parent_op
        block = parent.block if parent is not None else None
    return block is outer
