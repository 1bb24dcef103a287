"""A driver library of CUDA's that is none: its GPUs' memory is this process's, and kernels are Python functions.

Functions have C addresses, so that the launchers' machine code calls them as it calls the driver's. A module is PTX, or
a text `NAME(TYPE, ...)`; what it names is looked up among `kernels` and called once a launch, with the grid and a value
for each parameter.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

POINTER = ctypes.c_void_p
TYPES: dict[str, Any] = {
    "ptr": ctypes.c_uint64,
    "map": ctypes.c_uint64,  # of which memory has the number among `maps`
    "i1": ctypes.c_bool,
    **{f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
NAMES = {2: b"CUDA_ERROR_OUT_OF_MEMORY", 218: b"CUDA_ERROR_INVALID_PTX", 700: b"CUDA_ERROR_ILLEGAL_ADDRESS"}
INVALID_VALUE, OUT_OF_MEMORY, NO_CONTEXT, NOT_FOUND = 1, 2, 201, 500
_WITHOUT_CONTEXT = ("cuInit", "cuGetErrorName", "cuDevice", "cuCtx", "cuPointer")
CONTEXTS = 0xC000  # the first GPU's; what a stream, a module and a function are called is a number as well
ATTRIBUTES = {
    1: 1024,
    10: 32,
    12: 65536,
    13: 1980000,
    16: 132,
    36: 2619000,
    37: 5120,
    38: 50 << 20,
    75: 9,
    76: 0,
    97: 232448,
}

Kernel = Callable[..., object]


class FakeCuda:
    """What `ctypes.CDLL` would give for a machine with so many GPUs.

    `calls` are the names of the functions called, in order; `failing` maps one to the status it returns instead of
    working; `log` is what its compiler says of PTX.
    """

    def __init__(self, kernels: dict[str, Kernel] | None = None, devices: int = 1) -> None:
        self.kernels = kernels or {}
        self.devices = devices
        self.calls: list[str] = []
        self.failing: dict[str, int] = {}
        self.log = b""
        self.contexts = [0]
        self.launches: list[tuple[Any, ...]] = []
        self.capturing = False
        self.flushed = 0
        self.events: list[float] = []
        self.attributes: list[tuple[int, int]] = []  # of launches: number and value
        self.allocated: dict[int, Any] = {}
        self.maps: list[tuple[Any, ...]] = []  # base, sizes, strides, box; kind of elements, swizzle
        self._modules: list[tuple[str, list[str]]] = []
        self._made: dict[str, Any] = {}

    def __getattr__(self, symbol: str) -> Any:
        name = symbol.removesuffix("_v2")
        if name not in _SIGNATURES:
            raise AttributeError(symbol)
        if name not in self._made:
            work = getattr(self, f"_{name}", lambda *_: 0)

            def call(*arguments: Any) -> int:
                self.calls.append(name)
                if not name.startswith(_WITHOUT_CONTEXT) and not self.contexts[-1]:
                    return NO_CONTEXT
                return self.failing.get(name) or work(*arguments) or 0

            self._made[name] = ctypes.CFUNCTYPE(ctypes.c_int, *_SIGNATURES[name])(call)
        return self._made[name]

    def _cuGetErrorName(self, status: int, out: int) -> None:
        POINTER.from_address(out).value = ctypes.cast(NAMES.get(status, b"CUDA_ERROR"), POINTER).value

    def _cuDeviceGetCount(self, out: int) -> None:
        ctypes.c_int.from_address(out).value = self.devices

    def _cuDeviceGet(self, out: int, index: int) -> None:
        ctypes.c_int.from_address(out).value = 70 + index

    def _cuDeviceGetAttribute(self, out: int, attribute: int, device: int) -> None:
        ctypes.c_int.from_address(out).value = ATTRIBUTES[attribute]

    def _cuDeviceGetName(self, out: int, size: int, device: int) -> None:
        ctypes.memmove(out, b"Fake H100\0", 10)

    def _cuDevicePrimaryCtxRetain(self, out: int, device: int) -> None:
        POINTER.from_address(out).value = CONTEXTS + device - 70

    def _cuCtxGetCurrent(self, out: int) -> None:
        POINTER.from_address(out).value = self.contexts[-1]

    def _cuCtxPushCurrent(self, context: int) -> None:
        self.contexts.append(context)

    def _cuCtxPopCurrent(self, out: int) -> None:
        POINTER.from_address(out).value = self.contexts.pop()

    def _cuModuleLoadDataEx(self, out: int, image: int, count: int, keys: int, values: int) -> int:
        if self.log:
            buffers = (POINTER * count).from_address(values)
            ctypes.memmove(buffers[2], self.log + b"\0", len(self.log) + 1)
            return 218
        self._modules.append(_signature(ctypes.string_at(image).decode()))
        POINTER.from_address(out).value = len(self._modules)
        return 0

    def _cuModuleGetFunction(self, out: int, module: int, name: int) -> int:
        if ctypes.string_at(name).decode() != self._modules[module - 1][0]:
            return NOT_FOUND
        POINTER.from_address(out).value = module
        return 0

    def _cuFuncGetAttribute(self, out: int, attribute: int, function: int) -> None:
        ctypes.c_int.from_address(out).value = 0

    def _cuMemAlloc(self, out: int, size: int) -> int:
        if size > 1 << 40:
            return OUT_OF_MEMORY
        memory = ctypes.create_string_buffer(size + 256)
        address = -(-ctypes.addressof(memory) // 256) * 256
        self.allocated[address] = memory
        ctypes.c_uint64.from_address(out).value = address
        return 0

    def _cuMemAllocManaged(self, out: int, size: int, flags: int) -> int:
        return self._cuMemAlloc(out, size)

    def _cuMemFree(self, address: int) -> None:
        del self.allocated[address]

    def _cuMemcpyDtoH(self, to: int, source: int, size: int) -> None:
        ctypes.memmove(to, source, size)

    def _cuMemcpyHtoD(self, to: int, source: int, size: int) -> None:
        ctypes.memmove(to, source, size)

    def _cuMemsetD8(self, address: int, value: int, size: int) -> None:
        ctypes.memset(address, value, size)

    def _cuStreamIsCapturing(self, stream: int, out: int) -> None:
        ctypes.c_int.from_address(out).value = int(self.capturing)

    def _cuPointerGetAttribute(self, out: int, attribute: int, pointer: int) -> None:
        ctypes.c_int.from_address(out).value = 0

    def _cuMemsetD8Async(self, address: int, value: int, size: int, stream: int) -> None:
        self.flushed += 1

    def _cuEventCreate(self, out: int, flags: int) -> None:
        self.events.append(0.0)
        POINTER.from_address(out).value = len(self.events)

    def _cuEventRecord(self, event: int, stream: int) -> None:
        self.events[event - 1] = len(self.launches)

    def _cuEventElapsedTime(self, out: int, start: int, end: int) -> None:
        """A launch takes a millisecond."""
        ctypes.c_float.from_address(out).value = self.events[end - 1] - self.events[start - 1]

    def _cuTensorMapEncodeTiled(
        self, out: int, kind: int, rank: int, base: int, sizes: int, strides: int, box: int, steps: int, *how: int
    ) -> int:
        found = (ctypes.c_uint64 * rank).from_address(sizes), (ctypes.c_uint64 * (rank - 1)).from_address(strides)
        if out % 64 or base % 16 or any(step % 16 or step >= 1 << 40 for step in found[1]) or 0 in found[0]:
            return INVALID_VALUE
        boxes, ones = ((ctypes.c_uint32 * rank).from_address(at) for at in (box, steps))
        assert set(ones) == {1}
        assert how[0] == 0 and how[2:] == (3, 0)
        ctypes.c_uint64.from_address(out).value = len(self.maps)
        self.maps.append((base, *map(tuple, found), tuple(boxes), kind, how[1]))
        return 0

    def _cuLaunchKernel(self, function: int, *rest: Any) -> None:
        *sizes, stream, parameters, _ = rest
        name, types = self._modules[function - 1]
        places = (POINTER * len(types)).from_address(parameters)
        values = [TYPES[kind].from_address(place).value for kind, place in zip(types, places, strict=True)]
        self.launches.append((name, tuple(sizes), stream, self.contexts[-1], values))
        self.kernels[name](tuple(sizes[:3]), *values)

    def _cuLaunchKernelEx(self, config: int, function: int, parameters: int, extra: int) -> None:
        sizes = (ctypes.c_uint * 7).from_address(config)
        stream, attributes = (POINTER.from_address(config + at).value for at in (32, 40))
        for number in range(ctypes.c_uint.from_address(config + 48).value):
            assert attributes is not None
            attribute = (ctypes.c_uint * 18).from_address(attributes + 72 * number)
            self.attributes.append((attribute[0], attribute[2]))
        self._cuLaunchKernel(function, *sizes, stream, parameters, extra)


def _signature(text: str) -> tuple[str, list[str]]:
    """The kernel's name and the types of its parameters."""
    entry = re.search(r"\.entry (\w+)\((.*?)\)", text, re.DOTALL)
    if entry is not None:
        return entry[1], re.findall(r"\.param (?:\.align \d+ )?\.(\w+)", entry[2])
    plain = re.fullmatch(r"(\w+)\((.*)\)", text)
    assert plain is not None
    return plain[1], plain[2].split(", ")


_INT, _SIZE, _WORD = ctypes.c_int, ctypes.c_size_t, ctypes.c_uint64
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_INT,),
    "cuGetErrorName": (_INT, POINTER),
    "cuDeviceGetCount": (POINTER,),
    "cuDeviceGet": (POINTER, _INT),
    "cuDeviceGetAttribute": (POINTER, _INT, _INT),
    "cuDeviceGetName": (POINTER, _INT, _INT),
    "cuDevicePrimaryCtxRetain": (POINTER, _INT),
    "cuCtxGetCurrent": (POINTER,),
    "cuCtxPushCurrent": (POINTER,),
    "cuCtxPopCurrent": (POINTER,),
    "cuModuleLoadDataEx": (POINTER, POINTER, _INT, POINTER, POINTER),
    "cuModuleGetFunction": (POINTER, POINTER, POINTER),
    "cuFuncGetAttribute": (POINTER, _INT, POINTER),
    "cuFuncSetAttribute": (POINTER, _INT, _INT),
    "cuMemAlloc": (POINTER, _SIZE),
    "cuMemAllocManaged": (POINTER, _SIZE, _INT),
    "cuMemFree": (_WORD,),
    "cuMemcpyDtoH": (POINTER, _WORD, _SIZE),
    "cuMemcpyHtoD": (_WORD, POINTER, _SIZE),
    "cuMemsetD8": (_WORD, ctypes.c_ubyte, _SIZE),
    "cuMemsetD8Async": (_WORD, ctypes.c_ubyte, _SIZE, POINTER),
    "cuEventCreate": (POINTER, _INT),
    "cuEventRecord": (POINTER, POINTER),
    "cuEventElapsedTime": (POINTER, POINTER, POINTER),
    "cuEventDestroy": (POINTER,),
    "cuStreamIsCapturing": (POINTER, POINTER),
    "cuStreamSynchronize": (POINTER,),
    "cuPointerGetAttribute": (POINTER, _INT, _WORD),
    "cuTensorMapEncodeTiled": (POINTER, _INT, _INT, *[POINTER] * 5, *[_INT] * 4),
    "cuLaunchKernelEx": (POINTER, POINTER, POINTER, POINTER),
    "cuLaunchKernel": (POINTER, *[ctypes.c_uint] * 7, POINTER, POINTER, POINTER),
}
