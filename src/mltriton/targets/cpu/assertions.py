"""Kernels whose assertions are looked at after each launch.

Level: runtime. A kernel with assertions records the first that fails in a variable of its own (`emit/debug.py`).
Programs that were not running yet when it failed may still run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mltriton.targets.assertions import Description, Record, check

if TYPE_CHECKING:
    from mltriton.runtime.native.launcher import NativeKernel
    from mltriton.runtime.native.params import ParamSpec
    from mltriton.runtime.slots import Slot

FAILURE = "kernel.failure"  # the record's name


class CheckedKernel:
    """A kernel whose launches raise `DeviceAssertionError` when an assertion of it failed."""

    def __init__(self, kernel: NativeKernel, assertions: Sequence[Description]) -> None:
        self._kernel = kernel
        self._assertions = assertions
        self._failure = Record.from_address(kernel.variables[FAILURE])

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """What `NativeKernel.launcher` gives, with the check behind it."""
        launch = self._kernel.launcher(specs)

        def checked(grid_x: int, grid_y: int, grid_z: int, /, *arguments: Any) -> Any:
            result = launch(grid_x, grid_y, grid_z, *arguments)
            self._check((grid_x, grid_y, grid_z))
            return result

        return checked

    def run(self, grid: tuple[int, int, int], slots: Sequence[Slot], /) -> None:
        """What `NativeKernel.run` does, with the check behind it."""
        self._kernel.run(grid, slots)
        self._check(grid)

    def _check(self, grid: tuple[int, int, int]) -> None:
        check(self._assertions, self._failure, grid)
