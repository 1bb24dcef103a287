"""Interning: equal types and attributes are one object.

Level: all. Takes the field values of an immutable dataclass; guarantees that two constructions with equal fields
return the same object, so that equality is identity, hashing is the object's address and a type comparison costs one
pointer comparison.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

_pool: dict[tuple[Any, ...], Any] = {}


class Interned(type):
    """Metaclass of immutable dataclasses whose instances are shared.

    A class whose fields compare equal where the values differ (0.0 and -0.0, 1 and True) defines `intern_key`.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        candidate = super().__call__(*args, **kwargs)
        return _pool.setdefault((cls, *candidate.intern_key()), candidate)


class InternedBase(metaclass=Interned):
    """Base of interned dataclasses; subclasses are `@dataclass(frozen=True, eq=False)`."""

    __slots__ = ()

    def intern_key(self) -> tuple[Any, ...]:
        """The values that identify an instance."""
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    def __copy__(self) -> InternedBase:
        return self

    def __deepcopy__(self, memo: object) -> InternedBase:
        return self
