"""`aggregate`: classes of values that a kernel passes around as one.

Takes a class with annotated fields (`tl.tensor`, `tl.constexpr`, `tl.tuple`, other aggregates); guarantees that an
object of it made in a kernel has a value of its annotation in each field, that fields stay as `__init__` sets them, and
that control flow and functions carry it as its parts. Methods are functions written in the language (`jit`), Python
functions that run when compiling (`constexpr_function`), or plain ones that call builtins. Imports nothing of the
compiler.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

from mltriton.errors import TypeMismatchError
from mltriton.frontend.function import ConstexprFunction, LanguageFunction
from mltriton.frontend.values import describe, wrap
from mltriton.language.constants import constexpr
from mltriton.language.tensor import composite

__all__ = ["aggregate_replace"]

_ABSENT = object()


class FieldError(TypeMismatchError, AttributeError, TypeError):
    """A field that an aggregate has not, or one that is set anew: what upstream, and Python's dataclasses, say so."""


@dataclass(frozen=True)
class AggregateType:
    """The type of an aggregate: its class, and the types of its fields (of constants their values)."""

    base: type
    fields: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """The class and what is in the fields."""
        return f"{self.base.__name__}({', '.join(f'{name}: {kind}' for name, kind in self.fields)})"


class AggregateValue(composite):
    """Base of the classes that `aggregate` makes; `annotations` and `defaults` are those of its fields."""

    is_aggregate = True
    annotations: Mapping[str, Any] = {}
    defaults: Mapping[str, Any] = {}
    initialize: Callable[..., None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(self, "_is_complete", False)
        _assign_fields(self, args, kwargs) if self.initialize is None else self.initialize(*args, **kwargs)
        for name in self.annotations:
            if name not in self.__dict__:
                raise TypeMismatchError(f"constructor for {type(self).__name__} did not initialize attribute {name!r}")
        object.__setattr__(self, "_is_complete", True)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self).__name__
        if name not in self.annotations:
            raise FieldError(f"{kind} has no attribute {name!r}", expected=f"one of {', '.join(self.annotations)}")
        if self.__dict__.get("_is_complete"):
            raise FieldError(
                f"cannot assign to field {name!r} on immutable aggregate {kind}",
                hint="make a changed copy with aggregate_replace(value, field=...)",
            )
        self.__dict__[name] = _checked(kind, name, self.annotations[name], wrap(value))

    @property
    def parts(self) -> Sequence[Any]:
        return [self.__dict__[name] for name in self.annotations]

    def rebuilt(self, parts: Sequence[Any]) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(zip(self.annotations, parts, strict=True))
        made.__dict__["_is_complete"] = True
        return made

    @property
    def type(self) -> AggregateType:
        """Its class and the types of its fields."""
        return AggregateType(type(self), tuple((name, _type_of(self.__dict__[name])) for name in self.annotations))

    def __repr__(self) -> str:
        return self.type.name


def _assign_fields(self: AggregateValue, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The `__init__` of a class that has none: a value for each field in order, or by name."""
    names = list(self.annotations)
    values = {**self.defaults, **dict(zip(names, args, strict=False)), **kwargs}
    unknown = [name for name in kwargs if name not in names[len(args) :]]
    if unknown or len(args) > len(names) or set(values) != set(names):
        raise TypeMismatchError(
            f"{type(self).__name__}.__init__() takes one value for each field",
            expected=", ".join(self.annotations),
            found=", ".join([*["a value"] * len(args), *kwargs]) or "nothing",
        )
    for name, value in values.items():
        setattr(self, name, value)


def _checked(kind: str, name: str, annotation: Any, value: Any) -> Any:
    """A field's value; `TypeMismatchError` unless its annotation allows it."""
    if isinstance(annotation, type) and not isinstance(value, annotation):
        raise TypeMismatchError(
            f"Expected {annotation.__name__} for attribute {name!r} of {kind}, got {describe(value)}",
            expected=annotation.__name__,
            found=describe(value),
        )
    return value


def _type_of(value: Any) -> Any:
    if isinstance(value, constexpr):
        return repr(value.value)
    return tuple(map(_type_of, cast("tuple[Any, ...]", value))) if isinstance(value, tuple) else value.type


class _Method:
    """A function written in the language, or one that runs when compiling, as a method: it gets the object first."""

    def __init__(self, fn: LanguageFunction | ConstexprFunction) -> None:
        self.fn = fn

    def __get__(self, instance: object, owner: type) -> Any:
        return self.fn if instance is None else partial(cast(Any, self.fn), instance)


def aggregate(cls: type) -> Any:
    """Make a class one whose objects kernels make and pass around. It may inherit from other aggregates."""
    annotations, defaults = _fields_of(cls)
    members: dict[str, Any] = {}
    for name, member in inspect.getmembers_static(cls):
        if isinstance(member, LanguageFunction | ConstexprFunction):
            members[name] = _Method(member)
        elif isinstance(member, _Method | staticmethod | classmethod | property) or inspect.isfunction(member):
            members[name] = member
    initialize = members.pop("__init__", None)
    if initialize is AggregateValue.__init__:
        initialize = getattr(cls, "initialize", None)
    inner = initialize.fn if isinstance(initialize, _Method) else initialize
    members = {name: member for name, member in members.items() if not hasattr(AggregateValue, name)}
    own = {
        "annotations": annotations,
        "defaults": defaults,
        "initialize": inner.fn if isinstance(inner, ConstexprFunction) else inner,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    return type(cls.__name__, (AggregateValue,), {**members, **own})


def _fields_of(cls: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """The annotations and defaults of a class's fields, those of the classes that it inherits from first."""
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if base in (object, composite, AggregateValue):
            continue
        if not issubclass(base, AggregateValue):
            raise TypeError(f"Aggregates can only inherit from other aggregates, but got non-aggregate base: {base}")
        annotations |= base.annotations
        defaults |= base.defaults
    hints = typing.get_type_hints(cls)
    for name in inspect.get_annotations(cls):
        annotations[name] = hints[name]
        value = cls.__dict__.get(name, _ABSENT)
        if value is not _ABSENT:
            defaults[name] = value
    return annotations, defaults


def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """A copy of an aggregate with some fields changed."""
    if not isinstance(instance, AggregateValue):
        raise FieldError(f"aggregate_replace() expects an aggregate instance, got {type(instance)}")
    kept = dict(zip(instance.annotations, instance.parts, strict=True))
    unknown = [name for name in changes if name not in kept]
    if unknown:
        raise FieldError(f"{type(instance).__name__} has no field {unknown[0]!r}", expected=", ".join(kept))
    made = instance.rebuilt(list(kept.values()))
    object.__setattr__(made, "_is_complete", False)
    for name, value in changes.items():
        setattr(made, name, value)
    object.__setattr__(made, "_is_complete", True)
    return made


aggregate_replace.__dict__["is_builtin"] = True
