"""Launches whose accesses are checked: the kernel is told where the arrays passed begin and how long they are.

Level: runtime. Wraps a kernel compiled with `sanitize=True`, which has two more parameters for each pointer
(`passes/tt/check_accesses.py`). The memory of an array is what its own elements cover, strides included; an array that
does not say how large it is has no end. Such launches are prepared in Python: tens of microseconds each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mltriton.runtime.extents import Span, covered_by
from mltriton.runtime.overlaps import warn_of_overlaps
from mltriton.runtime.parts import unwrapped
from mltriton.runtime.slots import Slot, launcher_of

if TYPE_CHECKING:
    from mltriton.runtime.native.params import ParamSpec
    from mltriton.targets.target import LoadedKernel

_ENDLESS = 2**62


class SanitizedKernel:
    """A kernel whose launches raise `OutOfBoundsError` for an access outside of the arrays passed, and warn of arrays
    that overlap. `pointers` are the names of its parameters that are tensors.
    """

    def __init__(self, kernel: LoadedKernel, pointers: Sequence[str]) -> None:
        self._kernel, self._pointers = kernel, pointers

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """The function `launch(grid_x, grid_y, grid_z, *arguments)` for arguments that pass `specs`."""
        return launcher_of(self.run, specs)

    def run(self, grid: tuple[int, int, int], slots: Sequence[Slot], /) -> None:
        """Launch with the arrays' bounds behind the other slots."""
        tensors = [slot for slot in slots if slot.kind == "tensor"]
        warn_of_overlaps(self._pointers, tensors)
        bounds = [bound for slot in tensors for bound in _bounds(slot)]
        self._kernel.run(grid, [*slots, *bounds])


def _bounds(slot: Slot) -> tuple[Slot, Slot]:
    """Where an array begins, and its bytes."""
    array = unwrapped(slot.array)
    start, stop = covered_by(array, slot.bits) or Span(slot.bits, slot.bits + _ENDLESS)
    return slot._replace(bits=start, writes=False), Slot("i64", stop - start)
