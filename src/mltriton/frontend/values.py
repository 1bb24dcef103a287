"""Values while a kernel is compiled: what Python objects become, and how they are named in messages.

Level: above `tt`. A value is a tensor or descriptor (known when the kernel runs), a `constexpr`, a tuple of values, or
an object that only the compiler sees: a dtype, a function, a module, a type.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, cast

from mltriton.language.constants import constexpr

NUMBERS = (bool, int, float)
_CONSTANTS = (bool, int, float, str, type(None), type(...))


def wrap(value: Any) -> Any:
    """A Python object as a value: numbers, strings and None become constants, lists and tuples tuples of values."""
    if isinstance(value, _CONSTANTS):
        return constexpr(value)
    if isinstance(value, tuple | list):
        items = [wrap(item) for item in cast("list[Any]", value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, constexpr) and isinstance(value.value, tuple | list):
        return wrap(value.value)
    return value


def is_runtime(value: Any) -> bool:
    """Whether a value, or a part of a tuple, is known only when the kernel runs."""
    if isinstance(value, tuple):
        return any(is_runtime(item) for item in cast("tuple[Any, ...]", value))
    return getattr(value, "is_runtime_value", False) is True


def is_number(value: Any) -> bool:
    """Whether a value is a constant that can become a tensor."""
    return isinstance(value, constexpr) and isinstance(value.value, NUMBERS)


def is_same_constant(a: Any, b: Any) -> bool:
    """Whether two values are one and the same without looking at any tensor."""
    if isinstance(a, constexpr) and isinstance(b, constexpr):
        return type(a.value) is type(b.value) and bool(a.value == b.value or a.value is b.value)
    return a is b


def describe(value: Any) -> str:
    """What a value is, in a few words, for messages."""
    if isinstance(value, tuple):
        return f"({', '.join(describe(item) for item in cast('tuple[Any, ...]', value))})"
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
