"""Values while a kernel is compiled: what Python objects become, and how they are named in messages.

Level: above `tt`. A value is a tensor or descriptor (known when the kernel runs), a `constexpr`, a tuple of values, or
an object that only the compiler sees: a dtype, a function, a module, a type.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeGuard, cast

from mltriton.language.constants import constexpr, tuple_type, unwrap

NUMBERS = (bool, int, float)
_CONSTANTS = (bool, int, float, str, type(None), type(...))
CONSTANTS = (*NUMBERS, str, type(None), tuple)  # what has a type by upstream's `constexpr_type` and `tuple_type`


def wrap(value: Any) -> Any:
    """A Python object as a value: numbers, strings and None become constants, lists and tuples tuples of values."""
    if isinstance(value, _CONSTANTS):
        return constexpr(value)
    inner: Any = value.value if isinstance(value, constexpr) else value
    if isinstance(inner, tuple | list):
        return rebuilt(cast(Any, inner), [wrap(item) for item in cast("Sequence[Any]", inner)])
    return value


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Whether a value is a tuple of values."""
    return isinstance(value, tuple)


def rebuilt(like: Any, items: Sequence[Any]) -> tuple[Any, ...]:
    """A tuple of `items`, of the named kind of `like` where that has one."""
    return type(like)(*items) if hasattr(like, "_fields") else tuple(items)


def is_runtime(value: Any) -> bool:
    """Whether a value, or a part of a tuple, is known only when the kernel runs."""
    if is_tuple(value):
        return any(is_runtime(item) for item in value)
    return getattr(value, "is_runtime_value", False) is True


def known_truth(value: Any) -> bool | None:
    """Whether a value is true, None where only the kernel knows: a tuple is if it has parts, whatever they are."""
    if is_tuple(value):
        return len(value) > 0
    return None if is_runtime(value) else bool(unwrap(value))


def type_of(value: Any) -> Any:
    """The type of a value, of a constant or a tuple, too."""
    if isinstance(value, tuple):
        return tuple_type([type_of(item) for item in cast("tuple[Any, ...]", value)])
    return constexpr(value).type if isinstance(value, CONSTANTS) else value.type


def is_aggregate(value: Any) -> bool:
    """Whether a value is an aggregate, or a class of them."""
    return getattr(value, "is_aggregate", False) is True


def is_number(value: Any) -> bool:
    """Whether a value is a constant that can become a tensor."""
    return isinstance(value, constexpr) and isinstance(value.value, NUMBERS)


def is_same_constant(a: Any, b: Any) -> bool:
    """Whether two values are one and the same without looking at any tensor."""
    if isinstance(a, constexpr) and isinstance(b, constexpr):
        return type(a.value) is type(b.value) and bool(a.value == b.value or a.value is b.value)
    return a is b


def is_same_type(a: Any, b: Any) -> bool:
    """Whether two values, neither a tuple, are known only when the kernel runs and have the same type."""
    return type(a) is type(b) and not isinstance(a, tuple) and is_runtime(a) and a.type == b.type


def describe(value: Any) -> str:
    """What a value is, in a few words, for messages."""
    if is_tuple(value):
        return f"({', '.join(describe(item) for item in value)})"
    if isinstance(value, constexpr):
        return f"the constant {value.value!r}"
    if is_runtime(value):
        return str(value.type.name)
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    name = getattr(value, "__name__", None)
    return f"function {name}" if callable(value) and name else f"{type(value).__name__} {value!r}"
