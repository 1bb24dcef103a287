"""NVIDIA GPUs of this machine: their contexts, modules, memory, streams and events.

Level: runtime. A GPU is used through its primary context, as torch, cupy and numba use it. Guarantees: a thread's
current context is left as it was; a module is loaded once for each GPU and image; what does not fit or does not load
raises a named error; importing this module loads neither the driver nor torch.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import cache, cached_property
from hashlib import sha256
from typing import Any

from mltriton.errors import BackendError, DeviceError, LaunchError, OutOfResources
from mltriton.targets.nvidia.api import Api, api, forked

_LOG_BYTES = 1 << 14
_INFO_LOG, _INFO_LOG_BYTES, _ERROR_LOG, _ERROR_LOG_BYTES = 3, 4, 5, 6  # of CUjit_option
_MAX_DYNAMIC_SHARED, _REGISTERS, _LOCAL_BYTES, _STATIC_SHARED = 8, 4, 3, 1  # of CUfunction_attribute
_GLOBAL_ATTACH, _ORDINAL = 1, 9  # CU_MEM_ATTACH_GLOBAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_SHARED_CARVEOUT = 9  # of CUfunction_attribute: percent of what could be cache as well
_PLAIN_SHARED = 48 * 1024  # bytes that a program may have without asking


class Attribute(IntEnum):
    """Of a device: `CUdevice_attribute`."""

    MAX_THREADS = 1
    WARP_SIZE = 10
    REGISTERS = 12  # of a program, 4 bytes each
    CLOCK = 13  # kHz
    MULTIPROCESSORS = 16
    MEMORY_CLOCK = 36  # kHz
    MEMORY_BUS = 37  # bits
    L2_BYTES = 38
    CAPABILITY_MAJOR = 75
    CAPABILITY_MINOR = 76
    MAX_SHARED = 97  # bytes of a program that asks for them


class Function:
    """A kernel on one GPU; `handle` is the driver's."""

    def __init__(self, of: Api, handle: int) -> None:
        self._api = of
        self.handle = handle

    def attribute(self, number: int) -> int:
        """`CUfunction_attribute`."""
        value = ctypes.c_int()
        self._api.call("cuFuncGetAttribute", ctypes.byref(value), number, ctypes.c_void_p(self.handle))
        return value.value

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return self.attribute(_REGISTERS)

    @property
    def spilled(self) -> int:
        """Bytes of a thread's local memory: its stack, and registers that did not fit."""
        return self.attribute(_LOCAL_BYTES)

    @property
    def static_shared(self) -> int:
        """Bytes of shared memory that the machine code itself asks for."""
        return self.attribute(_STATIC_SHARED)


class ManagedMemory:
    """Memory that the GPU and this process share."""

    def __init__(self, device: Device, address: int) -> None:
        self._device = device
        self._pointer = address

    def __del__(self) -> None:
        with suppress(LaunchError):  # A lost GPU has lost its memory, too.
            self._device.free(self._pointer)


class Device:
    """One GPU, by its number."""

    def __init__(self, of: Api, index: int) -> None:
        self.api = of
        self.index = index
        self._functions: dict[tuple[str, str], Function] = {}

    def attribute(self, attribute: Attribute) -> int:
        """A size of the GPU."""
        value = ctypes.c_int()
        self.api.call("cuDeviceGetAttribute", ctypes.byref(value), int(attribute), self._number, what=self._words)
        return value.value

    @cached_property
    def capability(self) -> tuple[int, int]:
        """The compute capability: (9, 0)."""
        return self.attribute(Attribute.CAPABILITY_MAJOR), self.attribute(Attribute.CAPABILITY_MINOR)

    @cached_property
    def name(self) -> str:
        """What NVIDIA calls it."""
        text = ctypes.create_string_buffer(256)
        self.api.call("cuDeviceGetName", text, len(text), self._number, what=self._words)
        return text.value.decode()

    @cached_property
    def context(self) -> int:
        """The primary context, which this process keeps from now on."""
        context = ctypes.c_void_p()
        self.api.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._number, what=self._words)
        return context.value or 0

    @contextmanager
    def current(self, what: str | None = None) -> Generator[None]:
        """Make the GPU's context the thread's while the block runs, which is about `what`."""
        self.api.call("cuCtxPushCurrent", ctypes.c_void_p(self.context), what=what or self._words)
        try:
            yield
        finally:  # It says again what went wrong on the GPU before.
            self.api.function("cuCtxPopCurrent")(ctypes.byref(ctypes.c_void_p()))

    def load(self, image: bytes, name: str, shared: int = 0) -> Function:
        """The kernel `name` of a cubin, or of PTX text, whose programs have so many bytes of dynamic shared memory.

        Raises `OutOfResources` where that is more than the GPU gives a program, `BackendError` with the driver's log
        for PTX that it rejects, and `TargetError` for machine code of another kind of GPU.
        """
        key = (sha256(image).hexdigest(), name)
        if key not in self._functions:
            self._check_shared(name, shared)
            with self.current(f"kernel {name}"):
                function = Function(self.api, self._load(image, name))
                if shared > _PLAIN_SHARED - function.static_shared:
                    self._allow_shared(function, name, shared)
            self._functions[key] = function
        return self._functions[key]

    def _check_shared(self, name: str, shared: int) -> None:
        most = self.attribute(Attribute.MAX_SHARED)
        if shared > most:
            message = f"kernel {name} needs more shared memory than {self.name} gives a program"
            expected, hint = f"at most {most} bytes", "Use smaller blocks, or fewer stages (num_stages)."
            raise OutOfResources(message, expected=expected, found=f"{shared} bytes", hint=hint)

    def _allow_shared(self, function: Function, name: str, shared: int) -> None:
        handle = ctypes.c_void_p(function.handle)
        for attribute, value in ((_MAX_DYNAMIC_SHARED, shared), (_SHARED_CARVEOUT, 100)):
            self.api.call("cuFuncSetAttribute", handle, attribute, value, what=f"kernel {name}")

    def _load(self, image: bytes, name: str) -> int:
        """The function's handle; the module stays loaded as long as the process lives."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log, errors = ctypes.create_string_buffer(_LOG_BYTES), ctypes.create_string_buffer(_LOG_BYTES)
        options = {
            _INFO_LOG: ctypes.addressof(log),
            _INFO_LOG_BYTES: _LOG_BYTES,
            _ERROR_LOG: ctypes.addressof(errors),
            _ERROR_LOG_BYTES: _LOG_BYTES,
        }
        keys, values = (ctypes.c_int * 4)(*options), (ctypes.c_void_p * 4)(*options.values())
        load = self.api.function("cuModuleLoadDataEx")
        status = load(ctypes.byref(module), ctypes.c_char_p(image), len(options), keys, values)
        if status:
            error = self.api.error(status, f"kernel {name}")
            if said := errors.value.decode(errors="replace").strip():
                error.found = f"{error.found}:\n{said}"
            raise error
        self.api.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode(), what=f"kernel {name}")
        if not function.value:
            raise BackendError(f"the module has no kernel {name}")
        return function.value

    def shared(self, size: int) -> ManagedMemory:
        """Memory that the GPU and this process share, zero-filled by nobody. Raises `OutOfResources`."""
        pointer = ctypes.c_uint64()
        with self.current():
            what, bytes_ = f"{size} bytes", ctypes.c_size_t(max(size, 1))
            self.api.call("cuMemAllocManaged", ctypes.byref(pointer), bytes_, _GLOBAL_ATTACH, what=what)
        return ManagedMemory(self, pointer.value)

    def pointer(self, address: int, owner: Any = None) -> int:
        """What a kernel takes for an address: itself; its `owner` must live until the kernel has run."""
        return address

    def allocate(self, size: int) -> int:
        """The address of memory of the GPU's own, zero-filled, until it is freed."""
        pointer = ctypes.c_uint64()
        with self.current():
            self.api.call("cuMemAlloc", ctypes.byref(pointer), ctypes.c_size_t(size), what=f"{size} bytes")
            self.api.call("cuMemsetD8", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return pointer.value

    def free(self, address: int) -> None:
        """Give memory back that `allocate` gave, once the GPU has done everything that it was asked for."""
        with self.current():
            self.api.call("cuMemFree", ctypes.c_uint64(address))

    def read(self, address: int, into: Any) -> None:
        """Copy memory of the GPU's into a ctypes object."""
        with self.current():
            size = ctypes.c_size_t(ctypes.sizeof(into))
            self.api.call("cuMemcpyDtoH", ctypes.byref(into), ctypes.c_uint64(address), size)

    def write(self, address: int, what: Any) -> None:
        """Copy a ctypes object into memory of the GPU's."""
        with self.current():
            size = ctypes.c_size_t(ctypes.sizeof(what))
            self.api.call("cuMemcpyHtoD", ctypes.c_uint64(address), ctypes.byref(what), size)

    def is_capturing(self, stream: int) -> bool:
        """Whether what is launched on a stream goes into a CUDA graph."""
        status = ctypes.c_int()
        with self.current():
            self.api.call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    def wait(self, stream: int, what: str) -> None:
        """Until a stream has done all its work. Raises `DeviceError` of `what` where some of it failed."""
        with self.current(what):
            self.api.call("cuStreamSynchronize", ctypes.c_void_p(stream), what=what)

    @property
    def _words(self) -> str:
        return f"GPU {self.index}"

    @cached_property
    def _number(self) -> int:
        device = ctypes.c_int()
        self.api.call("cuDeviceGet", ctypes.byref(device), self.index, what=self._words)
        return device.value


@cache
def device(index: int) -> Device:
    """A GPU. Raises `DeviceError` where there is no driver, or no such GPU."""
    if not 0 <= index < count():
        found = f"{index} of {count()}"
        raise DeviceError(f"there is no GPU {index} that CUDA could use", found=found)
    return Device(api(), index)


def count() -> int:
    """How many GPUs there are. Raises `DeviceError` where there is no driver."""
    number = ctypes.c_int()
    api().call("cuDeviceGetCount", ctypes.byref(number))
    return number.value


def is_available() -> bool:
    """Whether kernels run here."""
    try:
        return count() > 0
    except LaunchError:
        return False


def current_index() -> int:
    """The GPU that launches without arrays run on: torch's current one, or the first.

    Raises `DeviceError` in a process forked from one in which torch used CUDA.
    """
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if getattr(cuda, "_is_in_bad_fork", bool)():
        raise forked()
    return cuda.current_device() if cuda is not None and cuda.is_available() else 0


def index_of(address: int) -> int:
    """The GPU whose memory is at an address."""
    ordinal = ctypes.c_int()
    api().call("cuPointerGetAttribute", ctypes.byref(ordinal), _ORDINAL, ctypes.c_uint64(address), what="an array")
    return ordinal.value


def stream_function() -> Callable[[int], int]:
    """What gives the stream that launches on a GPU use: torch's current one, or where there is no torch the first."""
    ask = getattr(getattr(sys.modules.get("torch"), "_C", None), "_cuda_getCurrentRawStream", None)
    return _first_stream if ask is None else ask


def _first_stream(index: int) -> int:
    return 0
