"""Comparison, logic and choice, element by element.

Takes tensors and Python scalars, promoted and broadcast as in arithmetic; comparisons give int1. `PREDICATES` is the
table. Only `!=` is true on NaN.
"""

from __future__ import annotations

import warnings
from functools import partial

from mltriton.dialects import arith
from mltriton.errors import TypeMismatchError, calling_level
from mltriton.language import types
from mltriton.language.arithmetic import bitwise_and, bitwise_or, invert
from mltriton.language.building import builtin, current
from mltriton.language.casting import cast
from mltriton.language.semantic import as_operand, broadcast, broadcast_all, promoted, to_tensor
from mltriton.language.tensor import tensor

__all__ = ["where"]

# Predicates of comparisons: signed, unsigned, float. Only != is true on NaN.
PREDICATES = {
    "<": ("slt", "ult", "olt"),
    "<=": ("sle", "ule", "ole"),
    ">": ("sgt", "ugt", "ogt"),
    ">=": ("sge", "uge", "oge"),
    "==": ("eq", "eq", "oeq"),
    "!=": ("ne", "ne", "une"),
}


def compare(symbol: str, x: object, y: object) -> tensor:
    """A comparison by its Python symbol, giving int1."""
    a, b = promoted(x, y)
    signed, unsigned, floating = PREDICATES[symbol]
    if a.dtype.is_floating():
        operation, predicate = arith.CmpF, floating
    else:
        operation, predicate = arith.CmpI, signed if a.dtype.is_int_signed() else unsigned
    return tensor(current().emit(operation, a.handle, b.handle, predicate=predicate), a.type.with_element(types.int1))


less_than, less_equal = partial(compare, "<"), partial(compare, "<=")
greater_than, greater_equal = partial(compare, ">"), partial(compare, ">=")
equal, not_equal = partial(compare, "=="), partial(compare, "!=")


def _truth(value: object, word: str) -> tensor:
    made = to_tensor(value)
    if not made.dtype.is_bool():
        raise TypeMismatchError(
            f"`{word}` needs booleans", expected="int1", found=made.type.name, hint="compare first: (x != 0)"
        )
    return made


def logical_and(x: object, y: object) -> tensor:
    """`x and y` of booleans; both sides are evaluated."""
    return bitwise_and(_truth(x, "and"), _truth(y, "and"))


def logical_or(x: object, y: object) -> tensor:
    """`x or y` of booleans; both sides are evaluated."""
    return bitwise_or(_truth(x, "or"), _truth(y, "or"))


def logical_not(x: object) -> tensor:
    """`not x`: true where x is false or zero."""
    return invert(cast(x, types.int1))


@builtin
def where(condition: object, x: object, y: object) -> tensor:
    """x where the condition is true, y elsewhere; the three broadcast. Both are evaluated: guard loads with masks."""
    chosen = to_tensor(condition)
    if chosen.dtype != types.int1:
        text = f"tl.where with a non-boolean condition is deprecated in Triton; the condition is {chosen.dtype}"
        warnings.warn(text, stacklevel=calling_level())
    chosen = cast(chosen, types.int1)
    a, b = _choices(x, y)
    if chosen.type.is_block():  # a scalar condition chooses whole blocks
        chosen, a, b = broadcast_all(chosen, a, b)
    return tensor(current().emit(arith.Select, chosen.handle, a.handle, b.handle), a.type)


def _choices(x: object, y: object) -> tuple[tensor, tensor]:
    a, b = as_operand(x), as_operand(y)
    if not any(isinstance(item, tensor) and item.dtype.is_ptr() for item in (a, b)):
        return promoted(a, b)
    left, right = to_tensor(a), to_tensor(b)
    if left.dtype != right.dtype:
        raise TypeMismatchError(
            "a choice between a pointer and something else", expected=left.dtype.name, found=right.dtype.name
        )
    return broadcast(left, right)
