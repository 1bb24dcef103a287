"""A kernel for Xe in this process: arguments that pass their specs are copied to the device, and back.

Level: runtime. Takes SPIR-V whose kernel has a parameter for each argument that is no constant: pointers, integers,
floats (f32 for narrower ones), a byte for a boolean; with assertions, a pointer to what they record besides.
Guarantees: arrays that overlap do so on the device as well, and none is aligned to less than here, up to 16 bytes;
torch's tensors on the GPU are used where they lie, on torch's own queue; arrays on several devices are refused.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

from mltriton.errors import DeviceError
from mltriton.runtime.grid import Grid
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.slots import Slot, launcher_of
from mltriton.runtime.specialization import ON_HOST, device_of
from mltriton.targets.assertions import Description, Record, check
from mltriton.targets.host_memory import Memory, held
from mltriton.targets.xe import driver
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.launch_guards import LaunchGuards, Surface

# dpctl takes bytes without a sign only; ctypes wraps negative numbers.
_UNSIGNED = {bits: getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)}
_SCALARS: dict[str, Callable[[int], Any]] = {
    "i1": _UNSIGNED[8],
    "f32": lambda slot: ctypes.c_float(struct.unpack("<f", struct.pack("<I", slot))[0]),
    "f64": lambda slot: ctypes.c_double(struct.unpack("<d", struct.pack("<Q", slot))[0]),
    **{f"{sign}{bits}": made for bits, made in _UNSIGNED.items() for sign in "iu"},
}


class XeKernel:
    """The kernel `name` of a module, built for `queue`'s device; a program has `lanes` lanes in all.

    `module` gives the SPIR-V for a queue's device and surfaces that fail the checks of `guards`; `options` are those of
    the build on a GPU.
    """

    def __init__(
        self,
        queue: Queue,
        module: Callable[[Queue, tuple[Surface, ...]], bytes],
        name: str,
        lanes: int,
        *,
        options: str = "",
        guards: LaunchGuards | None = None,
        assertions: Sequence[Description] = (),
        prints: bool = False,
    ) -> None:
        self._queue = queue
        self._module = module
        self._builds: dict[tuple[int, Queue, tuple[Surface, ...]], Any] = {}  # by process, too: see `Queue.kernel`
        self._name = name
        self._lanes = lanes
        self._options = options
        self._guards = guards
        self._assertions = assertions
        self._prints = prints
        queue.check()
        if guards is None:  # Otherwise the first launch says which version it needs.
            self._build(queue, ())

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """The function `launch(grid_x, grid_y, grid_z, *arguments)` for arguments that pass `specs`."""
        return launcher_of(self.run, specs)

    def run(self, grid: Grid, slots: Sequence[Slot], /) -> None:
        """Launch and wait; on torch's queue only where there are assertions to look at.

        Raises `DeviceError` for arrays on several devices and `ArgumentError` for those of which nobody knows the size.
        """
        if math.prod(grid) == 0:
            return
        devices = {device_of(slot.array): slot for slot in slots if slot.kind == "tensor"}
        if len(devices) > 1:
            expected, found = "all on one device", ", ".join(sorted(devices))
            raise DeviceError("the arrays of a launch lie on several devices", expected=expected, found=found)
        on_host = not devices or ON_HOST in devices
        queue = self._queue if on_host else driver.queue_of_torch(next(iter(devices)))
        arrays = [held(slot.array, slot.bits, slot.writes) for slot in slots if on_host and slot.kind == "tensor"]
        memory = Memory(queue, arrays)
        locate = memory.pointer if on_host else queue.pointer
        values = [locate(slot.bits) if slot.kind == "tensor" else _SCALARS[slot.kind](slot.bits) for slot in slots]
        failure = queue.shared(ctypes.sizeof(Record)) if self._assertions else None
        if failure is not None:
            ctypes.memset(failure._pointer, 0, ctypes.sizeof(Record))
            values.append(failure)
        failing: tuple[Surface, ...] = ()
        if self._guards is not None:
            place = memory.place if on_host else int
            failing = self._guards.failing([place(slot.bits) if slot.kind == "tensor" else slot.bits for slot in slots])
        queue.submit(self._build(queue, failing), values, grid, self._lanes)
        if on_host or failure is not None or self._prints:
            queue.wait()
        if self._prints:
            ctypes.CDLL(None).fflush(None)
        memory.copy_back()
        if failure is not None:
            check(self._assertions, Record.from_address(failure._pointer), grid)

    def _build(self, queue: Queue, failing: tuple[Surface, ...]) -> Any:
        key = (os.getpid(), queue, failing)
        if key not in self._builds:
            self._builds[key] = queue.kernel(
                self._module(queue, failing), self._name, "" if queue.emulated else self._options
            )
        return self._builds[key]
