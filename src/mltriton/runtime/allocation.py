"""`mltriton.set_allocator`: who gives the memory that kernels of some targets share between programs.

Level: runtime. The function takes a size and an alignment in bytes and a stream and gives an array. A target whose
kernels need such memory asks `allocator()` at the launch; none does today: scratch memory of the CPU belongs to the
threads (`runtime/native/pool.py`), so that the function is kept and not called.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from mltriton.errors import ArgumentError, LaunchError, calling_location

Allocator = Callable[[int, int, int | None], Any]


class NullAllocator:
    """Nobody gives memory, and who asks is told so."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        """Refuse."""
        raise LaunchError("the kernel needs memory that programs share", hint="Call triton.set_allocator first.")


_allocator: ContextVar[Allocator] = ContextVar("mltriton_allocator", default=NullAllocator())  # noqa: B039 - it has no state


def set_allocator(allocator: Allocator | None) -> None:
    """Let `allocator(size, alignment, stream)` give kernels memory, in this context; None: nobody does."""
    if allocator is not None and not callable(allocator):
        raise ArgumentError(
            "an allocator is a function",
            expected="a function of size, alignment and stream, or None",
            found=repr(allocator),
            location=calling_location(),
        )
    _allocator.set(NullAllocator() if allocator is None else allocator)


def allocator() -> Allocator | None:
    """The function that was set last in this context."""
    found = _allocator.get()
    return None if isinstance(found, NullAllocator) else found
