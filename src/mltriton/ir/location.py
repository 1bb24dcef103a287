"""Source locations: every operation knows the user's line it came from.

Level: all. Text is MLIR's: `loc("file.py":12:4)`, `loc(callsite(... at ...))`, `loc("name"(...))`, `loc(unknown)`.
"""

from __future__ import annotations

from dataclasses import dataclass


class Location:
    """Base of locations; compared by value."""

    __slots__ = ()

    @property
    def innermost(self) -> FileLoc | None:
        """The user's own line: of an inlined call the line inside the called function."""
        return None


@dataclass(frozen=True, slots=True)
class UnknownLoc(Location):
    """No location known."""


@dataclass(frozen=True, slots=True)
class FileLoc(Location):
    """A place in a file; line and column count from 1 and 0, as Python's `ast` does."""

    file: str
    line: int
    column: int

    @property
    def innermost(self) -> FileLoc | None:
        return self


@dataclass(frozen=True, slots=True)
class CallSiteLoc(Location):
    """`callee` was inlined at `caller`."""

    callee: Location
    caller: Location

    @property
    def innermost(self) -> FileLoc | None:
        return self.callee.innermost


@dataclass(frozen=True, slots=True)
class NameLoc(Location):
    """A location with the name of the variable that holds the value."""

    name: str
    child: Location

    @property
    def innermost(self) -> FileLoc | None:
        return self.child.innermost


UNKNOWN = UnknownLoc()
