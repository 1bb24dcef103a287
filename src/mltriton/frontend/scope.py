"""The variables of a function while it is compiled.

Level: above `tt`. Guarantees: a variable that has no value on some path (assigned in one branch only, or only inside a
loop) is remembered with the reason, so that using it is an error that explains itself; unused, it does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mltriton.errors import SourceLocation


class Scope:
    """Values by name, where each was last assigned (`locations`), and why names that were there are gone (`lost`)."""

    def __init__(
        self, values: Mapping[str, Any] = {}, locations: Mapping[str, SourceLocation] = {}, lost: Mapping[str, str] = {}
    ) -> None:
        self._values = dict(values)
        self.locations = dict(locations)
        self.lost = dict(lost)

    def copy(self) -> Scope:
        """An independent scope with the same variables."""
        return Scope(self._values, self.locations, self.lost)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def set(self, name: str, value: Any, location: SourceLocation | None = None) -> None:
        """Give a variable a value; without a `location` it stays said to be assigned where it was."""
        self._values[name] = value
        self.lost.pop(name, None)
        if location is not None:
            self.locations[name] = location

    def lose(self, name: str, why: str) -> None:
        """Take a variable's value away; `why` completes "NAME ...", for the error at its next use. A second line of it
        is upstream's sentence.
        """
        self._values.pop(name, None)
        self.lost[name] = why

    def where(self, name: str) -> str:
        """ " (line N)" for the last assignment of a variable, or nothing where it is not known."""
        location = self.locations.get(name)
        return f" (line {location.line})" if location else ""
