"""What the integers and pointers of a block are as formulas of their indices, and what masks say of indices.

Level: tt to ttg. Takes a function; changes nothing. `formula.py` has the formulas. What loops carry is looked through
where it grows by the same amount in each iteration: formulas then speak of the loop's `Iteration`, and a loop's counter
does, too. Elements that are something else than the formula says have provisos: `i % m`, `min(i, n)` and a choice by a
comparison are `i` where the provisos hold. Index arithmetic is taken not to wrap (docs/architecture.md, semantics).
"""

from __future__ import annotations

from dataclasses import replace

from mltriton.analysis.affine.formula import RULES, Bound, Formula, Iteration, Mask, moved_bounds, precedes, varies_in
from mltriton.analysis.affine.polynomials import ONE, ZERO, Polynomial, wraps
from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import BlockArgument, Operation, OpResult, Value
from mltriton.ir.types import IndexType, IntegerType, PointerType, TensorType, element_type

_COMPUTED = (arith.DivSI, arith.DivUI, arith.RemSI, arith.RemUI, arith.MinSI, arith.MaxSI)
_SIDES = {"slt": (False, True), "sle": (False, False), "sgt": (True, True), "sge": (True, False)}


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
        rule = RULES.get(type(op)) if op is not None and not wraps(value) else None
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
        first = next((other for other in alike if other.type is value.type and precedes(other, value)), value)
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
        if wraps(following):
            return None
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
        """What a block of i1 says of indices."""
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
        """A comparison of indices along one dimension with something that is the same for all."""
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
