"""The CUDA driver library as Python calls, and what its status codes mean.

Level: runtime. `api()` finds the library and initialises it; `Api.call` calls a function by its name and raises a named
error for every status but success. It is called by ctypes, since launchers call some of its functions from machine code
and need their addresses; where the system's loader does not know it, `cuda.pathfinder` (which comes with
`cuda-bindings`) looks for it. Guarantees: without driver, GPU or permission the error says what is missing; importing
this module loads nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from importlib import import_module
from typing import Any

from mltriton.errors import BackendError, DeviceError, LaunchError, OutOfResources, TargetError, TritonError
from mltriton.records import NamedTuple

_LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
_OUTSIDE = (
    "It may have gone outside of its arrays: debug=True names the line, `mltriton verify` finds it on any machine."
)
_AGAIN = "Nothing runs on this GPU until the process has started anew."

# Functions whose symbol has a version, which a program names at its own risk: the interface of CUDA 11 and newer.
_VERSIONS = {
    name: f"{name}_v2"
    for name in (
        *("cuCtxPushCurrent", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease", "cuEventDestroy", "cuMemAlloc"),
        *("cuMemFree", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemsetD8"),
    )
}


class Meaning(NamedTuple):
    """What a status means to the user: the error, what is wrong, and what to do about it."""

    error: type[TritonError]
    text: str
    hint: str | None = None


_LOST = {
    700: ("accessed memory that is not there", _OUTSIDE),
    702: ("took longer than the system lets it run", None),
    710: ("ended at an assertion", None),
    714: ("lost its stack", None),
    715: ("met an instruction that the GPU does not know", None),
    716: ("accessed memory at an address that is not a multiple of the access's size", _OUTSIDE),
    717: ("accessed a kind of memory by an instruction for another one", None),
    718: ("jumped to where there is no code", None),
    719: ("was ended by the GPU", _OUTSIDE),
}
# Status -> meaning; `cuda.h` says more. "{what}" is the kernel, or what else was asked.
_MEANINGS: dict[int, Meaning] = {
    2: Meaning(OutOfResources, "{what}: the GPU has no memory left", "Use smaller arrays, or fewer at a time."),
    34: Meaning(DeviceError, "the CUDA driver is a stub, which is there for linking only", "Install NVIDIA's driver."),
    100: Meaning(DeviceError, "there is no NVIDIA GPU here that CUDA could use"),
    101: Meaning(DeviceError, "{what}: there is no such GPU"),
    200: Meaning(BackendError, "{what}: the CUDA driver does not read the kernel's machine code"),
    209: Meaning(TargetError, "{what} was compiled for another kind of GPU", "Compile for the target `cuda`."),
    218: Meaning(BackendError, "{what}: the CUDA driver rejects the PTX"),
    222: Meaning(BackendError, "{what}: the CUDA driver is older than the PTX", "Install a newer driver."),
    300: Meaning(BackendError, "{what}: the CUDA driver does not read the kernel's machine code"),
    500: Meaning(BackendError, "{what} is not in the kernel's module"),
    701: Meaning(
        OutOfResources,
        "{what} needs more registers or threads than a multiprocessor of the GPU has",
        "Use fewer warps (num_warps) or smaller blocks.",
    ),
    720: Meaning(
        OutOfResources, "{what} has more programs than run at the same time", "Leave out launch_cooperative_grid."
    ),
    801: Meaning(LaunchError, "{what}: the GPU or its driver cannot do this"),
    803: Meaning(DeviceError, "the CUDA driver's parts are of different versions", "Restart the machine."),
    900: Meaning(LaunchError, "{what} does what a CUDA graph cannot capture", "Launch it once before the capture."),
    901: Meaning(LaunchError, "{what}: the capture of a CUDA graph has failed before"),
    **{
        status: Meaning(DeviceError, f"{{what}}, or a kernel before it on the stream, {text}", f"{hint or ''} {_AGAIN}")
        for status, (text, hint) in _LOST.items()
    },
}


class Api:
    """A loaded driver library, initialised. The library's functions return a status, 0 for success."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self._process = os.getpid()
        self.check(self.function("cuInit")(0), "CUDA")

    def function(self, name: str) -> Any:
        """The C function. Raises `DeviceError` where the driver is too old to have it."""
        try:
            return getattr(self.library, _VERSIONS.get(name, name))
        except AttributeError:
            message = f"the CUDA driver has no {name}"
            raise DeviceError(message, hint="Install a newer driver: CUDA 12 or later.") from None

    def address(self, name: str) -> int:
        """Where the C function is."""
        return ctypes.cast(self.function(name), ctypes.c_void_p).value or 0

    def call(self, name: str, *arguments: Any, what: str = "CUDA") -> None:
        """Call a function; ints go as C's int, and what is wider in its ctypes type."""
        if os.getpid() != self._process:
            raise forked()
        self.check(self.function(name)(*arguments), what)

    def check(self, status: int, what: str) -> None:
        """Raise the error for a status that is none of success."""
        if status:
            raise self.error(status, what)

    def error(self, status: int, what: str) -> TritonError:
        """The error for a status, of the kernel (or other thing) `what`."""
        meaning = _MEANINGS.get(status, Meaning(LaunchError, "{what}: the CUDA driver refuses"))
        found = f"CUDA's error {status}, {self.name_of(status)}"
        return meaning.error(meaning.text.format(what=what), found=found, hint=(meaning.hint or "").strip() or None)

    def name_of(self, status: int) -> str:
        """A status as CUDA calls it."""
        name = ctypes.c_char_p()
        unknown = self.function("cuGetErrorName")(status, ctypes.byref(name))
        return "unknown" if unknown or name.value is None else name.value.decode()


def forked() -> DeviceError:
    """What is said in a process whose parent used CUDA."""
    message = "CUDA cannot be used in a process forked from one that used it"
    return DeviceError(message, hint='Start processes by multiprocessing\'s "spawn" method.')


@cache
def api() -> Api:
    """The driver library of this machine. Raises `DeviceError` where there is none, or no GPU."""
    return Api(_library())


def _library() -> Any:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    try:
        return ctypes.CDLL(import_module("cuda.pathfinder").load_nvidia_dynamic_lib("cuda").abs_path)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        message = "kernels for NVIDIA GPUs run through NVIDIA's driver, which is not installed here"
        hint = f"Without it they can be compiled, and run by `mltriton verify`. ({' or '.join(_LIBRARIES)} is missing.)"
        raise DeviceError(message, hint=hint) from error
