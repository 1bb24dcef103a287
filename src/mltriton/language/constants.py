"""`constexpr`: a value known when the kernel is compiled.

Takes any Python value; guarantees that arithmetic between constants gives constants and that arithmetic with a
`tensor` gives a tensor. Imports nothing of the compiler.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from mltriton.errors import ConstexprError

if TYPE_CHECKING:
    Base = Any  # To type checkers a constant is of any type: in a kernel it may stand wherever its value may.
else:
    Base = object


class constexpr(Base):  # noqa: N801 - upstream's name
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

    @property
    def type(self) -> constexpr_type:
        """What kind of constant it is."""
        return constexpr_type(self.value)

    def logical_and(self, other: object) -> Any:
        """`self and other`."""
        return constant(self.value and unwrap(other))

    def logical_or(self, other: object) -> Any:
        """`self or other`."""
        return constant(self.value or unwrap(other))

    @staticmethod
    def _binary(name: str) -> Callable[[constexpr, object], Any]:
        function = getattr(operator, name)
        return lambda self, other: compute(function, self.value, unwrap(other))

    @staticmethod
    def _reflected(name: str) -> Callable[[constexpr, object], Any]:
        function = getattr(operator, name)
        return lambda self, other: compute(function, unwrap(other), self.value)

    @staticmethod
    def _unary(name: str) -> Callable[[constexpr], Any]:
        function = getattr(operator, name)
        return lambda self: compute(function, self.value)

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __and__, __rand__ = _binary("and_"), _reflected("and_")
    __or__, __ror__ = _binary("or_"), _reflected("or_")
    __xor__, __rxor__ = _binary("xor"), _reflected("xor")
    __lshift__, __rlshift__ = _binary("lshift"), _reflected("lshift")
    __rshift__, __rrshift__ = _binary("rshift"), _reflected("rshift")
    __lt__, __le__ = _binary("lt"), _binary("le")
    __gt__, __ge__ = _binary("gt"), _binary("ge")
    __eq__ = _binary("eq")  # pyright: ignore[reportAssignmentType]
    __ne__ = _binary("ne")  # pyright: ignore[reportAssignmentType]
    __neg__, __pos__, __invert__ = _unary("neg"), _unary("pos"), _unary("invert")


class constexpr_type:  # noqa: N801 - upstream's name
    """The type of a constant: the constant itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = unwrap(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"

    def mangle(self) -> str:
        """The name in symbol names."""
        return f"c{self.value}"


class tuple_type:  # noqa: N801 - upstream's name
    """The type of a tuple: those of its items, and the names of a named one."""

    __slots__ = ("fields", "types")

    def __init__(self, types: Iterable[Any], fields: Iterable[str] | None = None) -> None:
        self.types: list[Any] = list(types)
        self.fields: list[str] = list(fields or ())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple_type) and (self.types, self.fields) == (other.types, other.fields)

    def __hash__(self) -> int:
        return hash(tuple(self.types))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.types)

    def __getitem__(self, index: int) -> Any:
        return self.types[index]

    def __repr__(self) -> str:
        return f"tuple_type({self.types})"


def unwrap(value: Any) -> Any:
    """The Python value of a constant.

    Lists, tuples and slices are unwrapped inside, anything else is returned as it is.
    """
    kind = cast("type[Any]", type(value))  # Exact types: this runs for every argument of every builtin.
    if kind is constexpr:
        return value.value
    if kind is tuple or kind is list:
        return cast("Callable[..., Any]", kind)(map(unwrap, value))
    if kind is slice:
        return slice(unwrap(value.start), unwrap(value.stop), unwrap(value.step))
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
