"""The launcher and the pool in plain Python: for systems without the machine code, and as a second opinion in tests.

Level: runtime. Does what the functions in sources/ do, with the same guards, slots, claims and errors, through
ctypes and Python threads: tens of microseconds a launch instead of less than one. Works wherever CPython and numpy do.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import config
from ..arrays import has_memory, is_masked
from .cpus import available_cpus
from .params import ParamSpec, float_bits
from .pool import ScratchMemoryError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_MAX_DIMENSION = 2**31 - 1
_LONG_SECONDS = 1e-3  # A piece that takes this long makes the next one smaller.

Kernel = Callable[[int, int, int, int], None]


class PortableLauncher:
    """Calls a kernel at an address; see `NativeKernel.launcher`. `owner` is kept alive."""

    def __init__(
        self, kernel: int, scratch_bytes: int, specs: Sequence[ParamSpec], serial_below: int, owner: object
    ) -> None:
        self._kernel = kernel
        self._scratch_bytes = scratch_bytes
        self._specs = tuple(specs)
        self._serial_below = serial_below
        self._owner = owner

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, /, *arguments: Any) -> Any:
        grid = (grid_x, grid_y, grid_z)
        if len(arguments) != len(self._specs) or not all(map(_is_dimension, grid)) or math.prod(grid) >= 1 << 63:
            return NotImplemented
        slots: list[int] = []
        for spec, argument in zip(self._specs, arguments, strict=True):
            slot = read_argument(spec, argument)
            if slot is None:
                return NotImplemented
            if spec.takes_slot:
                slots.append(slot)
        programs = math.prod(grid)
        if programs:
            team = 1 if programs < self._serial_below else None
            pool().run(self._kernel, (*slots, *grid), programs, self._scratch_bytes, team)
        return None


def _is_dimension(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_DIMENSION


def read_argument(spec: ParamSpec, argument: Any) -> int | None:
    """Return the slot for an argument (0 for a constant), or None if it does not pass its spec."""
    match spec.kind:
        case "tensor":
            slot = _read_tensor(spec, argument)
        case "constant":
            return 0 if _is_constant(spec.value, argument) else None
        case "i1":
            return int(argument) if type(argument) is bool else None
        case "f32" | "f64":
            return float_bits(spec.kind, argument) if type(argument) is float else None
        case _:
            slot = _read_integer(spec, argument)
    zero_mask, some_mask = spec.masks
    passes = slot is not None and not slot & zero_mask and (not some_mask or slot & some_mask)
    return slot if passes else None


def _read_integer(spec: ParamSpec, argument: Any) -> int | None:
    if type(argument) is not int or not spec.range[0] <= argument <= spec.range[1]:
        return None
    return None if spec.hole[0] <= argument <= spec.hole[1] else argument


def _is_constant(constant: Any, argument: Any) -> bool:
    if argument is constant:
        return True
    if type(argument) is not type(constant):
        return False
    if type(constant) is float:
        return struct.pack("<d", argument) == struct.pack("<d", constant)
    return type(constant) in (int, str) and argument == constant


def _read_tensor(spec: ParamSpec, argument: Any) -> int | None:
    if isinstance(argument, np.ndarray):
        return None if is_masked(argument) else _read_array(spec, cast("np.ndarray[Any, Any]", argument))
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(argument, torch.Tensor):
        return None
    if spec.torch_dtype is None or argument.dtype is not spec.torch_dtype or not argument.is_cpu:
        return None
    try:
        return argument.data_ptr() if has_memory(argument) and not argument.is_neg() else None
    except RuntimeError:  # It has no storage.
        return None


def _read_array(spec: ParamSpec, array: np.ndarray[Any, Any]) -> int | None:
    if array.dtype is not spec.numpy_dtype or (spec.writes and not array.flags.writeable) or not has_memory(array):
        return None
    return array.ctypes.data


class PortablePool:
    """Python threads that claim programs; `pool()` returns this process's."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._chosen = config.NUM_THREADS.get()
        self._executor: ThreadPoolExecutor | None = None
        self._executor_size = 0
        self._free_scratch: deque[np.ndarray[Any, Any]] = deque()
        self._lock = threading.Lock()

    def is_of_this_process(self) -> bool:
        """Return whether there was no fork since the pool was made."""
        return self._process == os.getpid()

    def num_threads(self) -> int:
        """Return how many threads a launch may use now, the calling one included."""
        if self._chosen is not None:
            return self._chosen
        torch: Any = sys.modules.get("torch")
        return torch.get_num_threads() if hasattr(torch, "get_num_threads") else available_cpus()

    def set_num_threads(self, count: int | None) -> None:
        """Use `count` threads from now on; None: torch's number once it is loaded, before that one for each CPU."""
        if count is not None:
            config.check_threads(count)
        self._chosen = count

    def run(
        self, kernel: int, slots: Iterable[int], programs: int, scratch_bytes: int, team: int | None = None
    ) -> None:
        """Run programs [0, programs) of the kernel at an address; `slots` are the values of its argument slots.

        Raises `ScratchMemoryError`.
        """
        words = [slot & 0xFFFF_FFFF_FFFF_FFFF for slot in slots]
        arguments = (ctypes.c_uint64 * len(words))(*words)
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(kernel)
        team = min(self.num_threads() if team is None else team, programs)
        job = _Job(function, ctypes.addressof(arguments), programs, team)
        helpers = self._gather(team - 1, job, scratch_bytes)
        try:
            self._take_part(job, scratch_bytes)
        finally:
            job.stop()  # An interrupt ends the launch; the others may still be in a program.
            for helper in helpers:
                if not helper.cancel():
                    helper.result()
        if job.is_unfinished:
            raise ScratchMemoryError("there is no memory for the kernel's scratch buffers")

    def _gather(self, count: int, job: _Job, scratch_bytes: int) -> list[Future[None]]:
        """Ask `count` threads to take part. While the interpreter exits there are none: the caller works alone."""
        try:
            return [self._threads(count).submit(self._take_part, job, scratch_bytes) for _ in range(count)]
        except RuntimeError:
            return []

    def _threads(self, count: int) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # It loads logging, and is needed here alone.

        with self._lock:
            if self._executor is None or self._executor_size < count:
                self._executor = ThreadPoolExecutor(count, thread_name_prefix="mltriton")
                self._executor_size = count
            return self._executor

    def _take_part(self, job: _Job, scratch_bytes: int) -> None:
        try:
            scratch = self._acquire_scratch(scratch_bytes)
        except MemoryError:
            return  # The other threads run the programs.
        try:
            job.run_pieces(scratch.ctypes.data if scratch_bytes else 0)
        finally:
            self._free_scratch.append(scratch)

    def _acquire_scratch(self, size: int) -> np.ndarray[Any, Any]:
        """Return a buffer of at least `size` bytes, aligned to 64 bytes."""
        try:
            scratch = self._free_scratch.pop()
        except IndexError:
            scratch = np.empty(0, np.uint8)
        if scratch.nbytes < size:
            memory = np.empty(size + 63, np.uint8)
            start = -memory.ctypes.data % 64
            scratch = memory[start : start + size]
        return scratch

    def release_scratch(self) -> int:
        """Free the buffers that no thread is using; return how many bytes that were."""
        freed = 0
        while self._free_scratch:
            freed += self._free_scratch.pop().nbytes
        return freed


class _Job:
    """One launch: programs [begin, end) are still to be claimed."""

    def __init__(self, kernel: Kernel, arguments: int, programs: int, team: int) -> None:
        self.begin = 0
        self.end = programs
        self.is_unfinished = True
        self._kernel = kernel
        self._arguments = arguments
        self._shift = (team - 1).bit_length() + 2 if team > 1 else 0
        self._lock = threading.Lock()

    def run_pieces(self, scratch: int) -> None:
        """Claim and run programs until none is left; a piece is a quarter of a thread's even share of what is left.

        Pieces begin with one program and grow while they are quick: signals arrive between them.
        """
        most = 1
        while True:
            with self._lock:
                begin = self.begin
                share = max(1, (self.end - begin) >> self._shift)
                self.begin = until = min(self.end, begin + min(share, most))
            if begin == until:
                return
            started = time.monotonic()
            self._kernel(self._arguments, begin, until, scratch)
            most = max(1, most // 2) if time.monotonic() - started > _LONG_SECONDS else 8 * most

    def stop(self) -> None:
        """Let nobody claim more programs; what is left then has not run (`is_unfinished`)."""
        with self._lock:
            self.is_unfinished = self.begin < self.end
            self.begin = self.end


_pool: PortablePool | None = None


def pool() -> PortablePool:
    """Return this process's pool; a forked child gets a new one."""
    global _pool
    if _pool is None or not _pool.is_of_this_process():
        _pool = PortablePool()
    return _pool
