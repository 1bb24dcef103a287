"""Which element of its operand an operation that moves elements reads.

Level: warp to intrinsic. `operand_index` maps the coordinates of a result to those of its operand for operations that
drop, repeat or permute dimensions; coordinates may be forms (evaluation) or numbers of loop dimensions (analysis). A
reshape is arithmetic on forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING, TypeVar, cast

from mltriton.dialects import arith, tt
from mltriton.ir.operation import Operation
from mltriton.ir.types import I32, TensorType
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, constant_index

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator

PlaceT = TypeVar("PlaceT")


def operand_index(op: Operation, index: Sequence[PlaceT], first: PlaceT) -> tuple[PlaceT, ...]:
    """Where the operand's element stands; `first` is the coordinate of the only element of a dimension."""
    if isinstance(op, tt.ExpandDims):
        return (*index[: op.axis], *index[op.axis + 1 :])
    if isinstance(op, tt.Broadcast):
        shape = cast(TensorType, op.source.type).shape
        return tuple(first if extent == 1 else coordinate for extent, coordinate in zip(shape, index, strict=True))
    if isinstance(op, tt.Trans):
        coordinates = [first] * len(index)
        for coordinate, dim in zip(index, op.order, strict=True):
            coordinates[dim] = coordinate
        return tuple(coordinates)
    return tuple(index)


def unit_reshape(
    source: tuple[int, ...], result: tuple[int, ...], index: Sequence[PlaceT], first: PlaceT
) -> tuple[PlaceT, ...] | None:
    """The operand's index for a reshape that only adds or drops dimensions of size 1; None for any other."""
    if [extent for extent in source if extent != 1] != [extent for extent in result if extent != 1]:
        return None
    rest = iter([coordinate for coordinate, extent in zip(index, result, strict=True) if extent != 1])
    return tuple(first if extent == 1 else next(rest) for extent in source)


def reshaped_index(e: Evaluator, op: tt.Reshape, index: Index, lanes: int) -> Index:
    """The operand's index of an element of a reshape."""
    source, result = (cast(TensorType, value.type).shape for value in (op.source, op.result))
    plain = unit_reshape(source, result, index, constant_index(0))
    if plain is not None:
        return plain
    number: Form = constant_index(0)
    for coordinate, extent in zip(index, result, strict=True):
        scaled = combine(e, arith.MulI, [number, constant_index(extent)], I32, lanes, {})
        number = combine(e, arith.AddI, [scaled, coordinate], I32, lanes, {})
    coordinates: list[Form] = []
    for extent in reversed(source[1:]):
        number, coordinate = divide(e, number, extent, lanes)
        coordinates.append(coordinate)
    return (number, *reversed(coordinates))


def divide(e: Evaluator, number: Form, divisor: int, lanes: int) -> tuple[Form, Form]:
    """Quotient and remainder of a non-negative number; affine where the lanes cross no multiple of the divisor."""
    if divisor == 1:
        return number, constant_index(0)
    if isinstance(number, Affine) and isinstance(number.stride, int):
        multiple = 0 if number.base is None else e.emitter.multiple_of(number.base)
        span = number.stride * (max(lanes, 1) - 1)
        if multiple % divisor == 0:
            low = number.const % divisor
            if low + span < divisor:
                start = Affine(number.type, number.base, number.const - low, 0)
                return _quotient(e, start, divisor, 1), Affine(number.type, None, low, number.stride)
        elif number.stride and divisor % multiple == 0 and number.const % multiple + span < multiple:
            start = Affine(number.type, number.base, number.const, 0)
            quotient, remainder = _quotient(e, start, divisor, 1), _remainder(e, start, divisor, 1)
            lane = Affine(number.type, None, 0, number.stride)
            return quotient, combine(e, arith.AddI, [remainder, lane], I32, lanes, {})
    return _quotient(e, number, divisor, lanes), _remainder(e, number, divisor, lanes)


def divided(e: Evaluator, number: Form, by: Form, lanes: int) -> tuple[Form, Form] | None:
    """Quotient and remainder of lanes that go up and are not negative; None where they may cross a multiple of the
    divisor, or that is not known.
    """
    if not (isinstance(number, Affine) and isinstance(by, Affine) and isinstance(number.stride, int)):
        return None
    if lanes < 2 or number.stride <= 0 or by.base is not None or by.stride != 0 or by.const < 2:
        return None
    divisor = by.const
    run = divisor if number.base is None else gcd(e.emitter.multiple_of(number.base), divisor)
    if number.const % run + number.stride * (lanes - 1) >= run:
        return None
    if number.base is None:
        whole, rest = divmod(number.const, divisor)
        return Affine(number.type, None, whole, 0), Affine(number.type, None, rest, number.stride)
    operands = (e.arithmetic.scalar(number), e.emitter.integer(divisor, number.type))
    quotient, remainder = (e.emitter.pure(cls, operands, number.type) for cls in (arith.DivSI, arith.RemSI))
    return e.arithmetic.wrap(quotient), Affine(number.type, remainder, 0, number.stride)


def _quotient(e: Evaluator, number: Form, divisor: int, lanes: int) -> Form:
    if isinstance(number, Affine) and number.base is None and number.stride == 0:
        return constant_index(number.const // divisor)
    shift = divisor.bit_length() - 1
    if divisor == 1 << shift:
        return combine(e, arith.ShRUI, [number, constant_index(shift)], I32, lanes, {})
    return combine(e, arith.DivSI, [number, constant_index(divisor)], I32, lanes, {})


def _remainder(e: Evaluator, number: Form, divisor: int, lanes: int) -> Form:
    if divisor & (divisor - 1) == 0:
        return combine(e, arith.AndI, [number, constant_index(divisor - 1)], I32, lanes, {})
    return combine(e, arith.RemSI, [number, constant_index(divisor)], I32, lanes, {})
