"""Source locations: every operation knows the user's line it came from.

Level: all. Text is MLIR's: `loc("file.py":12:4)`, `loc(callsite(... at ...))`, `loc("name"(...))`, `loc(unknown)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.errors import SourceLocation
from mltriton.records import record


class Location:
    """Base of locations; compared by value."""

    __slots__ = ()

    @property
    def innermost(self) -> FileLoc | None:
        """The user's own line: of an inlined call the line inside the called function."""
        return None

    @property
    def in_source(self) -> SourceLocation | None:
        """The innermost line as errors name it."""
        found = self.innermost
        return None if found is None else SourceLocation(found.file, found.line, found.column)

    def callers(self) -> Iterator[SourceLocation]:
        """The calls that the innermost line was inlined through, innermost first."""
        return iter(())


@record(frozen=True)
class UnknownLoc(Location):
    """No location known."""


@record(frozen=True)
class FileLoc(Location):
    """A location in a file; line and column count from 1 and 0, as Python's `ast` does."""

    file: str
    line: int
    column: int

    @property
    def innermost(self) -> FileLoc | None:
        return self


@record(frozen=True)
class CallSiteLoc(Location):
    """`callee` was inlined at `caller`."""

    callee: Location
    caller: Location

    @property
    def innermost(self) -> FileLoc | None:
        return self.callee.innermost

    def callers(self) -> Iterator[SourceLocation]:
        yield from self.callee.callers()
        if self.caller.in_source is not None:
            yield self.caller.in_source
        yield from self.caller.callers()


@record(frozen=True)
class NameLoc(Location):
    """A location with the name of the variable that holds the value."""

    name: str
    child: Location

    @property
    def innermost(self) -> FileLoc | None:
        return self.child.innermost

    def callers(self) -> Iterator[SourceLocation]:
        return self.child.callers()


UNKNOWN = UnknownLoc()
