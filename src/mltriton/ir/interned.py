"""Interning: equal types and attributes are one object.

Level: all. Takes the field values of an immutable dataclass; guarantees that two constructions with equal fields
return the same object, so that equality is identity, hashing is the object's address and a type comparison costs one
pointer comparison.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

_pool: dict[tuple[Any, ...], Any] = {}
_calls: dict[tuple[Any, tuple[Any, ...]], Any] = {}


class Interned(type):
    """Metaclass of immutable dataclasses whose instances are shared.

    A class whose fields compare equal where the values differ (0.0 and -0.0, 1 and True) defines `intern_key`.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # Most calls repeat an earlier one: they need no candidate. Not where equal arguments may mean different values.
        repeatable = not kwargs and not _has_own_key(cls)
        found = _calls.get((cls, args)) if repeatable else None
        if found is None:
            candidate = super().__call__(*args, **kwargs)
            found = _pool.setdefault((cls, *candidate.intern_key()), candidate)
            if repeatable:
                _calls[cls, args] = found
        return found


class InternedBase(metaclass=Interned):
    """Base of interned dataclasses; subclasses are `@dataclass(frozen=True, eq=False)`."""

    __slots__ = ()

    def intern_key(self) -> tuple[Any, ...]:
        """The values that identify an instance."""
        return tuple(getattr(self, name) for name in _field_names(type(self)))

    def __copy__(self) -> InternedBase:
        return self

    def __deepcopy__(self, memo: object) -> InternedBase:
        return self


@cache
def _has_own_key(cls: type) -> bool:
    return any("intern_key" in vars(base) for base in cls.__mro__ if base is not InternedBase)


@cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))
