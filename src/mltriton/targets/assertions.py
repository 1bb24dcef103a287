"""Device assertions: what they say, and the error that a failed one raises after the launch.

Level: runtime. A kernel with assertions records the first that fails in three i64: its number in the module, from 1
(0: none failed), the program's linear id, the element. Where those are is each target's own affair.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mltriton.errors import DeviceAssertionError, OutOfBoundsError, SourceLocation

if TYPE_CHECKING:
    from mltriton.dialects import tt
    from mltriton.ir.module import Module

Record = ctypes.c_int64 * 3

Description = tuple[str, str | None, int, int, bool]


def assertions(module: Module) -> list[tt.Assert]:
    """The assertions of a module in the order of their numbers."""
    from mltriton.dialects import tt  # A launch needs no dialect.

    return [op for op in module.walk() if isinstance(op, tt.Assert)]


def describe(module: Module) -> list[Description]:
    """(message, file or None, line, column) of each assertion, by number, and whether it is about an access."""
    described: list[Description] = []
    for op in assertions(module):
        location = op.loc.in_source
        file, line, column = (location.file, location.line, location.column) if location else (None, 0, 0)
        described.append((op.message, file, line, column, op.of_access))
    return described


def check(described: Sequence[Description], record: ctypes.Array[ctypes.c_int64], grid: tuple[int, int, int]) -> None:
    """Raise `DeviceAssertionError` (of accesses `OutOfBoundsError`) if an assertion failed, and make the record empty
    again.
    """
    number, program, element = map(int, record)
    if not number:
        return
    record[:] = (0, 0, 0)
    message, file, line, column, of_access = described[number - 1]
    x, rest = program % grid[0], program // grid[0]
    where = (x, rest % grid[1], rest // grid[1])
    location = SourceLocation(file, line, column) if file is not None else None
    kind = OutOfBoundsError if of_access else DeviceAssertionError
    raise kind(f"{message} (program {where}, element {element})", location=location)
