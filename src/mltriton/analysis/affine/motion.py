"""How the integers and pointers of a loop body change along one dimension and from one iteration to the next.

Level: tt to warp. Takes a `scf.for` whose body has no further regions; changes nothing. `motion(value, dim)` gives two
polynomials over values from outside the loop: the difference between neighbouring elements along dimension `dim` of a
block (the same everywhere in the block), and the difference between one iteration and the one before (the same for
every element). None where there are no such numbers, or they are not known. Index arithmetic is taken not to wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mltriton.analysis.affine.polynomials import ONE, ZERO, Polynomial, wraps
from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import IndexType, IntegerType, PointerType, TensorType, element_type
from mltriton.records import record


@record(frozen=True)
class Motion:
    """`along`: from an element to its neighbour along the dimension; `per_step`: from an iteration to the next."""

    along: Polynomial
    per_step: Polynomial

    def __add__(self, other: Motion) -> Motion:
        return Motion(self.along + other.along, self.per_step + other.per_step)

    def __sub__(self, other: Motion) -> Motion:
        return Motion(self.along - other.along, self.per_step - other.per_step)

    def times(self, factor: Polynomial) -> Motion:
        """Both differences multiplied."""
        return Motion(self.along * factor, self.per_step * factor)

    @property
    def is_invariant(self) -> bool:
        """Whether the value is the same everywhere along the dimension and in every iteration."""
        return self.along.is_zero and self.per_step.is_zero


INVARIANT = Motion(ZERO, ZERO)


class LoopAffine:
    """The motions of the values that a loop's body uses."""

    def __init__(self, loop: scf.For) -> None:
        self.loop = loop
        block = loop.body.block
        self.inside: set[Value] = {*block.arguments, *(result for op in block.ops for result in op.results)}
        self._motions: dict[tuple[Value, int | None], Motion | None] = {}
        self.increments = self._find_increments()
        self._invariant: dict[Value, bool] = {}

    def _find_increments(self) -> dict[Value, Polynomial]:
        """By how much the counter and carried scalars grow in an iteration, where it is the same in each."""
        found = {cast(Value, self.loop.counter): Polynomial.of(self.loop.step)}
        end = self.loop.body.block.terminator
        for argument, after in zip(self.loop.carried, end.operands, strict=True):
            if isinstance(argument.type, IntegerType | IndexType):
                growth = Polynomial.of(after) - Polynomial({(argument,): 1})
                if not any(value in self.inside for value in growth.values):
                    found[argument] = growth
        return found

    def is_invariant(self, value: Value) -> bool:
        """Whether a value is the same in every iteration, and could be computed before the loop."""
        if value not in self.inside:
            return True
        if value not in self._invariant:
            op = value.defining_op
            plain = op is not None and op.pure and not op.regions
            self._invariant[value] = plain and all(map(self.is_invariant, cast(Operation, op).operands))
        return self._invariant[value]

    def motion(self, value: Value, dim: int | None) -> Motion | None:
        """The motion of a value; `dim` is None for scalars and for blocks without the dimension."""
        if not isinstance(element_type(value.type), IntegerType | IndexType | PointerType):
            return None
        key = (value, dim)
        if key not in self._motions:
            self._motions[key] = self._compute(value, dim)
        return self._motions[key]

    def _compute(self, value: Value, dim: int | None) -> Motion | None:
        if dim is None and self.is_invariant(value):
            return INVARIANT
        if value in self.increments:
            return Motion(ZERO, self.increments[value])
        op = value.defining_op
        if op is None or op.regions or not op.pure:
            return None
        rule = _RULES.get(type(op)) if not wraps(value) else None
        if rule is not None:
            return rule(self, op, dim)
        return self.of_invariant_operands(op, dim)

    def of_invariant_operands(self, op: Operation, dim: int | None) -> Motion | None:
        """An element-wise operation on invariant values gives an invariant one."""
        if not op.elementwise:
            return None
        motions = [self.motion(value, dim_of(value, dim)) for value in op.operands]
        return INVARIANT if all(motion is not None and motion.is_invariant for motion in motions) else None

    def uniform(self, value: Value) -> Polynomial | None:
        """The number that every element of an invariant block or scalar is."""
        op = value.defining_op
        if splat_of(value) is None and isinstance(op, tt.Splat | tt.Broadcast | tt.ExpandDims):
            return self.uniform(op.source)
        if isinstance(op, arith.ExtSI) and isinstance(value.type, TensorType):
            return self.uniform(op.source)
        number = splat_of(value)
        if isinstance(number, int):
            return Polynomial.constant(number)
        if isinstance(value.type, TensorType):
            return None
        formula = Polynomial.of(value)
        return None if any(part in self.inside for part in formula.values) else formula


def dim_of(operand: Value, dim: int | None) -> int | None:
    """The dimension as an operand of an element-wise operation has it: scalars have none."""
    return dim if isinstance(operand.type, TensorType) else None


def source_dim(op: tt.Broadcast | tt.ExpandDims | tt.Trans, dim: int | None) -> int | None:
    """The dimension of the source that becomes dimension `dim` of the result; None where it has none or is repeated."""
    if dim is None:
        return None
    if isinstance(op, tt.ExpandDims):
        return None if dim == op.axis else dim - (dim > op.axis)
    if isinstance(op, tt.Trans):
        return op.order[dim]
    source, result = cast(TensorType, op.source.type), cast(TensorType, op.result.type)
    return dim if source.shape[dim] == result.shape[dim] else None


def _line(loop: LoopAffine, op: tt.MakeRange, dim: int | None) -> Motion:
    return INVARIANT if dim is None else Motion(ONE, ZERO)


def _constant(loop: LoopAffine, op: arith.Constant, dim: int | None) -> Motion | None:
    return INVARIANT if dim is None or splat_of(op.result) is not None else None


def _splat(loop: LoopAffine, op: tt.Splat, dim: int | None) -> Motion | None:
    return loop.motion(op.source, None)


def _moved(loop: LoopAffine, op: tt.Broadcast | tt.ExpandDims | tt.Trans, dim: int | None) -> Motion | None:
    return loop.motion(op.source, source_dim(op, dim))


def _same(loop: LoopAffine, op: arith.Cast | ttg.ConvertLayout, dim: int | None) -> Motion | None:
    return loop.motion(op.source, dim)


def _sum(loop: LoopAffine, op: arith.AddI | arith.SubI | tt.AddPtr, dim: int | None) -> Motion | None:
    lhs, rhs = (loop.motion(value, dim) for value in op.operands)
    if lhs is None or rhs is None:
        return None
    return lhs - rhs if isinstance(op, arith.SubI) else lhs + rhs


def _product(loop: LoopAffine, op: arith.MulI, dim: int | None) -> Motion | None:
    motions = [loop.motion(value, dim) for value in op.operands]
    for motion, other in zip(motions, op.operands[::-1], strict=True):
        factor = loop.uniform(other)
        if motion is not None and factor is not None:
            return motion.times(factor)
    return INVARIANT if all(motion is not None and motion.is_invariant for motion in motions) else None


def _shifted(loop: LoopAffine, op: arith.ShLI, dim: int | None) -> Motion | None:
    motion, amount = loop.motion(op.lhs, dim), splat_of(op.rhs)
    if motion is None or not isinstance(amount, int) or not 0 <= amount < 64:
        return loop.of_invariant_operands(op, dim)
    return motion.times(Polynomial.constant(1 << amount))


_RULES: dict[type[Operation], Callable[[LoopAffine, Any, int | None], Motion | None]] = {
    tt.MakeRange: _line,
    arith.Constant: _constant,
    tt.Splat: _splat,
    tt.Broadcast: _moved,
    tt.ExpandDims: _moved,
    tt.Trans: _moved,
    ttg.ConvertLayout: _same,
    arith.ExtSI: _same,
    arith.IndexCast: _same,
    arith.AddI: _sum,
    arith.SubI: _sum,
    tt.AddPtr: _sum,
    arith.MulI: _product,
    arith.ShLI: _shifted,
}
