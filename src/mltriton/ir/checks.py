"""Rules that many operations share, for their `checks` and `verify`.

Level: all. Every function takes the operation and what it looks at, and raises a `VerificationError` that says what
was expected and found; none returns anything but what it has made sure of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import (
    I1,
    I8,
    FloatType,
    IndexType,
    IntegerType,
    MemDescType,
    PointerType,
    TensorDescType,
    TensorType,
    Type,
    element_type,
    like,
)


def require(op: Operation, holds: bool, message: str, expected: object = None, found: object = None) -> None:
    """Reject `op` unless `holds`."""
    if not holds:
        reject(op, message, expected=_text(expected), found=_text(found))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def require_bytes(op: Operation, **flags: tuple[bool, Type]) -> None:
    """Each flag that is set is of an operand whose elements, given with it, are integers of 8 bits."""
    for name, (is_set, element) in flags.items():
        require(op, not is_set or element is I8, f"{name} is for integers of 8 bits", "i8", element)


def require_attributes(op: Operation, *names: str) -> None:
    """Attributes without a default are given."""
    for name in names:
        if name not in op.attributes:
            reject(op, f"attribute {name} is not given")


def require_type(op: Operation, what: str, found: Type, expected: Type) -> None:
    """Two types are the same."""
    if found is not expected:
        reject(op, f"{what} has another type", expected=str(expected), found=str(found))


def require_types(op: Operation, what: str, found: Sequence[Type], expected: Sequence[Type]) -> None:
    """Two lists of types are the same."""
    if list(found) != list(expected):
        reject(op, f"{what} do not fit", expected=_list(expected), found=_list(found))


def _list(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def types_of(values: Sequence[Value]) -> list[Type]:
    """The types of values."""
    return [value.type for value in values]


def tensor(op: Operation, what: str, value: Value) -> TensorType:
    """The value is a tensor."""
    if not isinstance(value.type, TensorType):
        reject(op, f"{what} is no block", expected="tensor<...>", found=str(value.type))
    return value.type


def pointer(op: Operation, what: str, value: Value) -> PointerType:
    """The value is a pointer."""
    if not isinstance(value.type, PointerType):
        reject(op, f"{what} is no pointer", expected="!tt.ptr<...>", found=str(value.type))
    return value.type


def descriptor(op: Operation, value: Value) -> TensorType:
    """The value is a tensor descriptor; its block."""
    if not isinstance(value.type, TensorDescType):
        reject(op, "the descriptor is none", expected="!tt.tensordesc<...>", found=str(value.type))
    return value.type.block


def memory(op: Operation, what: str, value: Value) -> MemDescType:
    """The value is a block in shared memory."""
    if not isinstance(value.type, MemDescType):
        reject(op, f"{what} is no block in shared memory", expected="!ttg.memdesc<...>", found=str(value.type))
    return value.type


def axis(op: Operation, value: int | None, rank: int) -> int:
    """An axis is given and lies in 0 to rank - 1."""
    if value is None or not 0 <= value < rank:
        reject(op, "the axis is out of range", expected=f"0 to {rank - 1}", found=str(value))
    return value


def permutation(op: Operation, order: Sequence[int], rank: int) -> None:
    """An order names every dimension once."""
    require(op, sorted(order) == list(range(rank)), "order is no permutation", f"of {rank} dimensions", list(order))


def scalars(op: Operation, what: str, values: Sequence[Value], type: Type, count: int) -> None:
    """There are `count` values, all of scalar type `type`."""
    require_types(op, what, types_of(values), [type] * count)


# Checks: functions of the operation alone.


def one_type(op: Operation) -> None:
    """All operands and results have one type."""
    type = op.results[0].type
    for value in op.operands:
        if value.type is not type:
            reject(op, "operands and result have one type", expected=str(type), found=str(value.type))


def _elements(op: Operation, kinds: type | tuple[type, ...], what: str) -> None:
    for value in (*op.operands, *op.results):
        if not isinstance(element_type(value.type), kinds):
            reject(op, f"works on {what}", expected=what, found=str(value.type))


def on_integers(op: Operation) -> None:
    """Operands and results are integers (or `index`)."""
    _elements(op, (IntegerType, IndexType), "integers")


def on_floats(op: Operation) -> None:
    """Operands and results are floats."""
    _elements(op, FloatType, "floats")


def gives_booleans(op: Operation) -> None:
    """The operands have one type; the result is i1 in their shape."""
    left, right = op.operands[-2:]
    require_type(op, "the right operand", right.type, left.type)
    require_type(op, "the result", op.results[0].type, like(left.type, I1))


def between(source: type | tuple[type, ...], target: type | tuple[type, ...]) -> Callable[[Any], None]:
    """A check of conversions: the kinds of the source's and the result's elements."""

    def check(op: Operation) -> None:
        old, new = op.operands[0].type, op.results[0].type
        if not isinstance(element_type(old), source) or not isinstance(element_type(new), target):
            reject(op, "does not convert these types", found=f"{old} to {new}")
        _same_kind(op, old, new)

    return check


def _same_kind(op: Operation, old: Type, new: Type) -> None:
    if isinstance(old, TensorType) != isinstance(new, TensorType):
        reject(op, "converts scalars to scalars and blocks to blocks", found=f"{old} to {new}")


def widens(op: Operation) -> None:
    """The result's elements are wider than the source's."""
    old, new = _widths(op)
    require(op, new > old, "the result must be wider", f"more than {old} bits", op.results[0].type)


def narrows(op: Operation) -> None:
    """The result's elements are narrower than the source's."""
    old, new = _widths(op)
    require(op, new < old, "the result must be narrower", f"fewer than {old} bits", op.results[0].type)


def keeps_width(op: Operation) -> None:
    """The result's elements are as wide as the source's."""
    old, new = _widths(op)
    require(op, new == old, "the result must be as wide", f"{old} bits", op.results[0].type)
    _same_kind(op, op.operands[0].type, op.results[0].type)


def _widths(op: Operation) -> tuple[int, int]:
    return _width(op, op.operands[0].type), _width(op, op.results[0].type)


def _width(op: Operation, type: Type) -> int:
    element = element_type(type)
    if isinstance(element, IntegerType | FloatType):
        return element.width
    if not isinstance(element, PointerType | IndexType):
        reject(op, "does not convert this type", found=str(type))
    return 64
