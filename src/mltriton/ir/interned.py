"""Interning: equal types and attributes are one object.

Level: all. A subclass of `InternedBase` declares its fields as a dataclass does (annotations, with defaults), without a
decorator:

    class PointerType(Type):
        pointee: Type
        address_space: int = 1

Guarantees: two constructions with equal fields return the same immutable object, so that equality is identity, hashing
is the object's address and a type comparison costs one pointer comparison. No code is generated for a class:
`dataclass` takes half a millisecond for each, which a compiler start would pay thirty times.
"""

from __future__ import annotations

from typing import Any, NoReturn, Self, dataclass_transform

_pool: dict[tuple[Any, ...], Any] = {}
_calls: dict[tuple[Any, tuple[Any, ...]], Any] = {}


@dataclass_transform(eq_default=False, frozen_default=True)
class Interned(type):
    """Metaclass of immutable classes whose instances are shared.

    A class whose fields compare equal where the values differ (0.0 and -0.0, 1 and True) defines `intern_key`.
    """

    field_names: tuple[str, ...]
    defaults: dict[str, Any]
    has_own_key: bool

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        own = [field for field in namespace.get("__annotations__", {}) if field not in Interned.__annotations__]
        inherited = next((base.field_names for base in bases if isinstance(base, Interned)), ())
        cls.field_names = (*inherited, *own)
        cls.defaults = {field: getattr(cls, field) for field in cls.field_names if hasattr(cls, field)}
        cls.has_own_key = bool(bases) and cls.intern_key is not InternedBase.intern_key  # type: ignore[attr-defined]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # Most calls repeat an earlier one. They need no new object, except where equal arguments may differ in value.
        repeatable = not kwargs and not cls.has_own_key
        found = _calls.get((cls, args)) if repeatable else None
        if found is None:
            made = cls._create(args, kwargs)
            found = _pool.setdefault((cls, *made.intern_key()), made)
            if repeatable:
                _calls[cls, args] = found
        return found

    def _create(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        values = {**cls.defaults, **dict(zip(cls.field_names, args, strict=False)), **kwargs}
        if len(args) > len(cls.field_names) or values.keys() != set(cls.field_names):
            raise TypeError(f"{cls.__name__} takes {', '.join(cls.field_names)}; got {args} {kwargs}")
        made: Any = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made


class InternedBase(metaclass=Interned):
    """Base of interned classes."""

    __slots__ = ()

    def intern_key(self) -> tuple[Any, ...]:
        """The values that identify an instance."""
        return tuple([getattr(self, name) for name in type(self).field_names])

    def replaced(self, **fields: Any) -> Self:
        """The instance with other values of some fields."""
        cls = type(self)
        unknown = fields.keys() - set(cls.field_names)
        if unknown:
            raise TypeError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
        return cls(*[fields.get(name, getattr(self, name)) for name in cls.field_names])

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).field_names)
        return f"{type(self).__name__}({fields})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete {name}")

    def __copy__(self) -> InternedBase:
        return self

    def __deepcopy__(self, memo: object) -> InternedBase:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in type(self).field_names)
