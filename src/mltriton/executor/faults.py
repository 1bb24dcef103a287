"""What the executor finds wrong with a program: one class for each kind of undefined behaviour.

Level: all. Every fault knows the operation's source location and the program instance and warp that met it.
"""

from __future__ import annotations

from typing import Self

from mltriton.errors import ExecutionError, SourceLocation
from mltriton.ir.location import Location


class Fault(ExecutionError):  # noqa: N818 - the field's word
    """Base of faults.

    `program` is the grid coordinate (x, y, z), `warp` the warp's id in it, `operation` the name of what failed.
    """

    program: tuple[int, int, int] | None = None
    warp: int | None = None
    operation: str | None = None

    def within(self, operation: str, program: tuple[int, int, int], warp: int, loc: Location) -> Self:
        """Record where it happened, unless that is known already."""
        if self.program is None:
            self.operation, self.program, self.warp = operation, program, warp
            self.at(location_of(loc))
        return self

    def explanation(self) -> list[str]:
        """Add the operation, program instance and warp."""
        if self.program is None:
            return super().explanation()
        return [*super().explanation(), f"in {self.operation}, program {self.program}, warp {self.warp}"]


class OutOfBounds(Fault):
    """An access outside every argument's memory, or outside shared or scratch memory.

    `segment` is the name of the memory that was missed, where there is one near; `is_before` says on which side.
    """

    segment: str | None = None
    is_before: bool = False


class Misaligned(Fault):
    """An address that is no multiple of the element's size, or of the alignment that an operation promises."""


class ReadOnly(Fault):
    """A write to an argument that must not be written."""


class Uninitialised(Fault):
    """A read of shared or scratch memory that nothing has written."""


class Unfinished(Fault):
    """An access to shared memory to which an asynchronous copy is under way, or which a product under way reads; a use
    of that product's result; an access of global memory to which a copy is under way.
    """


class DataRace(Fault):
    """Two warps touch one element of memory with no barrier between, and one of them writes; `other` is the line of
    the earlier access.
    """

    other: SourceLocation | None = None


class BarrierDivergence(Fault):
    """Warps of a program wait at different barriers, or some have ended while others wait."""


class BrokenAssumption(Fault):
    """A condition given to `tl.assume` is false."""


class InvalidOperation(Fault):
    """Operands that the operation cannot take, or a result that is not of its type: the program is malformed."""


class NoTensorMap(InvalidOperation):
    """A tensor map of numbers that none can be made of: a launch with these runs the kernel that does without maps."""


def location_of(loc: Location) -> SourceLocation | None:
    """The user's line of a location, if it is known."""
    inner = loc.innermost
    return SourceLocation(inner.file, inner.line, inner.column) if inner is not None else None
