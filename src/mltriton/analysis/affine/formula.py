"""Formulas of the integers and pointers of a block, `first + sum of step_d * i_d`, and bounds on its indices.

Level: tt to ttg. Data, and what becomes of bounds where a block changes its shape; `formulas.py` says which
formula a value has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from mltriton.analysis.affine.polynomials import ONE, ZERO, Polynomial
from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import I1, I32, TensorType, element_type, shape_of
from mltriton.records import NamedTuple


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
    """Says of indices in a block that `index[dim] < limit` (`is_upper`), or that `index[dim] >= limit`."""

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
    """A conjunction: indices within `bounds`, where every scalar of `scalars` is true; `rest` is what else there is."""

    bounds: tuple[Bound, ...] = ()
    scalars: tuple[Value, ...] = ()
    rest: tuple[Value, ...] = ()


def moved_bounds(op: Any, bounds: Iterable[Bound]) -> tuple[Bound, ...] | None:
    """Bounds on indices of an operation's source as bounds on those of its result; None where one is on a dimension
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


class Known(Protocol):
    """The formulas of other values."""

    def of(self, value: Value) -> Formula | None:
        """The formula of an integer, a pointer, or a block of either."""
        ...

    def mask(self, value: Value) -> Mask:
        """What a block of i1 says of indices."""
        ...


def _constant(formulas: Known, op: arith.Constant) -> Formula | None:
    number = splat_of(op.result)
    if not isinstance(number, int) or element_type(op.result.type) is I1:
        return None
    return Formula(Polynomial.constant(number), _no_steps(op))


def _no_steps(op: Operation) -> tuple[Polynomial, ...]:
    return (ZERO,) * len(shape_of(op.results[0].type))


def _splat(formulas: Known, op: tt.Splat) -> Formula | None:
    source = formulas.of(op.source)
    return replace(source, steps=_no_steps(op)) if source is not None else None


def _range(formulas: Known, op: tt.MakeRange) -> Formula:
    return Formula(Polynomial.constant(op.start), (ONE,))


def _same(formulas: Known, op: arith.ExtSI | arith.IndexCast | ttg.ConvertLayout) -> Formula | None:
    return formulas.of(op.source) if element_type(op.source.type) is not I1 else None


def _moved(formulas: Known, op: tt.ExpandDims | tt.Broadcast | tt.Trans) -> Formula | None:
    source = formulas.of(op.source)
    if source is None:
        return None
    steps = [ZERO] * len(shape_of(op.result.type))
    for dim, step in enumerate(source.steps):
        if (to := result_dim(op, dim)) is not None:
            steps[to] = step
    provisos = moved_bounds(op, source.provisos)
    return None if provisos is None else replace(source, steps=tuple(steps), provisos=frozenset(provisos))


def _sum(formulas: Known, op: arith.AddI | arith.SubI | tt.AddPtr) -> Formula | None:
    lhs, rhs = (formulas.of(value) for value in op.operands)
    if lhs is None or rhs is None or (rhs.base is not None):
        return None
    return lhs - rhs if isinstance(op, arith.SubI) else lhs + rhs


def _product(formulas: Known, op: arith.MulI) -> Formula | None:
    lhs, rhs = (formulas.of(value) for value in op.operands)
    if lhs is None or rhs is None or lhs.base is not None or rhs.base is not None:
        return None
    return lhs.times(rhs.first) if rhs.is_uniform else rhs.times(lhs.first) if lhs.is_uniform else None


def _shifted(formulas: Known, op: arith.ShLI) -> Formula | None:
    source, amount = formulas.of(op.lhs), formulas.of(op.rhs)
    number = amount.first.number if amount is not None and amount.is_uniform else None
    if source is None or number is None or not 0 <= number < 31:
        return None
    return source.times(Polynomial.constant(1 << number))


def _remainder(formulas: Known, op: arith.RemSI | arith.RemUI) -> Formula | None:
    """An element that is neither negative nor as large as the divisor is its own remainder."""
    index, divisor = formulas.of(op.lhs), formulas.of(op.rhs)
    if index is None or divisor is None or not divisor.is_uniform:
        return None
    return _within(index, ZERO - index.first, divisor.first - index.first)


def _within(index: Formula, lower: Polynomial | None, upper: Polynomial | None) -> Formula | None:
    """Indices that go on by ones along one dimension, promised to be `lower <= index < upper`."""
    moving = [dim for dim, step in enumerate(index.steps) if not step.is_zero]
    if len(moving) != 1 or index.steps[moving[0]].number != 1:
        return None
    limits = ((False, lower), (True, upper))
    bounds = {Bound(moving[0], is_upper, limit) for is_upper, limit in limits if limit is not None}
    return replace(index, provisos=index.provisos | bounds)


def _least(formulas: Known, op: arith.MinSI) -> Formula | None:
    return _clamped(formulas, op.operands, lambda index, end: (None, end + ONE - index))


def _greatest(formulas: Known, op: arith.MaxSI) -> Formula | None:
    return _clamped(formulas, op.operands, lambda index, end: (end - index, None))


Limits = tuple[Polynomial | None, Polynomial | None]


def _clamped(
    formulas: Known, operands: Sequence[Value], limits: Callable[[Polynomial, Polynomial], Limits]
) -> Formula | None:
    parts = [formulas.of(value) for value in operands]
    for index, end in (parts, parts[::-1]):
        if index is not None and end is not None and end.is_uniform and not index.is_uniform:
            return _within(index, *limits(index.first, end.first))
    return None


def _choice(formulas: Known, op: arith.Select) -> Formula | None:
    """Where a comparison of indices holds, the first value."""
    if not isinstance(op.condition.type, TensorType):
        return None
    mask, chosen = formulas.mask(op.condition), formulas.of(op.true_value)
    if chosen is None or mask.scalars or mask.rest:
        return None
    return replace(chosen, provisos=chosen.provisos | set(mask.bounds))


RULES: dict[type[Operation], Callable[[Known, Any], Formula | None]] = {
    arith.Constant: _constant,
    tt.Splat: _splat,
    tt.MakeRange: _range,
    tt.ExpandDims: _moved,
    tt.Broadcast: _moved,
    tt.Trans: _moved,
    ttg.ConvertLayout: _same,
    arith.ExtSI: _same,
    arith.IndexCast: _same,
    arith.AddI: _sum,
    arith.SubI: _sum,
    tt.AddPtr: _sum,
    arith.MulI: _product,
    arith.ShLI: _shifted,
    arith.RemSI: _remainder,
    arith.RemUI: _remainder,
    arith.MinSI: _least,
    arith.MaxSI: _greatest,
    arith.Select: _choice,
}
