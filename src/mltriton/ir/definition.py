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

from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from operator import attrgetter
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
from mltriton.records import record

Arity = Literal["one", "optional", "variadic"]


@record()
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
    found = _parts.get(cls)
    if found is None:
        found = _parts[cls] = _declared(cls)
    return found


def _declared(cls: type[Operation]) -> Parts:
    """What its base classes declare, which is known from then on, and what the class itself does."""
    parts = Parts()
    for base in reversed(cls.__bases__):
        if issubclass(base, Operation):
            inherited = parts_of(base)
            parts.operands |= inherited.operands
            parts.attributes |= inherited.attributes
            parts.regions += [name for name in inherited.regions if name not in parts.regions]
    for name, part in vars(cls).items():
        if isinstance(part, OperandPart):
            parts.operands[name] = part.arity
        elif isinstance(part, AttributePart):
            parts.attributes[name] = part
        elif isinstance(part, RegionPart):
            parts.regions.append(name)
    return parts


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


class Coder:
    """How one kind of attribute is written from a Python value and read as one, and what may stand there."""

    def __init__(
        self, write: Callable[[AttributePart, Any], Any], read: Callable[[Any], Any], *kinds: type[Attribute]
    ) -> None:
        self.write = write
        self.read = read
        self.kinds = kinds


class AttributePart:
    """Declares an attribute: how it reads as a Python value, and what it is when unset.

    `text` is its name in text where that is another one, `type` that of an integer, `kind` names an enumeration.
    """

    def __init__(self, coder: Coder, default: Any = None, text: str = "", type: Type = I32, kind: str = "") -> None:
        self.coder = coder
        self.default = default
        self.text = text
        self.type = type
        self.kind = kind
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        stored = op.attributes.get(self.name)
        return self.default if stored is None else self.coder.read(stored)

    def __set__(self, op: Operation, value: Any) -> None:
        encoded = self.encode(value)
        if encoded is None:
            op.attributes.pop(self.name, None)
        else:
            op.attributes[self.name] = encoded

    def encode(self, value: Any) -> Attribute | None:
        """The attribute for a Python value (an attribute passes through); None leaves it unset."""
        return value if value is None or isinstance(value, Attribute) else self.coder.write(self, value)


def _is_true(stored: Attribute) -> bool:
    return isinstance(stored, UnitAttr) or (isinstance(stored, IntegerAttr) and bool(stored.value))


ANY = Coder(lambda _, value: value, lambda stored: stored, Attribute)
INTEGER = Coder(lambda part, value: IntegerAttr(int(value), part.type), attrgetter("value"), IntegerAttr)
BOOLEAN = Coder(lambda _, value: IntegerAttr(int(value), I1), _is_true, IntegerAttr, UnitAttr)
NUMBER = Coder(lambda _, value: FloatAttr(float(value), F32), attrgetter("value"), FloatAttr)
STRING = Coder(lambda _, value: StringAttr(value), attrgetter("value"), StringAttr)
TYPE = Coder(lambda _, value: TypeAttr(value), attrgetter("type"), TypeAttr)
ENUM = Coder(lambda part, value: EnumAttr(part.kind, value), attrgetter("case"), EnumAttr)
INTEGERS = Coder(
    lambda part, value: DenseArrayAttr(tuple(map(int, value)), part.type), attrgetter("values"), DenseArrayAttr
)


def attribute() -> Any:
    """Declare an attribute of any kind, read as the attribute itself (None when unset)."""
    return AttributePart(ANY)


def integer(default: int | None = None, type: Type = I32, text: str = "") -> int:
    """Declare an integer attribute."""
    return cast(int, AttributePart(INTEGER, default, text, type))


def boolean(default: bool = False, text: str = "") -> bool:
    """Declare a true/false attribute."""
    return cast(bool, AttributePart(BOOLEAN, default, text))


def number(default: float | None = None) -> float:
    """Declare a float attribute."""
    return cast(float, AttributePart(NUMBER, default))


def string(default: str | None = None) -> str:
    """Declare a string attribute."""
    return cast(str, AttributePart(STRING, default))


def type_attribute() -> Type:
    """Declare a type attribute."""
    return cast(Type, AttributePart(TYPE))


def enum(kind: str, default: str | None = None, text: str = "") -> str:
    """Declare an attribute that is one case of an enumeration."""
    return cast(str, AttributePart(ENUM, default, text, kind=kind))


def integers(type: Type = I32, default: tuple[int, ...] | None = (), text: str = "") -> tuple[int, ...]:
    """Declare a list-of-integers attribute."""
    return cast("tuple[int, ...]", AttributePart(INTEGERS, default, text, type))
