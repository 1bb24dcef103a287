"""A kernel for NVIDIA GPUs in this process.

Level: runtime. Takes a cubin or PTX whose kernel has a parameter for each argument that is no constant: addresses,
integers, floats (f32 for narrower ones), a byte for a boolean; with assertions, the address of what they record, too.
Guarantees: a launch runs on the GPU where its arrays lie, in its primary context, on torch's current stream; it waits
only for kernels with assertions or prints and for arrays of main memory, which are copied to the GPU and back; without
those it allocates nothing, so that a CUDA graph can capture it.
"""

from __future__ import annotations

import ctypes
import math
import struct
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from mltriton.errors import (
    DeviceError,
    GridError,
    LaunchError,
    PerformanceWarning,
    TritonError,
    calling_level,
    calling_location,
)
from mltriton.runtime.grid import Grid, even_programs
from mltriton.runtime.native.launcher import is_native, new_launcher
from mltriton.runtime.native.params import ParamSpec, encode_params
from mltriton.runtime.native.pool import pool
from mltriton.runtime.slots import Slot, launcher_of
from mltriton.runtime.specialization import ON_HOST, device_of, takes_pinned
from mltriton.targets.assertions import Description, Record, check
from mltriton.targets.host_memory import Memory, held
from mltriton.targets.nvidia import driver
from mltriton.targets.nvidia.driver import Device, Function, stream_function
from mltriton.targets.nvidia.tensor_maps import TensorMap

if TYPE_CHECKING:
    from mltriton.targets.target import LoadedKernel

_TABLE = struct.Struct("<QQIIIIQQQQQQQQ")  # %CudaTable of runtime/native/ir/cuda.ll
_CONFIG = struct.Struct("<7I4xQQI4x")  # the driver's CUlaunchConfig
_ATTRIBUTE = struct.Struct("<I4xI60x")  # and CUlaunchAttribute: its number, and its value
_MOST_PROGRAMS = 65535  # along y and z
_PROCESSORS = driver.Attribute.MULTIPROCESSORS
_FUNCTIONS = {  # variables of the launcher's machine code -> functions of the driver
    "cu_launch_kernel": "cuLaunchKernel",
    "cu_launch_kernel_ex": "cuLaunchKernelEx",
    "cu_ctx_get_current": "cuCtxGetCurrent",
    "cu_ctx_push_current": "cuCtxPushCurrent",
    "cu_ctx_pop_current": "cuCtxPopCurrent",
    "cu_tensor_map_encode": "cuTensorMapEncodeTiled",
}


class CudaKernel:
    """The kernel `name` of an image: programs of `threads` threads and `shared` bytes of dynamic shared memory."""

    def __init__(
        self,
        image: bytes,
        name: str,
        *,
        threads: int,
        shared: int = 0,
        assertions: Sequence[Description] = (),
        prints: bool = False,
        maps: Sequence[TensorMap] = (),
        attributes: Sequence[int] = (),
        beside: int = 1,
        takes_turns: bool = False,
    ) -> None:
        self.name = name
        self.maps = maps
        self.otherwise: Callable[[], LoadedKernel] | None = None  # the kernel for launches that cannot make the maps
        self.in_one_round: Callable[[], LoadedKernel] | None = None  # of which so many share a multiprocessor:
        self._beside = beside
        self._takes_turns = takes_turns
        self.threads = threads
        self.shared = shared
        self._attributes = ctypes.create_string_buffer(b"".join(_ATTRIBUTE.pack(number, 1) for number in attributes))
        self._attribute_count = len(attributes)
        self._image = image
        self._assertions = assertions
        self._waits = bool(assertions) or prints
        self._functions: dict[Device, Function] = {}
        self._records: dict[Device, int] = {}  # addresses of what assertions record
        self._copied = False

    def on(self, device: Device) -> Function:
        """The kernel on a GPU, where it is loaded the first time that it is needed."""
        if device not in self._functions:
            self._functions[device] = device.load(self._image, self.name, self.shared)
        return self._functions[device]

    def take(self, image: bytes) -> None:
        """Load this in the image's place: the kernel as PTX runs on GPUs newer than its own, which a cubin does not."""
        self._image = image

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """The function `launch(grid_x, grid_y, grid_z, *arguments)` for arguments that pass `specs`.

        Arrays that all lie on one GPU are handed over by machine code.
        """
        places = {spec.device for spec in specs if spec.kind == "tensor"}
        if len(places) > 1 or ON_HOST in places or not _takes_tensors():
            return launcher_of(self.run, specs)
        device = driver.device(int(next(iter(places)).partition(":")[2]) if places else driver.current_index())
        launch = self._native(device, specs)
        return self._waiting(device, launch) if self._waits else launch

    def _native(self, device: Device, specs: Sequence[ParamSpec]) -> Callable[..., Any]:
        library = pool().library
        for variable, name in _FUNCTIONS.items():
            library.pointer(variable).value = device.api.address(name)
        function, record = self.on(device), self._record(device)
        slots = sum(spec.takes_slot for spec in specs)
        counts = (self.threads, self.shared, len(specs), slots)
        attributes = ctypes.addressof(self._attributes), self._attribute_count
        others = *self._programs_of_others(device), self._takes_turns and device.attribute(_PROCESSORS)
        counts = *counts, record, len(self.maps)
        table = _TABLE.pack(function.handle, device.context, *counts, *attributes, *others, device.index)
        table += encode_params(specs, pool().torch_key) + b"".join(map_.encoded() for map_ in self.maps)

        def refuse(status: int, x: int, y: int, z: int) -> NoReturn:
            self._refuse(device, status, (x, y, z))

        def launching(find: Callable[[], LoadedKernel]) -> Callable[..., Any]:
            made = cache(lambda: find().launcher(specs))
            return lambda *arguments: made()(*arguments)

        others = launching(self._without_maps), launching(self._in_one_round)
        holder = (table, stream_function(), device.index, refuse, *others, function, self._attributes, *specs)
        return new_launcher("launch_cuda", holder)

    def _programs_of_others(self, device: Device) -> tuple[int, int]:
        """Launches of more programs than the first number, and at most the second, are of `in_one_round`."""
        if self._beside == 1:
            return 0, 0
        count = device.attribute(_PROCESSORS)
        return count, count * self._beside

    def _in_one_round(self) -> LoadedKernel:
        assert self.in_one_round is not None, "what loads the kernel says how it is compiled"
        return self.in_one_round()

    def _waiting(self, device: Device, launch: Callable[..., Any]) -> Callable[..., Any]:
        """A launcher that looks at what the kernel recorded."""

        def launch_and_wait(x: int, y: int, z: int, /, *arguments: Any) -> Any:
            result = launch(x, y, z, *arguments)
            if result is None:
                self._finish(device, stream_function()(device.index), (x, y, z))
            return result

        return launch_and_wait

    def run(self, grid: Grid, slots: Sequence[Slot], /) -> None:
        """Launch with arguments of any kind, and wait where arrays lie in main memory.

        Raises `DeviceError` for arrays on several devices and `ArgumentError` for those of which nobody knows the size.
        """
        if math.prod(grid) == 0:
            return
        places = {device_of(slot.array) for slot in slots if slot.kind == "tensor"}
        if len(places) > 1 and ON_HOST in places:
            places = {device_of(slot.array) for slot in slots if slot.kind == "tensor" and not _is_pinned(slot.array)}
        if len(places) > 1:
            expected, found = "all on one device", ", ".join(sorted(places))
            raise DeviceError("the arrays of a launch lie on several devices", expected=expected, found=found)
        place = next(iter(places), "")
        device = driver.device(int(place.partition(":")[2] or 0) if place[:4] == "cuda" else driver.current_index())
        on_host = [slot for slot in slots if slot.kind == "tensor"] if place == ON_HOST else []
        memory = Memory(device, [held(slot.array, slot.bits, slot.writes) for slot in on_host])
        if on_host:
            self._warn()
        locate = memory.pointer if place == ON_HOST else int
        words = [locate(slot.bits) if slot.kind == "tensor" else slot.bits for slot in slots]
        stream = _stream_of(slots) or stream_function()(device.index)
        above, most = self._programs_of_others(device)
        if above < math.prod(grid) <= most:
            self._in_one_round().run(grid, slots)
            return
        maps = self._encoded(device, words)
        if maps is None:
            self._without_maps().run(grid, slots)
            return
        if self._takes_turns:
            shared = shared_out(grid, device.attribute(_PROCESSORS))
            self._submit(device, stream, shared, [*words, grid[0]], maps)
        else:
            self._submit(device, stream, grid, [*words, self._record(device)], maps)
        if place == ON_HOST or self._waits:
            self._finish(device, stream, grid, memory)

    def _encoded(self, device: Device, words: Sequence[int]) -> list[Any] | None:
        """The tensor maps for a launch with these words for its arguments; None where one cannot be made."""
        if not self.maps:
            return []
        made: list[Any] = []
        with device.current(f"kernel {self.name}"):  # A thread that has launched nothing yet has none.
            for map_ in self.maps:
                found = map_.evaluated(words)
                encoded = found and found.encoded_by(device.api.function("cuTensorMapEncodeTiled"))
                if encoded is None:
                    return None
                made.append(encoded)
        return made

    def _without_maps(self) -> LoadedKernel:
        """The kernel that does without tensor maps."""
        if self.otherwise is None:
            message = f"the arrays of kernel {self.name} cannot be described to the GPU's engine for tensor copies"
            expected = "positive sizes, bases and strides that are multiples of 16 bytes"
            raise LaunchError(message, expected=expected, hint='Compile with tensor_maps="none".')
        return self.otherwise()

    def _submit(self, device: Device, stream: int, grid: Grid, words: Sequence[int], maps: Sequence[Any] = ()) -> None:
        """Launch with a word for each parameter, of which the kernel takes as many bytes as it needs, but for the last,
        which comes after the tensor maps.
        """
        function = self.on(device)
        values = (ctypes.c_uint64 * len(words))(*(word & (1 << 64) - 1 for word in words))
        size, first = ctypes.sizeof(ctypes.c_uint64), ctypes.addressof(values)
        *places, last = (first + size * number for number in range(len(words)))
        places += [*map(ctypes.addressof, maps), last]
        pointers = (ctypes.c_void_p * len(places))(*places)
        sizes = (*grid, self.threads, 1, 1, self.shared)
        with device.current(f"kernel {self.name}"):
            handle = ctypes.c_void_p(function.handle)
            if self._attribute_count:
                attributes = ctypes.addressof(self._attributes), self._attribute_count
                config = _CONFIG.pack(*sizes, stream, *attributes)
                status = device.api.function("cuLaunchKernelEx")(config, handle, pointers, None)
            else:
                launch = device.api.function("cuLaunchKernel")
                status = launch(handle, *sizes, ctypes.c_void_p(stream), pointers, None)
        if status:
            self._refuse(device, status, grid)

    def _finish(self, device: Device, stream: int, grid: Grid, memory: Memory | None = None) -> None:
        """Wait, bring arrays of main memory back, print what programs printed and look at their assertions."""
        if device.is_capturing(stream):
            return
        try:
            device.wait(stream, f"kernel {self.name}")
        except TritonError as error:
            raise error.at(calling_location()) from None
        ctypes.CDLL(None).fflush(None)
        if memory is not None:
            memory.copy_back()
        if self._assertions:
            record = Record()
            device.read(self._record(device), record)
            if record[0]:
                device.write(self._record(device), Record())
                check(self._assertions, record, grid)

    def _record(self, device: Device) -> int:
        """Where assertions record what failed; 0 where there are none."""
        if not self._assertions:
            return 0
        if device not in self._records:
            self._records[device] = device.allocate(ctypes.sizeof(Record))
        return self._records[device]

    def _refuse(self, device: Device, status: int, grid: Grid) -> NoReturn:
        error = device.api.error(status, f"kernel {self.name}")
        if max(grid[1:]) > _MOST_PROGRAMS:
            message, expected = "has more programs than CUDA starts", f"at most {_MOST_PROGRAMS} along y and z"
            error = GridError(f"kernel {self.name} {message}", expected=expected, found=str(grid))
        raise error.at(calling_location())

    def _warn(self) -> None:
        """Say, the first time, that arrays are copied."""
        if not self._copied:
            self._copied = True
            text = (
                f"the arrays of kernel {self.name} lie in main memory: each launch copies them to the GPU and back\n"
                'Pass arrays that lie there: torch.Tensor.to("cuda"), cupy.asarray(array).'
            )
            warnings.warn(text, PerformanceWarning, stacklevel=calling_level())


def shared_out(grid: Grid, most: int) -> Grid:
    """As few programs along x, where there are no others, as need no more rounds than the most that run at a time."""
    return (even_programs(grid[0], most), 1, 1) if grid[1:] == (1, 1) else grid


def _is_pinned(array: Any) -> bool:
    return takes_pinned("cuda", array)


def _stream_of(slots: Sequence[Slot]) -> int | None:
    """Where another library works on the arrays, if it says so."""
    return next((slot.array.stream for slot in slots if getattr(slot.array, "stream", None) is not None), None)


def _takes_tensors() -> bool:
    """Whether machine code reads torch's tensors on GPUs: those of torch 2.10 and newer."""
    if not is_native():
        return False
    pool().num_threads()  # which tells the machine code of torch
    return pool().library.pointer("torch_data").value is not None
