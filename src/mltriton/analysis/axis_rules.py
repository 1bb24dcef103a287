"""What axis info each operation gives its result, from that of its operands.

Level: tt to warp. A rule for each operation; one without a rule tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd
from typing import Any, cast

from mltriton.analysis.natural_numbers import is_natural
from mltriton.analysis.regularity import HIGHEST, AxisInfo, Numbers, divisor_of, gcds, known_number, unknown
from mltriton.dialects import arith, tt, ttg
from mltriton.ir.attributes import Attribute
from mltriton.ir.constants import is_narrow, splat_of, width_of
from mltriton.ir.operation import Operation
from mltriton.ir.promises import DIVISIBILITY, promises_in
from mltriton.ir.types import PointerType, Type, byte_width, element_type, pointee, shape_of


def promised(info: AxisInfo, attributes: dict[str, Attribute], type: Type) -> AxisInfo:
    """With what the program promises of a value of this type: numbers for the last dimensions."""
    for name, numbers in promises_in(attributes).items():
        if len(numbers) <= info.rank:
            field = name.removeprefix("tt.")
            old = cast(Numbers, getattr(info, field))
            first = len(old) - len(numbers)
            both = (*old[:first], *map(max, old[first:], numbers))
            info = replace(info, **{field: _of_groups(info, old, both, type) if name == DIVISIBILITY else both})
    return info


def _of_groups(info: AxisInfo, old: Numbers, both: Numbers, type: Type) -> Numbers:
    """Programs promise for every dimension what holds of the first elements of groups along one: along the others
    neighbours within those groups are elements as well.
    """
    longest = max(info.contiguity)
    if longest == 1 or info.rank == 1:
        return both
    element = element_type(type)
    unit = byte_width(element.pointee) if isinstance(element, PointerType) else 1
    along = info.contiguity.index(longest)
    return tuple(
        number if dim == along else max(known, gcd(number, unit))
        for dim, (known, number) in enumerate(zip(old, both, strict=True))
    )


def same_constancy(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """What is equal before an element-wise operation is equal after it."""
    info = unknown(op.results[0].type)
    blocks = [i for i, value in zip(infos, op.operands, strict=True) if shape_of(value.type)]
    if not op.elementwise or not blocks or any(block.rank != info.rank for block in blocks):
        return info
    constancy = blocks[0].constancy
    for block in blocks[1:]:
        constancy = gcds(constancy, block.constancy)
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
    return _wrapped(infos[0], op.results[0].type)


def _wrapped(info: AxisInfo, type: Type) -> AxisInfo:
    """Modulo a power of two: runs that start at a multiple of their length, and are no longer than one sign, stay."""
    powers = tuple(number & -number for number in info.divisibility)
    runs = tuple(gcd(c, d, 1 << width_of(type) - 1) for c, d in zip(info.contiguity, powers, strict=True))
    return replace(replace(info, divisibility=powers).in_runs(runs), number=None)


def _bitcast(op: tt.Bitcast, infos: Sequence[AxisInfo]) -> AxisInfo:
    old, new = element_type(op.source.type), element_type(op.result.type)
    are_pointers = isinstance(old, PointerType) and isinstance(new, PointerType)
    if are_pointers and byte_width(pointee(old)) == byte_width(pointee(new)):
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
    contiguity = gcds(lhs.contiguity, rhs.constancy)
    if not is_difference:
        contiguity = tuple(map(max, contiguity, gcds(lhs.constancy, rhs.contiguity)))
    divisibility = rhs.in_runs(contiguity).divisibility
    first = lhs.in_runs(contiguity).divisibility
    if isinstance(op, tt.AddPtr):
        width = byte_width(pointee(op.ptr.type))
        divisibility = tuple(min(HIGHEST, number * width) for number in divisibility)
        first = _in_bytes(lhs, contiguity, width)
    made = AxisInfo(contiguity, gcds(first, divisibility), gcds(lhs.constancy, rhs.constancy))
    type = op.results[0].type
    return _wrapped(made, type) if is_narrow(type) else made


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
    return AxisInfo((1,) * lhs.rank, divisibility, gcds(lhs.constancy, rhs.constancy))


def _of_every_element(info: AxisInfo) -> Numbers:
    """What every element is a multiple of, not only the first of each group."""
    return tuple(d if c == 1 else 1 for d, c in zip(info.divisibility, info.contiguity, strict=True))


def _shifted_left(op: arith.ShLI, infos: Sequence[AxisInfo]) -> AxisInfo:
    amount = infos[1].number
    if amount is None or not 0 <= amount < 62:
        return same_constancy(op, infos)
    factor = known_number(1 << amount, op.result.type)
    return _product(op, [replace(infos[0], number=None), factor])


def _quotient(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """Groups of `divisor` neighbours that start at a multiple of it have one quotient, if they are not negative."""
    lhs, rhs = infos
    if rhs.number == 1:
        return lhs
    info = same_constancy(op, infos)
    if rhs.number is None or rhs.number <= 0 or not (isinstance(op, arith.DivUI) or is_natural(op.operands[0])):
        return info
    runs = tuple(gcd(c, d, divisor_of(rhs.number)) for c, d in zip(lhs.contiguity, lhs.divisibility, strict=True))
    exact = tuple(
        d // rhs.number if c == 1 and d % rhs.number == 0 else 1
        for c, d in zip(lhs.contiguity, lhs.divisibility, strict=True)
    )
    return replace(info, constancy=tuple(map(max, info.constancy, runs)), divisibility=exact)


def _remainder(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """A remainder goes on by ones within groups that do not reach the next multiple of the divisor, if it is of what
    is not negative: below 0 each multiple of the divisor is the end of a group, not its beginning.
    """
    lhs, rhs = infos
    divisor = rhs.divisibility if rhs.number is None else (divisor_of(rhs.number),) * rhs.rank
    uniform = gcds(rhs.constancy, lhs.contiguity)
    contiguity = tuple(gcd(u, d, r) for u, d, r in zip(uniform, lhs.divisibility, divisor, strict=True))
    if isinstance(op, arith.RemSI) and not is_natural(op.lhs):
        contiguity = (1,) * lhs.rank
    info = same_constancy(op, infos)
    return replace(info, contiguity=contiguity, divisibility=gcds(lhs.in_runs(contiguity).divisibility, divisor))


def _comparison(op: arith.CmpI, infos: Sequence[AxisInfo]) -> AxisInfo:
    """A range compared with a bound changes sides only at multiples of what divides both."""
    lhs, rhs = infos
    info = same_constancy(op, infos)
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
        joined = joined.in_runs(gcds(joined.contiguity, runs))
        joined = replace(joined, constancy=gcds(joined.constancy, runs))
    return joined


def _bound(op: Operation, infos: Sequence[AxisInfo]) -> AxisInfo:
    """The larger or smaller of two."""
    a, b = infos
    return AxisInfo((1,) * a.rank, gcds(_of_every_element(a), _of_every_element(b)), gcds(a.constancy, b.constancy))


RULES: dict[type[Operation], Callable[[Any, Sequence[AxisInfo]], AxisInfo]] = {
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
