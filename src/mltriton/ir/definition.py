"""How an operation class declares its operands, results, attributes and text: one descriptor a part.

Level: all. Example:

    class Load(Operation):
        name = "tt.load"
        ptr, mask, other = operand(), optional(), optional()
        cache = enum("cache", default="none")
        reads = True

Guarantees: `op.ptr` is a Value, `op.mask` a Value or None, `op.cache` a str; unset attributes read as their default.
The order of declaration is the order of operands. `parts_of(cls)` gives the declarations to the builder, the printer,
the parser and the verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, cast, overload

from mltriton.ir.attributes import (
    Attribute,
    DenseArrayAttr,
    EnumAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TypeAttr,
    UnitAttr,
)
from mltriton.ir.operation import Operation, Region, Value
from mltriton.ir.types import F32, I1, I32, Type

Arity = Literal["one", "optional", "variadic"]


@dataclass
class Parts:
    """What a class declares: operand groups (name -> arity), attributes (name -> coder), regions by name."""

    operands: dict[str, Arity] = field(default_factory=dict[str, Arity])
    attributes: dict[str, AttributePart] = field(default_factory=dict[str, "AttributePart"])
    regions: list[str] = field(default_factory=list[str])

    @cached_property
    def text_names(self) -> dict[str, str]:
        """Declared attribute name -> name in text."""
        return {name: part.text or name for name, part in self.attributes.items()}

    @property
    def is_segmented(self) -> bool:
        """Whether operand groups need their sizes written down (more than one group that is optional or variadic)."""
        return sum(arity != "one" for arity in self.operands.values()) > 1

    @property
    def is_fixed(self) -> bool:
        """Whether every operand group has exactly one operand."""
        return all(arity == "one" for arity in self.operands.values())


_parts: dict[type[Operation], Parts] = {}


def parts_of(cls: type[Operation]) -> Parts:
    """The declarations of an operation class, those of its base classes first."""
    if cls not in _parts:
        parts = Parts()
        for base in reversed(cls.__mro__):
            for name, part in vars(base).items():
                if isinstance(part, OperandPart):
                    parts.operands[name] = part.arity
                elif isinstance(part, AttributePart):
                    parts.attributes[name] = part
                elif isinstance(part, RegionPart):
                    parts.regions.append(name)
        _parts[cls] = parts
    return _parts[cls]


class OperandPart:
    """Declares one operand group; read it as an attribute of the operation."""

    def __init__(self, arity: Arity) -> None:
        self.arity: Arity = arity
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def find(self, op: Operation) -> slice:
        """Where the group's operands stand in `op.operands`."""
        groups = parts_of(type(op)).operands
        index = list(groups).index(self.name)
        sizes = op.segments if op.segments is not None else _inferred_segments(op, groups)
        start = sum(sizes[:index])
        return slice(start, start + sizes[index])


def segments_of(op: Operation) -> tuple[int, ...]:
    """The number of operands in each declared group."""
    return op.segments if op.segments is not None else _inferred_segments(op, parts_of(type(op)).operands)


def _inferred_segments(op: Operation, groups: dict[str, Arity]) -> tuple[int, ...]:
    spare = len(op.operands) - sum(arity == "one" for arity in groups.values())
    return tuple(1 if arity == "one" else spare for arity in groups.values())


class OneOperand(OperandPart):
    """An operand that is always there; its index is remembered where no optional group comes before it."""

    _position: int | None = None

    @overload
    def __get__(self, op: None, owner: type) -> OneOperand: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> Value: ...
    def __get__(self, op: Operation | None, owner: type) -> Value | OneOperand:
        if op is None:
            return self
        if self._position is None:
            names = list(parts_of(type(op)).operands.items())
            before = names[: [name for name, _ in names].index(self.name)]
            self._position = len(before) if all(arity == "one" for _, arity in before) else -1
        return op.operands[self._position if self._position >= 0 else self.find(op).start]


class OptionalOperand(OperandPart):
    """An operand that may be missing (None)."""

    @overload
    def __get__(self, op: None, owner: type) -> OptionalOperand: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> Value | None: ...
    def __get__(self, op: Operation | None, owner: type) -> Value | OptionalOperand | None:
        if op is None:
            return self
        found = op.operands[self.find(op)]
        return found[0] if found else None


class VariadicOperand(OperandPart):
    """Any number of operands."""

    @overload
    def __get__(self, op: None, owner: type) -> VariadicOperand: ...
    @overload
    def __get__(self, op: Operation, owner: type) -> list[Value]: ...
    def __get__(self, op: Operation | None, owner: type) -> list[Value] | VariadicOperand:
        return self if op is None else op.operands[self.find(op)]


def operand() -> OneOperand:
    """Declare an operand."""
    return OneOperand("one")


def optional() -> OptionalOperand:
    """Declare an operand that may be missing."""
    return OptionalOperand("optional")


def variadic() -> VariadicOperand:
    """Declare a group of any number of operands."""
    return VariadicOperand("variadic")


class RegionPart:
    """Declares a region; read it as an attribute of the operation."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Operation | None, owner: type) -> Any:
        return self if op is None else op.regions[parts_of(type(op)).regions.index(self.name)]


def region() -> Region:
    """Declare a region."""
    return cast(Region, RegionPart())


class AttributePart:
    """Declares an attribute: how it reads as a Python value, and what it is when unset. Subclasses code one kind.

    `text` is its name in text where that is another one.
    """

    def __init__(self, default: Any = None, text: str = "") -> None:
        self.default = default
        self.text = text
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        stored = op.attributes.get(self.name)
        return self.default if stored is None else self.decode(stored)

    def __set__(self, op: Operation, value: Any) -> None:
        encoded = self.encode(value)
        if encoded is None:
            op.attributes.pop(self.name, None)
        else:
            op.attributes[self.name] = encoded

    def encode(self, value: Any) -> Attribute | None:
        """The attribute for a Python value (an attribute passes through); None leaves it unset."""
        return value

    def decode(self, stored: Attribute) -> Any:
        """The Python value of an attribute."""
        return stored


class IntPart(AttributePart):
    """An integer attribute of type `type`."""

    def __init__(self, default: int | None, type: Type, text: str = "") -> None:
        super().__init__(default, text)
        self.type = type

    def encode(self, value: Any) -> Attribute | None:
        return value if value is None or isinstance(value, Attribute) else IntegerAttr(int(value), self.type)

    def decode(self, stored: Attribute) -> int:
        assert isinstance(stored, IntegerAttr)
        return stored.value


class BoolPart(AttributePart):
    """A true/false attribute."""

    def encode(self, value: Any) -> Attribute | None:
        return value if value is None or isinstance(value, Attribute) else IntegerAttr(int(value), I1)

    def decode(self, stored: Attribute) -> bool:
        return isinstance(stored, UnitAttr) or (isinstance(stored, IntegerAttr) and bool(stored.value))


class FloatPart(AttributePart):
    """A float attribute (f32)."""

    def encode(self, value: Any) -> Attribute | None:
        return value if value is None or isinstance(value, Attribute) else FloatAttr(float(value), F32)

    def decode(self, stored: Attribute) -> float:
        assert isinstance(stored, FloatAttr)
        return stored.value


class StringPart(AttributePart):
    """A string attribute."""

    def encode(self, value: Any) -> Attribute | None:
        return StringAttr(value) if isinstance(value, str) else value

    def decode(self, stored: Attribute) -> str:
        assert isinstance(stored, StringAttr)
        return stored.value


class TypePart(AttributePart):
    """A type attribute."""

    def encode(self, value: Any) -> Attribute | None:
        return TypeAttr(value) if isinstance(value, Type) else value

    def decode(self, stored: Attribute) -> Type:
        assert isinstance(stored, TypeAttr)
        return stored.type


class EnumPart(AttributePart):
    """One case of an enumeration of `ir/attributes.py`."""

    def __init__(self, kind: str, default: str | None, text: str = "") -> None:
        super().__init__(default, text)
        self.kind = kind

    def encode(self, value: Any) -> Attribute | None:
        return EnumAttr(self.kind, value) if isinstance(value, str) else value

    def decode(self, stored: Attribute) -> str:
        assert isinstance(stored, EnumAttr)
        return stored.case


class IntsPart(AttributePart):
    """A list of integers of type `type`; unset reads as ()."""

    def __init__(self, type: Type, default: tuple[int, ...] | None = (), text: str = "") -> None:
        super().__init__(default, text)
        self.type = type

    def encode(self, value: Any) -> Attribute | None:
        if value is None or isinstance(value, Attribute):
            return value
        values: Sequence[int] = value
        return DenseArrayAttr(tuple(int(v) for v in values), self.type)

    def decode(self, stored: Attribute) -> tuple[int, ...]:
        assert isinstance(stored, DenseArrayAttr)
        return stored.values


def attribute() -> Any:
    """Declare an attribute of any kind, read as the attribute itself (None when unset)."""
    return AttributePart()


def integer(default: int | None = None, type: Type = I32, text: str = "") -> int:
    """Declare an integer attribute."""
    return cast(int, IntPart(default, type, text))


def boolean(default: bool = False, text: str = "") -> bool:
    """Declare a true/false attribute."""
    return cast(bool, BoolPart(default, text))


def number(default: float | None = None) -> float:
    """Declare a float attribute."""
    return cast(float, FloatPart(default))


def string(default: str | None = None) -> str:
    """Declare a string attribute."""
    return cast(str, StringPart(default))


def type_attribute() -> Type:
    """Declare a type attribute."""
    return cast(Type, TypePart())


def enum(kind: str, default: str | None = None, text: str = "") -> str:
    """Declare an attribute that is one case of an enumeration."""
    return cast(str, EnumPart(kind, default, text))


def integers(type: Type = I32, default: tuple[int, ...] | None = (), text: str = "") -> tuple[int, ...]:
    """Declare a list-of-integers attribute."""
    return cast("tuple[int, ...]", IntsPart(type, default, text))
