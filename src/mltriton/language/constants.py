"""`constexpr`: a value known when the kernel is compiled.

Takes any Python value; guarantees that arithmetic between constants gives constants and that arithmetic with a `tensor` gives a tensor. Imports nothing of the
compiler.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from mltriton.errors import ConstexprError


class constexpr:  # noqa: N801 - upstream's name
    """A compile-time constant; also the annotation that makes a kernel's parameter one. Never nested."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, specification: str) -> str:
        return format(self.value, specification)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __contains__(self, item: object) -> bool:
        return unwrap(item) in self.value

    def __getitem__(self, index: object) -> Any:
        return self.value[unwrap(index)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def logical_and(self, other: object) -> Any:
        """`self and other`."""
        return constant(self.value and unwrap(other))

    def logical_or(self, other: object) -> Any:
        """`self or other`."""
        return constant(self.value or unwrap(other))

    @staticmethod
    def _binary(function: Callable[[Any, Any], Any]) -> Callable[[constexpr, object], Any]:
        return lambda self, other: compute(function, self.value, unwrap(other))

    @staticmethod
    def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[constexpr, object], Any]:
        return lambda self, other: compute(function, unwrap(other), self.value)

    @staticmethod
    def _unary(function: Callable[[Any], Any]) -> Callable[[constexpr], Any]:
        return lambda self: compute(function, self.value)

    __add__, __radd__ = _binary(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _binary(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __lshift__, __rlshift__ = _binary(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift), _reflected(operator.rshift)
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __eq__ = _binary(operator.eq)  # pyright: ignore[reportAssignmentType]
    __ne__ = _binary(operator.ne)  # pyright: ignore[reportAssignmentType]
    __neg__, __pos__, __invert__ = _unary(operator.neg), _unary(operator.pos), _unary(operator.invert)


def unwrap(value: Any) -> Any:
    """The Python value of a constant; lists and tuples (named ones too) are unwrapped inside, anything else is returned as it is."""
    if isinstance(value, constexpr):
        return value.value
    if type(value) is tuple:
        return tuple(unwrap(item) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if type(value) is list:
        return [unwrap(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def constant(value: Any) -> Any:
    """`value` as a `constexpr`; what exists only when the kernel runs (a tensor or descriptor) is returned as it is."""
    return value if getattr(value, "is_runtime_value", False) is True else constexpr(value)


def compute(function: Callable[..., Any], *values: Any) -> Any:
    """The constant `function(*values)`; `ConstexprError` where Python would raise."""
    try:
        return constant(function(*values))
    except (TypeError, ValueError, ArithmeticError) as error:
        shown = ", ".join(repr(value) for value in values)
        raise ConstexprError(f"cannot compute {function.__name__}({shown}) when compiling: {error}") from error
