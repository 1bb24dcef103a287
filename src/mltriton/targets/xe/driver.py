"""Running SPIR-V through SYCL: the queue, programs, and memory that host and device share.

Level: runtime. dpctl (`pip install 'mltriton[xe]'`) gives SYCL to Python. The device is an Intel GPU through Level Zero
or OpenCL or, where there is none, this machine's CPU through Intel's OpenCL runtime, which lacks what only Xe has:
kernels for it are emulated (`emulation/`), and the first one says so on standard error. Tensors that torch has on a GPU
are used on torch's own queue. Guarantees: what is missing, does not build or does not fit raises a named error;
importing this module imports neither dpctl nor LLVM.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mltriton.errors import BackendError, DeviceError, LaunchError, OutOfResources
from mltriton.targets.host_memory import ALIGNMENT
from mltriton.targets.xe import opencl

_INSTALL = "pip install 'mltriton[xe]' installs what runs kernels for Xe."
# In the order of preference: SYCL's name of a device, whether kernels must be emulated there.
_DEVICES = (("level_zero:gpu", False), ("opencl:gpu", False), ("opencl:cpu", True))
_VENDOR = "Intel"  # of GPUs
_GPU_NODES = "d[rx][ig]*"  # /dev/dri of Linux, /dev/dxg of its subsystem for Windows
LANES = 16  # of a warp that multiplies matrices
_CAPSULE = b"SyclQueueRef"  # what a Python object that holds a queue is called; must live as long as such objects


def is_installed() -> bool:
    """Whether SYCL's Python bindings are installed."""
    return find_spec("dpctl") is not None


def emulates() -> bool:
    """Whether kernels for Xe are emulated here. SYCL is only asked where the system has a GPU at all."""
    if not is_installed():
        return False
    if not any(Path("/dev").glob(_GPU_NODES)):
        return True
    try:
        return queue().emulated
    except DeviceError:
        return False


@cache
def queue() -> Queue:
    """The queue of the best device. Raises `DeviceError`."""
    if not is_installed():
        raise DeviceError("dpctl is not installed, through which kernels for Xe run", hint=_INSTALL)
    opencl.register()
    dpctl = import_module("dpctl")
    for name, emulated in _DEVICES:
        try:
            sycl = dpctl.SyclQueue(name, property="in_order")
        except dpctl.SyclQueueCreationError:
            continue
        if emulated or _VENDOR in sycl.sycl_device.vendor:
            return Queue(sycl, emulated)
    expected, found = " or ".join(name for name, _ in _DEVICES), str(dpctl.get_devices())
    raise DeviceError("there is no device for kernels for Xe", expected=expected, found=found, hint=_INSTALL)


def queue_of_torch(place: str) -> Queue:
    """The queue on which torch works on the device `place` ("xpu:0"). Raises `DeviceError`."""
    torch: Any = sys.modules["torch"]
    try:
        address: int = torch.xpu.current_stream(place).sycl_queue
    except (AssertionError, AttributeError, RuntimeError) as error:
        hint = "torch 2.5 and newer tell it; older ones need arrays in main memory."
        raise DeviceError(f"torch does not say on which queue it uses {place}", found=str(error), hint=hint) from error
    return _queue_at(address)


def _queue_at(address: int) -> Queue:
    """The queue that another library made; what was built for it before is found again."""
    new: Callable[..., object] = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    dpctl = import_module("dpctl")
    try:
        sycl = dpctl.SyclQueue(new(address, _CAPSULE, None))
    except (dpctl.SyclQueueCreationError, TypeError, ValueError) as error:
        hint = "torch and dpctl must come with the same version of SYCL (intel-sycl-rt)."
        raise DeviceError("torch's queue is none that dpctl knows", found=str(error), hint=hint) from error
    return _FOREIGN.setdefault(sycl, Queue(sycl, emulated=not sycl.sycl_device.is_gpu))


# Queues of other libraries, by SYCL's; programs by context and device: all queues of a device share them.
_FOREIGN: dict[Any, Queue] = {}
_PROGRAMS: dict[tuple[Any, Any], dict[tuple[str, str], Any]] = {}


class Queue:
    """A device and what was built for it."""

    def __init__(self, sycl: Any, emulated: bool) -> None:
        self.sycl = sycl
        self.emulated = emulated
        self.name: str = sycl.sycl_device.name
        self._process = os.getpid()
        self._said = False

    def kernel(self, image: bytes, name: str, options: str = "") -> Any:
        """A kernel of a SPIR-V module, which is built once with each text of options.

        Raises `BackendError` with the build's log.
        """
        if os.getpid() != self._process:
            message = "SYCL cannot be used in a process forked from one that used it"
            raise DeviceError(message, hint='Start processes by multiprocessing\'s "spawn" method.')
        programs = _PROGRAMS.setdefault((self.sycl.sycl_context, self.sycl.sycl_device), {})
        key = (sha256(image).hexdigest(), options)
        if key not in programs:
            programs[key] = self._build(image, options)
        program = programs[key]
        if not program.has_sycl_kernel(name):
            raise BackendError(f"the module has no kernel {name}")
        return program.get_sycl_kernel(name)

    def submit(self, kernel: Any, arguments: Sequence[Any], groups: tuple[int, int, int], lanes: int) -> None:
        """Run a kernel with so many lanes in each of the groups."""
        device = self.sycl.sycl_device
        most = device.max_work_group_size
        if lanes > most:
            expected = f"at most {most} lanes"
            hint = "A program has num_warps times the lanes of a warp: choose a smaller num_warps."
            raise OutOfResources(
                "a program has more lanes than the device", expected=expected, found=str(lanes), hint=hint
            )
        # SYCL counts dimensions from the outermost.
        everyone, local = [groups[2], groups[1], groups[0] * lanes], [1, 1, lanes]
        try:
            self.sycl.submit(kernel, list(arguments), everyone, local)
        except Exception as error:
            raise LaunchError(f"{self.name} does not start the kernel", found=str(error)) from error

    def wait(self) -> None:
        """Until everything has run that was submitted. Raises `DeviceError` where the device does not say so."""
        try:
            self.sycl.wait()
        except Exception as error:
            hint = "It may have gone outside of its arrays, which `mltriton verify` finds."
            raise DeviceError(f"{self.name} was lost while the kernel ran", found=str(error), hint=hint) from error

    def pointer(self, address: int, owner: Any = None) -> Any:
        """The argument for an address in memory of the device's, which lives as long as its `owner`."""
        return import_module("dpctl.memory").as_usm_memory(_View(owner, address, self.sycl))

    def shared(self, size: int) -> Any:
        """Memory that host and device share. Raises `OutOfResources`."""
        memory = import_module("dpctl.memory")
        try:
            return memory.MemoryUSMShared(size, alignment=ALIGNMENT, queue=self.sycl)
        except memory.USMAllocationError as error:
            hint = "Use smaller arrays, or fewer at a time."
            message = f"{self.name} has no memory for the arrays of the launch"
            raise OutOfResources(message, found=f"{size} bytes", hint=hint) from error

    def check(self) -> None:
        """Raise `DeviceError` for a device whose warps are not those of kernels for Xe."""
        sizes: list[int] = list(self.sycl.sycl_device.sub_group_sizes)
        if LANES not in sizes:
            message = f"{self.name} has no warps of {LANES} lanes"
            hint = "Kernels for Xe need a GPU of one of the targets' devices."
            raise DeviceError(message, expected=str(LANES), found=", ".join(map(str, sizes)), hint=hint)

    def announce(self, target: str) -> None:
        """Say, the first time, that kernels for `target` are emulated."""
        if self.emulated and not self._said:
            self._said = True
            sys.stderr.write(
                f"mltriton: there is no Intel GPU here; kernels for {target} run emulated on {self.name}\n"
            )

    def _build(self, image: bytes, options: str) -> Any:
        from mltriton.targets.xe.spirv.words import read

        program = import_module("dpctl.program")
        try:
            return program.create_program_from_spirv(self.sycl, image, options)
        except program.SyclProgramCompilationError as error:
            log = str(error).strip() or (opencl.build_log(image) if self.emulated else "")
            needs = ", ".join(read(image).extensions)
            hint = f"The module uses {needs}: a newer driver may know them." if needs else None
            raise BackendError(f"{self.name} rejects the module", found=log or None, hint=hint) from error


class _View:
    """A place in shared memory, by SYCL's protocol for arrays."""

    def __init__(self, owner: Any, address: int, sycl: Any) -> None:
        self.owner = owner
        self.__sycl_usm_array_interface__ = {
            "data": (address, False),
            "shape": (1,),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": sycl,
        }
