"""Device assertions: what they say, and the error that a failed one raises after the launch.

Level: runtime. A kernel with assertions records the first that fails in a variable of its own (`emit/debug.py`);
`CheckedKernel` looks at it after each launch. Programs that were not running yet when it failed may still run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mltriton.errors import DeviceAssertionError, Place

if TYPE_CHECKING:
    from mltriton.dialects.builtin import Module
    from mltriton.runtime.native.launcher import NativeKernel
    from mltriton.runtime.native.params import ParamSpec

FAILURE = "kernel.failure"  # three i64: the assertion's number from 1 (0: none failed), the program, the element

Description = tuple[str, str | None, int, int]


def describe(module: Module) -> list[Description]:
    """(message, file or None, line, column) of each assertion, by number."""
    from mltriton.targets.cpu.llvm.emit.kernel import assertions

    described: list[Description] = []
    for op in assertions(module):
        place = op.loc.place
        described.append((op.message, place.file, place.line, place.column) if place else (op.message, None, 0, 0))
    return described


class CheckedKernel:
    """A kernel whose launches raise `DeviceAssertionError` when an assertion of it failed."""

    def __init__(self, kernel: NativeKernel, assertions: Sequence[Description]) -> None:
        self._kernel = kernel
        self._assertions = assertions
        self._failure = (ctypes.c_int64 * 3).from_address(kernel.variables[FAILURE])

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """What `NativeKernel.launcher` gives, with the check behind it."""
        launch = self._kernel.launcher(specs)

        def checked(grid_x: int, grid_y: int, grid_z: int, /, *arguments: Any) -> Any:
            result = launch(grid_x, grid_y, grid_z, *arguments)
            self._check((grid_x, grid_y, grid_z))
            return result

        return checked

    def run(self, grid: tuple[int, int, int], slots: Sequence[int], /) -> None:
        """What `NativeKernel.run` does, with the check behind it."""
        self._kernel.run(grid, slots)
        self._check(grid)

    def _check(self, grid: tuple[int, int, int]) -> None:
        number, program, element = map(int, self._failure)
        if not number:
            return
        self._failure[:] = (0, 0, 0)
        description: Description = self._assertions[number - 1]
        message, file, line, column = description
        x, rest = program % grid[0], program // grid[0]
        where = (x, rest % grid[1], rest // grid[1])
        place = Place(file, line, column) if file is not None else None
        raise DeviceAssertionError(f"{message} (program {where}, element {element})", place=place)
