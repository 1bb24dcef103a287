"""What the integers and pointers of a block are as formulas of their places: `first + sum of step_d * i_d`.

Level: tt to ttg. Takes values of a function; changes nothing. What loops carry is looked through where it grows by the
same amount in each iteration: formulas then speak of the loop's `Iteration`, and a loop's counter does, too. Elements
that are something else than the formula says have provisos: `i % m`, `min(i, n)` and a choice by a comparison are `i`
where the provisos hold. Index arithmetic is taken not to wrap (docs/architecture.md, semantics).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mltriton.analysis.polynomials import ONE, ZERO, Polynomial
from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, BlockArgument, Operation, OpResult, Value
from mltriton.ir.types import I1, I32, IndexType, IntegerType, PointerType, TensorType, element_type, shape_of


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


class Formulas:
    """The formulas of the values of one function. Scalars that are computed in the same way from the same formulas are
    one value in them: the first one in the program.
    """

    def __init__(self, function: tt.Func) -> None:
        self._known: dict[Value, Formula | None] = {}
        self._iterations: dict[tuple[scf.For, bool], Iteration] = {}
        self._computed: dict[tuple[type[Operation], Polynomial, Polynomial], list[Value]] = {}
        for op in function.walk():  # in the order of the program: nothing is looked through from far behind
            for result in op.results:
                self.of(result)

    def of(self, value: Value) -> Formula | None:
        """The formula of an integer, a pointer, or a block of either; None where it has none."""
        if value not in self._known:
            self._known[value] = None  # of a value that is made of itself
            if isinstance(element_type(value.type), IntegerType | IndexType | PointerType):
                self._known[value] = self._compute(value)
        return self._known[value]

    def scalar(self, value: Value) -> Polynomial:
        """The formula of a scalar integer."""
        found = self.of(value)
        return found.first if found is not None else Polynomial({(value,): 1})

    def iteration(self, loop: scf.For, *, is_over: bool = False) -> Iteration:
        """The one value that stands for a loop's iterations."""
        return self._iterations.setdefault((loop, is_over), Iteration(loop, is_over=is_over))

    def _compute(self, value: Value) -> Formula | None:
        op = value.defining_op
        rule = _RULES.get(type(op)) if op is not None else None
        found = rule(self, op) if rule is not None else None
        if found is None:
            found = self._carried(value)
        if found is None and not isinstance(value.type, TensorType):
            is_pointer = isinstance(value.type, PointerType)
            return Formula(ZERO, base=value) if is_pointer else Formula(Polynomial({(self._first(value),): 1}))
        return found

    def _first(self, value: Value) -> Value:
        """The first value that is computed like this one and is there wherever it is."""
        op = value.defining_op
        if not isinstance(op, _COMPUTED):
            return value
        alike = self._computed.setdefault((type(op), self.scalar(op.lhs), self.scalar(op.rhs)), [])
        first = next((other for other in alike if other.type is value.type and _precedes(other, value)), value)
        if first is value:
            alike.append(value)
        return first

    # Loops.

    def _carried(self, value: Value) -> Formula | None:
        """A counter, or what a loop carries."""
        if isinstance(value, BlockArgument) and isinstance(loop := value.block.parent_op, scf.For):
            if value.index == 0:
                turns = Polynomial({(self.iteration(loop),): 1})
                return Formula(self.scalar(loop.lower) + self.scalar(loop.step) * turns)
            return self._grown(loop, value.index - 1, is_over=False)
        if isinstance(value, OpResult) and isinstance(value.op, scf.For):
            return self._grown(value.op, value.index, is_over=True)
        return None

    def _grown(self, loop: scf.For, index: int, *, is_over: bool) -> Formula | None:
        argument, following = loop.carried[index], loop.body.block.terminator.operands[index]
        growth, start = self._growth(following, argument), self.of(loop.inits[index])
        if growth is None or start is None or any(varies_in(value, loop) for value in growth.values):
            return None
        turns = Polynomial({(self.iteration(loop, is_over=is_over),): 1})
        return replace(start, first=start.first + growth * turns)

    def _growth(self, value: Value, argument: Value) -> Polynomial | None:
        """By how much every element of `value` is more than that of `argument`."""
        total = ZERO
        while value is not argument:
            op = value.defining_op
            if not isinstance(op, tt.AddPtr | arith.AddI | arith.SubI):
                return None
            moved, amount = op.operands
            step = self.of(amount)
            if (step is None or not step.is_uniform) and isinstance(op, arith.AddI):
                moved, amount = amount, moved
                step = self.of(amount)
            if step is None or not step.is_uniform:
                return None
            total = total - step.first if isinstance(op, arith.SubI) else total + step.first
            value = moved
        return total

    # Masks.

    def mask(self, value: Value) -> Mask:
        """What a block of i1 says of places."""
        op = value.defining_op
        if splat_of(value) == 1:
            return Mask()
        if isinstance(op, arith.AndI):
            one, other = (self.mask(part) for part in op.operands)
            return Mask(one.bounds + other.bounds, one.scalars + other.scalars, one.rest + other.rest)
        if isinstance(op, tt.Splat):
            return Mask(scalars=(op.source,))
        if isinstance(op, tt.ExpandDims | tt.Broadcast | tt.Trans | ttg.ConvertLayout):
            inner = self.mask(op.source)
            bounds = moved_bounds(op, inner.bounds)
            return Mask(rest=(value,)) if bounds is None else Mask(bounds, inner.scalars, inner.rest and (value,))
        bound = self._bound(op) if isinstance(op, arith.CmpI) else None
        return Mask((bound,)) if bound is not None else Mask(rest=(value,))

    def _bound(self, op: arith.CmpI) -> Bound | None:
        """A comparison of places along one dimension with something that is the same for all."""
        sides = _SIDES.get(op.predicate)
        lhs, rhs = self.of(op.lhs), self.of(op.rhs)
        if sides is None or lhs is None or rhs is None or lhs.provisos or rhs.provisos or lhs.base or rhs.base:
            return None
        swapped, is_strict = sides
        room = lhs - rhs if swapped else rhs - lhs  # positive, or not negative
        first = room.first if is_strict else room.first + ONE
        moving = [dim for dim, step in enumerate(room.steps) if not step.is_zero]
        if len(moving) != 1:
            return None
        match room.steps[moving[0]].number:
            case -1:
                return Bound(moving[0], True, first)
            case 1:
                return Bound(moving[0], False, ONE - first)
            case _:
                return None


_COMPUTED = (arith.DivSI, arith.DivUI, arith.RemSI, arith.RemUI, arith.MinSI, arith.MaxSI)
_SIDES = {"slt": (False, True), "sle": (False, False), "sgt": (True, True), "sge": (True, False)}


def varies_in(value: Value, loop: scf.For) -> bool:
    """Whether a value may differ from one iteration of a loop to the next."""
    return _is_within(value.defining_block, loop.body.block)


def _precedes(first: Value, second: Value) -> bool:
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


# Rules.


def _constant(formulas: Formulas, op: arith.Constant) -> Formula | None:
    number = splat_of(op.result)
    if not isinstance(number, int) or element_type(op.result.type) is I1:
        return None
    return Formula(Polynomial.constant(number), _still(op))


def _still(op: Operation) -> tuple[Polynomial, ...]:
    return (ZERO,) * len(shape_of(op.results[0].type))


def _splat(formulas: Formulas, op: tt.Splat) -> Formula | None:
    source = formulas.of(op.source)
    return replace(source, steps=_still(op)) if source is not None else None


def _range(formulas: Formulas, op: tt.MakeRange) -> Formula:
    return Formula(Polynomial.constant(op.start), (ONE,))


def _same(formulas: Formulas, op: arith.ExtSI | arith.IndexCast | ttg.ConvertLayout) -> Formula | None:
    return formulas.of(op.source) if element_type(op.source.type) is not I1 else None


def _moved(formulas: Formulas, op: tt.ExpandDims | tt.Broadcast | tt.Trans) -> Formula | None:
    source = formulas.of(op.source)
    if source is None:
        return None
    steps = [ZERO] * len(shape_of(op.result.type))
    for dim, step in enumerate(source.steps):
        if (to := _result_dim(op, dim)) is not None:
            steps[to] = step
    provisos = moved_bounds(op, source.provisos)
    return None if provisos is None else replace(source, steps=tuple(steps), provisos=frozenset(provisos))


def moved_bounds(op: Any, bounds: Iterable[Bound]) -> tuple[Bound, ...] | None:
    """Bounds on places of an operation's source as bounds on those of its result; None where one is on a dimension
    that is repeated.
    """
    dims = [(_result_dim(op, bound.dim), bound) for bound in bounds]
    moved = [bound._replace(dim=dim) for dim, bound in dims if dim is not None]
    return tuple(moved) if len(moved) == len(dims) else None


def _result_dim(op: Any, dim: int) -> int | None:
    """The dimension of the result that a dimension of the source becomes; None for one that is repeated."""
    if isinstance(op, tt.ExpandDims):
        return dim + (dim >= op.axis)
    if isinstance(op, tt.Trans):
        return list(op.order).index(dim)
    if isinstance(op, tt.Broadcast):
        return dim if shape_of(op.source.type)[dim] == shape_of(op.result.type)[dim] else None
    return dim


def _sum(formulas: Formulas, op: arith.AddI | arith.SubI | tt.AddPtr) -> Formula | None:
    lhs, rhs = (formulas.of(value) for value in op.operands)
    if lhs is None or rhs is None or (rhs.base is not None):
        return None
    return lhs - rhs if isinstance(op, arith.SubI) else lhs + rhs


def _product(formulas: Formulas, op: arith.MulI) -> Formula | None:
    lhs, rhs = (formulas.of(value) for value in op.operands)
    if lhs is None or rhs is None or lhs.base is not None or rhs.base is not None:
        return None
    return lhs.times(rhs.first) if rhs.is_uniform else rhs.times(lhs.first) if lhs.is_uniform else None


def _shifted(formulas: Formulas, op: arith.ShLI) -> Formula | None:
    source, amount = formulas.of(op.lhs), formulas.of(op.rhs)
    number = amount.first.number if amount is not None and amount.is_uniform else None
    if source is None or number is None or not 0 <= number < 31:
        return None
    return source.times(Polynomial.constant(1 << number))


def _remainder(formulas: Formulas, op: arith.RemSI | arith.RemUI) -> Formula | None:
    """An element that is neither negative nor as large as the divisor is its own remainder."""
    index, divisor = formulas.of(op.lhs), formulas.of(op.rhs)
    if index is None or divisor is None or not divisor.is_uniform:
        return None
    return _within(index, ZERO - index.first, divisor.first - index.first)


def _within(index: Formula, lower: Polynomial | None, upper: Polynomial | None) -> Formula | None:
    """Places that go on by ones along one dimension, promised to be `lower <= place < upper`."""
    moving = [dim for dim, step in enumerate(index.steps) if not step.is_zero]
    if len(moving) != 1 or index.steps[moving[0]].number != 1:
        return None
    limits = ((False, lower), (True, upper))
    bounds = {Bound(moving[0], is_upper, limit) for is_upper, limit in limits if limit is not None}
    return replace(index, provisos=index.provisos | bounds)


def _least(formulas: Formulas, op: arith.MinSI) -> Formula | None:
    return _clamped(formulas, op.operands, lambda index, end: (None, end + ONE - index))


def _greatest(formulas: Formulas, op: arith.MaxSI) -> Formula | None:
    return _clamped(formulas, op.operands, lambda index, end: (end - index, None))


Limits = tuple[Polynomial | None, Polynomial | None]


def _clamped(
    formulas: Formulas, operands: Sequence[Value], limits: Callable[[Polynomial, Polynomial], Limits]
) -> Formula | None:
    parts = [formulas.of(value) for value in operands]
    for index, end in (parts, parts[::-1]):
        if index is not None and end is not None and end.is_uniform and not index.is_uniform:
            return _within(index, *limits(index.first, end.first))
    return None


def _choice(formulas: Formulas, op: arith.Select) -> Formula | None:
    """Where a comparison of places holds, the first value."""
    if not isinstance(op.condition.type, TensorType):
        return None
    mask, chosen = formulas.mask(op.condition), formulas.of(op.true_value)
    if chosen is None or mask.scalars or mask.rest:
        return None
    return replace(chosen, provisos=chosen.provisos | set(mask.bounds))


_RULES: dict[type[Operation], Callable[[Formulas, Any], Formula | None]] = {
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
