"""A kernel for Xe in this process: arguments that pass their specs are copied to the device, and back.

Level: runtime. Takes SPIR-V whose kernel has a parameter for each argument that is no constant: pointers, integers,
floats (f32 for narrower ones), a byte for a boolean. Guarantees: arrays that overlap do so on the device as well, and
keep their alignment.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from mltriton.errors import ArgumentError, calling_place
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.native.portable import read_argument
from mltriton.targets.xe.driver import Memory, Queue, Span

# dpctl takes bytes without a sign only; ctypes wraps negative numbers.
_UNSIGNED = {bits: getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)}
_SCALARS: dict[str, Callable[[int], Any]] = {
    "i1": _UNSIGNED[8],
    "f32": lambda slot: ctypes.c_float(struct.unpack("<f", struct.pack("<I", slot))[0]),
    "f64": lambda slot: ctypes.c_double(struct.unpack("<d", struct.pack("<Q", slot))[0]),
    **{f"{sign}{bits}": made for bits, made in _UNSIGNED.items() for sign in "iu"},
}


class XeKernel:
    """The kernel `name` of a module, built for the queue's device; a program has `lanes` lanes in all."""

    def __init__(self, queue: Queue, image: bytes, name: str, lanes: int) -> None:
        self._queue = queue
        self._kernel = queue.kernel(image, name)
        self._lanes = lanes

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """The function `launch(grid_x, grid_y, grid_z, *arguments)` for arguments that pass `specs`."""

        def launch(grid_x: int, grid_y: int, grid_z: int, /, *arguments: Any) -> Any:
            if len(arguments) != len(specs):
                return NotImplemented
            taken: list[tuple[ParamSpec, int, Any]] = []
            for spec, argument in zip(specs, arguments, strict=True):
                argument = plain(argument)
                slot = read_argument(spec, argument)
                if slot is None:
                    return NotImplemented
                if spec.takes_slot:
                    taken.append((spec, slot, argument))
            self._launch((grid_x, grid_y, grid_z), taken)
            return None

        return launch

    def run(self, grid: tuple[int, int, int], slots: Sequence[int], /) -> None:
        """Raise `ArgumentError`: of arrays that are only addresses, nobody knows how much to copy."""
        message = "an argument is of a kind that cannot be copied to the device"
        raise ArgumentError(message, expected="numpy arrays or torch tensors", place=calling_place())

    def _launch(self, grid: tuple[int, int, int], taken: Sequence[tuple[ParamSpec, int, Any]]) -> None:
        if math.prod(grid) == 0:
            return
        spans = [span_of(argument, slot, spec.writes) for spec, slot, argument in taken if spec.kind == "tensor"]
        memory = Memory(self._queue, spans)
        values = [
            memory.pointer(slot) if spec.kind == "tensor" else _SCALARS[spec.kind](slot) for spec, slot, _ in taken
        ]
        self._queue.submit(self._kernel, values, grid, self._lanes)
        memory.copy_back()


def plain(argument: Any) -> Any:
    """A number of numpy's as Python's, an array of a derived class as numpy's own: what specs know."""
    if isinstance(argument, np.generic):
        return cast(Any, argument).item()
    if isinstance(argument, np.ndarray):
        return cast("np.ndarray[Any, Any]", argument).view(np.ndarray)
    return argument


def span_of(array: Any, address: int, writable: bool) -> Span:
    """The bytes that a numpy array or a torch tensor covers; `address` is that of its first element."""
    if isinstance(array, np.ndarray):
        start, stop = np.lib.array_utils.byte_bounds(cast("np.ndarray[Any, Any]", array))
        return Span(start, stop, writable)
    size = array.element_size()
    last = sum((count - 1) * stride for count, stride in zip(array.shape, array.stride(), strict=True))
    return Span(address, address + (last + 1) * size if array.numel() else address, writable)
