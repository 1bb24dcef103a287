"""Constants as Python numbers: reading what `arith.constant` defines and making the attribute for a result.

Level: all. A constant is an `IntegerAttr`, a `FloatAttr` or a `DenseAttr`; its elements are Python ints (signed, i1
as 0 or 1) or floats that are exact in the element type. Guarantees: `compute` returns bit-exact results or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mltriton.ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.floats import convert_float, round_float
from mltriton.ir.operation import Value
from mltriton.ir.types import FloatType, IndexType, IntegerType, TensorType, Type, element_type

Number = int | float
Constant = IntegerAttr | FloatAttr | DenseAttr
MAX_ELEMENTS = 1024  # constants with more different elements are not computed with


def constant_of(value: Value) -> Constant | None:
    """The constant that a value is, if it is one."""
    op = value.defining_op
    if op is None or op.name != "arith.constant":
        return None
    found = op.attributes.get("value")
    return found if isinstance(found, IntegerAttr | FloatAttr | DenseAttr) else None


def elements_of(constant: Constant) -> tuple[Number, ...]:
    """The elements; one for a scalar or a splat."""
    return constant.values if isinstance(constant, DenseAttr) else (constant.value,)


def splat_of(value: Value) -> Number | None:
    """The number that every element of a constant value is."""
    constant = constant_of(value)
    elements = elements_of(constant) if constant is not None else ()
    return elements[0] if len(elements) == 1 else None


def make_constant(type: Type, elements: tuple[Number, ...]) -> Constant | None:
    """The constant of a type with the given elements (one for a splat), wrapped or rounded to the element type."""
    element = element_type(type)
    if isinstance(element, IntegerType | IndexType):
        integers = tuple(wrap(int(number), element) for number in elements)
        if isinstance(type, TensorType):
            return DenseAttr(_splat_if_equal(integers), type)
        return IntegerAttr(integers[0], type)
    if isinstance(element, FloatType):
        floats = tuple(round_float(float(number), element) for number in elements)
        if any(map(math.isnan, floats)):
            return None  # which NaN it is differs between machines
        if isinstance(type, TensorType):
            return DenseAttr(_splat_if_equal(floats), type)
        return FloatAttr(floats[0], type)
    return None


def splat_constant(type: Type, number: Number) -> Constant:
    """The constant of a type all of whose elements are `number`, which is one of the element type already; a NaN that
    is written down stays one.
    """
    number = float(number) if isinstance(element_type(type), FloatType) else int(number)
    if isinstance(type, TensorType):
        return DenseAttr((number,), type)
    return FloatAttr(number, type) if isinstance(number, float) else IntegerAttr(number, type)


def _splat_if_equal(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    return numbers[:1] if all(repr(number) == repr(numbers[0]) for number in numbers) else numbers


def reshaped(constant: Constant | None, type: Type) -> Constant | None:
    """A splat or scalar constant as a splat of a tensor type."""
    if constant is None or not isinstance(type, TensorType):
        return None
    elements = elements_of(constant)
    return DenseAttr(elements, type) if len(elements) == 1 else None


def width_of(type: Type) -> int:
    """Bits of an integer element type; `index` has 64."""
    element = element_type(type)
    return element.width if isinstance(element, IntegerType) else 64


def is_narrow(type: Type) -> bool:
    """Whether integers have fewer bits than indices, so that sums and products of them wrap wherever they are used."""
    element = element_type(type)
    return isinstance(element, IntegerType) and element.width < 32


def wrap(value: int, type: Type) -> int:
    """`value` in the signed range of an integer type (0 or 1 for i1)."""
    width = width_of(type)
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, type: Type) -> int:
    """A signed integer read as unsigned."""
    return value & ((1 << width_of(type)) - 1)


def compute(
    function: Callable[..., Number | None],
    values: list[Value],
    type: Type,
    rounded: Callable[[float, FloatType], float] = convert_float,
) -> Attribute | None:
    """`function` applied to the elements of constant values, as a constant of `type`; None where it is not known.

    `rounded` makes a float one of the type: as operations convert numbers, or `round_float`, which keeps infinity.
    """
    constants = [constant_of(value) for value in values]
    columns = [elements_of(constant) for constant in constants if constant is not None]
    count = max(map(len, columns), default=0)
    if len(columns) != len(values) or count > MAX_ELEMENTS:
        return None
    rows = zip(*(column * count if len(column) == 1 else column for column in columns), strict=True)
    try:
        results = tuple(function(*row) for row in rows)
    except (ArithmeticError, ValueError):
        return None
    element = element_type(type)
    numbers = tuple(
        rounded(float(result), element) if isinstance(element, FloatType) else result
        for result in results
        if result is not None
    )
    return make_constant(type, numbers) if len(numbers) == count else None
