"""Which element of its operand an operation that moves elements reads.

Level: warp to intrinsic. A reshape is arithmetic on forms; of others the operation says it (`source_elements`).
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, cast

from mltriton.dialects import arith, tt
from mltriton.ir.types import I32, TensorType
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index, constant_index

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator


def reshaped_index(e: Evaluator, op: tt.Reshape, index: Index, lanes: int) -> Index:
    """The operand's index of an element of a reshape."""
    source, result = (cast(TensorType, value.type).shape for value in (op.source, op.result))
    ((_, plain),) = op.source_elements(index, constant_index(0), None)
    if None not in plain:
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
