"""Promises: what a program says of its values that their operations do not show.

Level: all. An attribute of the operation that makes a value, of the loop whose counter it is, or of a parameter, with
upstream's names: numbers for the value's last dimensions (`analysis/axis_info.py` says what they mean). Guarantees of
the functions here: an operation that takes another's place promises what that one did, and the operation of a part of
a block no more than holds of the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import cast

from mltriton.ir.attributes import Attribute, DenseArrayAttr, DenseAttr, IntegerAttr
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I32, PointerType, TensorType, Type, byte_width, element_type, shape_of

DIVISIBILITY = "tt.divisibility"
PROMISES = ("tt.contiguity", DIVISIBILITY, "tt.constancy")
Numbers = tuple[int, ...]


def promises_in(attributes: Mapping[str, Attribute]) -> dict[str, Numbers]:
    """What attributes promise, by name."""
    if not attributes:
        return {}
    return {name: numbers for name in PROMISES if (numbers := _numbers(attributes.get(name)))}


def _numbers(attribute: Attribute | None) -> Numbers:
    if isinstance(attribute, IntegerAttr):
        return (attribute.value,)
    values = attribute.values if isinstance(attribute, DenseArrayAttr | DenseAttr) else ()
    return tuple(value for value in values if isinstance(value, int))


def promise(op: Operation, promises: Mapping[str, Sequence[int]]) -> None:
    """Let an operation promise this of its result, and what it did before."""
    known = promises_in(op.attributes)
    for name, numbers in promises.items():
        old = known.get(name, ())
        both = tuple(map(max, old, numbers)) if len(old) == len(numbers) else tuple(numbers)
        op.attributes[name] = DenseAttr(both, TensorType((len(both),), I32))


def can_promise(value: Value) -> bool:
    """Whether the operation that makes a value can say so of it."""
    op = value.defining_op
    return op is not None and len(op.results) == 1 and not op.regions


def attach(value: Value, promises: Mapping[str, Numbers], deferred: dict[Value, dict[str, Numbers]]) -> None:
    """Say of a value what is promised of it, at once or, where no operation of its own makes it, in `deferred`."""
    if can_promise(value):
        promise(cast(Operation, value.defining_op), promises)
    else:
        deferred.setdefault(value, {}).update(promises)


def takes_over(value: Value, op: Operation) -> bool:
    """Let `value`, which stands for the result of `op` from here on, be promised what that is; whether it can be."""
    promises = {} if op.regions else promises_in(op.attributes)
    if promises and (maker := value.defining_op) is not None and can_promise(value):
        promise(maker, promises)
        return True
    return not promises


def of_moved(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """The attributes of an operation whose result is now that of before and a number more, the same for all."""
    return {name: value for name, value in attributes.items() if name != DIVISIBILITY}


def of_part(op: Operation, types: Sequence[Type]) -> dict[str, Attribute]:
    """The attributes of an operation that makes an aligned part of the block that `op` makes: a part may begin within a
    group of neighbours, as many elements from its start as the part has.
    """
    numbers = None if op.regions or not types else promises_in(op.attributes).get(DIVISIBILITY)
    if numbers is None:
        return op.attributes
    whole, part = shape_of(op.results[0].type), shape_of(types[0])
    if whole == part or len(numbers) != len(part):
        return op.attributes
    element = element_type(types[0])
    width = byte_width(element.pointee) if isinstance(element, PointerType) else 1
    sizes = [n if a == b else gcd(n, b * width) for n, a, b in zip(numbers, whole, part, strict=True)]
    return op.attributes | {DIVISIBILITY: DenseAttr(tuple(sizes), TensorType((len(sizes),), I32))}
