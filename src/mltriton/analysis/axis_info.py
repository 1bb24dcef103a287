"""Axis info: how regular the integers and pointers of a block are along each dimension.

Level: tt to warp. Takes a function; changes nothing; nothing is computed before the first question. For each dimension
of a value (a scalar has one of size 1): elements come in groups of `contiguity` in which each is one more than the one
before (pointers: one element further); the first of each group is a multiple of `divisibility` (pointers: bytes); and
elements come in groups of `constancy` that are equal. `number` is the value where all elements are one known number.
Parameters and operations may promise more (`tt.divisibility`, `tt.contiguity`, `tt.constancy`). Guarantees: what is
said holds in every iteration of every loop. Source: upstream's AxisInfo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, cast

from mltriton.dialects import arith, scf, tt, ttg
from mltriton.ir.attributes import ArrayAttr, Attribute, DenseArrayAttr, DenseAttr, DictAttr, IntegerAttr
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Block, BlockArgument, Operation, Value
from mltriton.ir.types import PointerType, Type, byte_width, element_type, shape_of

HIGHEST = 1 << 62  # the divisibility of 0
Numbers = tuple[int, ...]


@dataclass(frozen=True)
class AxisInfo:
    """See the module's docstring; one number a dimension."""

    contiguity: Numbers
    divisibility: Numbers
    constancy: Numbers
    number: int | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.contiguity)

    def in_runs(self, contiguity: Numbers) -> AxisInfo:
        """The same values seen in shorter runs, whose first elements are multiples of less."""
        divisibility = tuple(
            d if old == 1 or new % old == 0 else gcd(d, new)
            for d, old, new in zip(self.divisibility, self.contiguity, contiguity, strict=True)
        )
        return replace(self, contiguity=contiguity, divisibility=divisibility)

    def joined(self, other: AxisInfo) -> AxisInfo:
        """What holds of both."""
        runs = _gcds(self.contiguity, other.contiguity)
        return AxisInfo(
            runs,
            _gcds(self.in_runs(runs).divisibility, other.in_runs(runs).divisibility),
            _gcds(self.constancy, other.constancy),
            self.number if self.number == other.number else None,
        )


def unknown(type: Type) -> AxisInfo:
    """Nothing known."""
    ones = (1,) * max(1, len(shape_of(type)))
    return AxisInfo(ones, ones, ones)


def known_number(number: int, type: Type) -> AxisInfo:
    """A scalar or splat of one number."""
    shape = shape_of(type) or (1,)
    return AxisInfo((1,) * len(shape), (divisor_of(number),) * len(shape), shape, number)


def divisor_of(number: int) -> int:
    """The largest power of two that divides a number."""
    return number & -number if number else HIGHEST


class AxisInfoAnalysis:
    """The axis info of the values of one function."""

    def __init__(self, function: tt.Func) -> None:
        self.function = function
        self._infos: dict[Value, AxisInfo] = {}
        self._done = False

    def of(self, value: Value) -> AxisInfo:
        """What is known of a value."""
        if not self._done:
            self._done = True
            self._parameters()
            self._block(self.function.body.block)
        return self._infos.get(value) or unknown(value.type)

    def contiguous_bytes(self, pointers: Value, dim: int) -> int:
        """How many bytes from the first of a group of neighbouring pointers along a dimension are in one run."""
        return self.of(pointers).contiguity[dim] * byte_width(_pointee(pointers.type))

    def alignment(self, pointers: Value) -> int:
        """Bytes of which the first pointer of every group is a multiple."""
        return max(self.of(pointers).divisibility)

    def _parameters(self) -> None:
        attributes = self.function.arg_attrs
        for argument, attrs in zip(
            self.function.body.block.arguments,
            attributes.elements if isinstance(attributes, ArrayAttr) else (),
            strict=False,
        ):
            if isinstance(attrs, DictAttr):
                self._infos[argument] = _promised(unknown(argument.type), dict(attrs.entries))

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if op.regions:
                self._control_flow(op)
            elif len(op.results) == 1:
                rule = _RULES.get(type(op))
                infos = [self._infos.get(value) or unknown(value.type) for value in op.operands]
                info = rule(op, infos) if rule is not None else _same_constancy(op, infos)
                self._infos[op.results[0]] = _promised(info, op.attributes) if op.attributes else info

    def _control_flow(self, op: Operation) -> None:
        if isinstance(op, scf.For):
            self._infos[op.counter] = self._counter(op)
            block = op.body.block
            self._until_stable(list(zip(op.carried, op.inits, strict=True)), [block], lambda: block.terminator.operands)
            self._join_results(op, [op.inits, block.terminator.operands])
        elif isinstance(op, scf.While):
            before, after = op.before.block, op.after.block
            pairs = list(zip(before.arguments, op.inits, strict=True))
            self._until_stable(pairs, [before, after], lambda: after.terminator.operands)
            self._join_results(op, [before.terminator.operands[1:]])
        elif isinstance(op, scf.If):
            blocks = [region.block for region in op.regions if region.blocks]
            for block in blocks:
                self._block(block)
            self._join_results(op, [block.terminator.operands for block in blocks])

    def _counter(self, op: scf.For) -> AxisInfo:
        lower, step = (self._infos.get(value) or unknown(value.type) for value in (op.lower, op.step))
        return AxisInfo((1,), _gcds(lower.divisibility, step.divisibility), (1,))

    def _until_stable(
        self, carried: Sequence[tuple[Value, Value]], blocks: Sequence[Block], yielded: Callable[[], Sequence[Value]]
    ) -> None:
        """Start from the initial values and weaken until an iteration hands on what it got."""
        for argument, init in carried:
            self._infos[argument] = self._infos.get(init) or unknown(init.type)
        changed = True
        while changed:
            for number, block in enumerate(blocks):
                if number:
                    for argument, value in zip(block.arguments, blocks[0].terminator.operands[1:], strict=True):
                        self._infos[argument] = self._infos.get(value) or unknown(value.type)
                self._block(block)
            changed = False
            for (argument, _), value in zip(carried, yielded(), strict=True):
                old = self._infos[argument]
                joined = old.joined(self._infos.get(value) or unknown(value.type))
                changed = changed or joined != old
                self._infos[argument] = joined

    def _join_results(self, op: Operation, sources: Sequence[Sequence[Value]]) -> None:
        for result, *values in zip(op.results, *sources, strict=True):
            infos = [self._infos.get(value) or unknown(value.type) for value in values]
            info = infos[0]
            for other in infos[1:]:
                info = info.joined(other)
            self._infos[result] = info


def _pointee(type: Type) -> Type:
    element = element_type(type)
    return element.pointee if isinstance(element, PointerType) else element


def _gcds(a: Numbers, b: Numbers) -> Numbers:
    return tuple(map(gcd, a, b))


def _promised(info: AxisInfo, attributes: dict[str, Attribute]) -> AxisInfo:
    """With what the program promises: numbers for the last dimensions."""
    for field in ("contiguity", "divisibility", "constancy"):
        promise = attributes.get(f"tt.{field}")
        numbers = _numbers(promise)
        if numbers and len(numbers) <= info.rank:
            old = cast(Numbers, getattr(info, field))
            first = len(old) - len(numbers)
            info = replace(info, **{field: (*old[:first], *map(max, old[first:], numbers))})
    return info


def _numbers(attribute: Attribute | None) -> Numbers:
    if isinstance(attribute, IntegerAttr):
        return (attribute.value,)
    if isinstance(attribute, DenseArrayAttr):
        return attribute.values
    return cast(Numbers, attribute.values) if isinstance(attribute, DenseAttr) else ()


# Rules: from the operands' infos to the result's.


def _same_constancy(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """What is equal before an element-wise operation is equal after it."""
    info = unknown(op.results[0].type)
    blocks = [i for i, value in zip(infos, op.operands, strict=True) if shape_of(value.type)]
    if not op.elementwise or not blocks or any(block.rank != info.rank for block in blocks):
        return info
    constancy = blocks[0].constancy
    for block in blocks[1:]:
        constancy = _gcds(constancy, block.constancy)
    return replace(info, constancy=constancy)


def _constant(op: arith.Constant, infos: Sequence[AxisInfo]) -> AxisInfo:
    number = splat_of(op.result)
    return known_number(number, op.result.type) if isinstance(number, int) else unknown(op.result.type)


def _make_range(op: tt.MakeRange, infos: Sequence[AxisInfo]) -> AxisInfo:
    return AxisInfo((op.end - op.start,), (divisor_of(op.start),), (1,))


def _splat(op: tt.Splat, infos: Sequence[AxisInfo]) -> AxisInfo:
    shape = shape_of(op.result.type)
    return AxisInfo((1,) * len(shape), infos[0].divisibility * len(shape), shape, infos[0].number)


def _expand_dims(op: tt.ExpandDims, infos: Sequence[AxisInfo]) -> AxisInfo:
    """Every element is the first along the new dimension, so all must be multiples."""
    info, axis = infos[0], op.axis

    def insert(numbers: Numbers, number: int) -> Numbers:
        return (*numbers[:axis], number, *numbers[axis:])

    of_each = max(_of_every_element(info))
    return AxisInfo(
        insert(info.contiguity, 1), insert(info.divisibility, of_each), insert(info.constancy, 1), info.number
    )


def _broadcast(op: tt.Broadcast, infos: Sequence[AxisInfo]) -> AxisInfo:
    info = infos[0]
    source, result = shape_of(op.source.type), shape_of(op.result.type)
    constancy = tuple(
        new if old == 1 else number for number, old, new in zip(info.constancy, source, result, strict=True)
    )
    return replace(info, constancy=constancy)


def _trans(op: tt.Trans, infos: Sequence[AxisInfo]) -> AxisInfo:
    info = infos[0]

    def permuted(numbers: Numbers) -> Numbers:
        return tuple(numbers[dim] for dim in op.order)

    return AxisInfo(permuted(info.contiguity), permuted(info.divisibility), permuted(info.constancy), info.number)


def _same(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    return infos[0]


def _resized(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """Modulo a power of two: runs that start at a multiple of their length stay runs."""
    info = infos[0]
    powers = tuple(number & -number for number in info.divisibility)
    runs = tuple(gcd(c, d) for c, d in zip(info.contiguity, powers, strict=True))
    return replace(replace(info, divisibility=powers).in_runs(runs), number=None)


def _bitcast(op: tt.Bitcast, infos: Sequence[AxisInfo]) -> AxisInfo:
    old, new = _pointee(op.source.type), _pointee(op.result.type)
    is_pointer = isinstance(element_type(op.source.type), PointerType)
    if is_pointer and isinstance(element_type(op.result.type), PointerType) and byte_width(old) == byte_width(new):
        return infos[0]
    return replace(unknown(op.result.type), constancy=infos[0].constancy)


def _folded(op: Operation, infos: Sequence[AxisInfo], compute: Callable[[int, int], int]) -> AxisInfo | None:
    """The known number that an operation on two known numbers gives."""
    a, b = infos[0].number, infos[1].number
    return None if a is None or b is None else known_number(compute(a, b), op.results[0].type)


def _sum(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    lhs, rhs = infos
    is_difference = isinstance(op, arith.SubI)
    folded = _folded(op, infos, lambda a, b: a - b if is_difference else a + b)
    if folded is not None:
        return folded
    contiguity = _gcds(lhs.contiguity, rhs.constancy)
    if not is_difference:
        contiguity = tuple(map(max, contiguity, _gcds(lhs.constancy, rhs.contiguity)))
    divisibility = rhs.in_runs(contiguity).divisibility
    first = lhs.in_runs(contiguity).divisibility
    if isinstance(op, tt.AddPtr):
        width = byte_width(_pointee(op.ptr.type))
        divisibility = tuple(min(HIGHEST, number * width) for number in divisibility)
        first = _in_bytes(lhs, contiguity, width)
    return AxisInfo(contiguity, _gcds(first, divisibility), _gcds(lhs.constancy, rhs.constancy))


def _in_bytes(pointers: AxisInfo, contiguity: Numbers, width: int) -> Numbers:
    """The bytes of which the first pointers of shorter runs are multiples."""
    return tuple(
        d if old == 1 or new % old == 0 else gcd(d, new * width)
        for d, old, new in zip(pointers.divisibility, pointers.contiguity, contiguity, strict=True)
    )


def _product(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    folded = _folded(op, infos, lambda a, b: a * b)
    if folded is not None:
        return folded
    lhs, rhs = infos
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if one.number == 1:
            return other
    divisibility = tuple(
        min(HIGHEST, a * b) for a, b in zip(_of_every_element(lhs), _of_every_element(rhs), strict=True)
    )
    return AxisInfo((1,) * lhs.rank, divisibility, _gcds(lhs.constancy, rhs.constancy))


def _of_every_element(info: AxisInfo) -> Numbers:
    """What every element is a multiple of, not only the first of each group."""
    return tuple(d if c == 1 else 1 for d, c in zip(info.divisibility, info.contiguity, strict=True))


def _shifted_left(op: arith.ShLI, infos: Sequence[AxisInfo]) -> AxisInfo:
    amount = infos[1].number
    if amount is None or not 0 <= amount < 62:
        return _same_constancy(op, infos)
    factor = known_number(1 << amount, op.result.type)
    return _product(op, [replace(infos[0], number=None), factor])


def _quotient(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """Groups of `divisor` neighbours that start at a multiple of it have one quotient, if they are not negative."""
    lhs, rhs = infos
    if rhs.number == 1:
        return lhs
    info = _same_constancy(op, infos)
    if rhs.number is None or rhs.number <= 0 or not (isinstance(op, arith.DivUI) or is_natural(op.operands[0])):
        return info
    runs = tuple(gcd(c, d, divisor_of(rhs.number)) for c, d in zip(lhs.contiguity, lhs.divisibility, strict=True))
    exact = tuple(
        d // rhs.number if c == 1 and d % rhs.number == 0 else 1
        for c, d in zip(lhs.contiguity, lhs.divisibility, strict=True)
    )
    return replace(info, constancy=tuple(map(max, info.constancy, runs)), divisibility=exact)


def _remainder(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """A remainder goes on by ones within groups that do not reach the next multiple of the divisor."""
    lhs, rhs = infos
    divisor = rhs.divisibility if rhs.number is None else (divisor_of(rhs.number),) * rhs.rank
    uniform = _gcds(rhs.constancy, lhs.contiguity)
    contiguity = tuple(gcd(u, d, r) for u, d, r in zip(uniform, lhs.divisibility, divisor, strict=True))
    info = _same_constancy(op, infos)
    return replace(info, contiguity=contiguity, divisibility=_gcds(lhs.in_runs(contiguity).divisibility, divisor))


def _comparison(op: arith.CmpI, infos: Sequence[AxisInfo]) -> AxisInfo:
    """A range compared with a bound changes sides only at multiples of what divides both."""
    lhs, rhs = infos
    info = _same_constancy(op, infos)
    constancy = list(info.constancy)
    for dim in range(info.rank):
        for line, bound, predicates in (
            (lhs, rhs, ("slt", "sge", "ult", "uge")),
            (rhs, lhs, ("sgt", "sle", "ugt", "ule")),
        ):
            if op.predicate in predicates:
                run = gcd(line.contiguity[dim], bound.constancy[dim])
                constancy[dim] = max(constancy[dim], gcd(run, line.divisibility[dim], bound.divisibility[dim]))
    return replace(info, constancy=tuple(constancy))


def _choice(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """One of two values by a condition or by size."""
    *condition, a, b = infos
    joined = replace(a.joined(b), number=None)
    if condition and shape_of(op.operands[0].type):
        runs = condition[0].constancy
        joined = joined.in_runs(_gcds(joined.contiguity, runs))
        joined = replace(joined, constancy=_gcds(joined.constancy, runs))
    return joined


def _bound(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """The larger or smaller of two."""
    a, b = infos
    return AxisInfo((1,) * a.rank, _gcds(_of_every_element(a), _of_every_element(b)), _gcds(a.constancy, b.constancy))


def is_natural(value: Value, known: dict[Value, bool] | None = None) -> bool:
    """Whether an integer cannot be negative, as far as the operations that make it show: sums and products of what is
    not negative do not wrap. `known` remembers answers.
    """
    known = {} if known is None else known
    if value not in known:
        known[value] = False  # What depends on itself shows nothing.
        known[value] = _is_natural(value, known)
    return known[value]


def _is_natural(value: Value, known: dict[Value, bool]) -> bool:
    op = value.defining_op
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op
        return isinstance(loop, scf.For) and value.index == 0 and is_natural(loop.lower, known)
    if isinstance(op, tt.MakeRange):
        return op.start >= 0
    if isinstance(op, arith.Constant):
        number = splat_of(value)
        return number is not None and number >= 0
    if isinstance(op, tt.GetProgramId | tt.GetNumPrograms):
        return True
    return isinstance(op, _NATURAL) and all(is_natural(operand, known) for operand in op.operands)


_NATURAL = (
    tt.Splat,
    tt.ExpandDims,
    tt.Broadcast,
    tt.Trans,
    ttg.ConvertLayout,
    arith.AddI,
    arith.MulI,
    arith.DivSI,
    arith.RemSI,
    arith.ExtSI,
    arith.MaxSI,
    arith.MinSI,
)
_RULES: dict[type[Operation], Callable[[Any, Sequence[AxisInfo]], AxisInfo]] = {
    arith.Constant: _constant,
    tt.MakeRange: _make_range,
    tt.Splat: _splat,
    tt.ExpandDims: _expand_dims,
    tt.Broadcast: _broadcast,
    tt.Trans: _trans,
    ttg.ConvertLayout: _same,
    arith.ExtSI: _same,
    arith.ExtUI: _resized,
    arith.TruncI: _resized,
    arith.IndexCast: _same,
    tt.Bitcast: _bitcast,
    arith.AddI: _sum,
    arith.SubI: _sum,
    tt.AddPtr: _sum,
    arith.MulI: _product,
    arith.ShLI: _shifted_left,
    arith.DivSI: _quotient,
    arith.DivUI: _quotient,
    arith.RemSI: _remainder,
    arith.RemUI: _remainder,
    arith.CmpI: _comparison,
    arith.Select: _choice,
    arith.MaxSI: _bound,
    arith.MinSI: _bound,
    arith.MaxUI: _bound,
    arith.MinUI: _bound,
}
