"""An emulated kernel of SIMD form in this process.

Level: runtime. Takes an object file of what `emulate_warps` makes; arrays are used where they lie. A program of several
warps that wait for each other runs as so many threads, otherwise one warp runs after the other. Guarantees: memory that
warps share is overwritten before a program uses it, so that what a kernel did not store there shows.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from mltriton.errors import DeviceError
from mltriton.runtime.grid import Grid
from mltriton.runtime.llvm_thread import Kept, call_llvm
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.slots import Slot, launcher_of
from mltriton.runtime.specialization import ON_HOST, device_of
from mltriton.targets.assertions import Description, Record, check
from mltriton.targets.xe.launch_guards import LaunchGuards, Surface

_PTR = ctypes.c_void_p
_WAIT = b"pthread_barrier_wait"  # the function that kernels call whose warps wait for each other
_BARRIER_BYTES = 64  # at least what the C library's barrier takes
_UNWRITTEN = 0xA5  # bytes of shared memory that no warp stored to
_STACK = 64 << 20  # bytes, of a thread that runs a warp


class _Place(ctypes.Structure):
    """Which warp of which program runs (`warp_position.py`)."""

    _fields_ = (
        ("warp", ctypes.c_uint32),
        ("group", ctypes.c_uint32 * 3),
        ("grid", ctypes.c_uint32 * 3),
        ("unused", ctypes.c_uint32),
        ("shared", ctypes.c_uint64),
        ("barrier", ctypes.c_uint64),
    )


class EmulatedWarps:
    """The kernel in object files, one for each set of surfaces that fails the checks of `guards`; a program has `warps`
    warps, which share so many bytes. Where there are assertions, the address of their record is the last argument.
    """

    def __init__(
        self,
        image: Callable[[tuple[Surface, ...]], bytes],
        warps: int,
        shared: int,
        guards: LaunchGuards | None = None,
        assertions: Sequence[Description] = (),
        prints: bool = False,
    ) -> None:
        self._image = image
        self._warps = warps
        self._shared = shared
        self._guards = guards
        self._assertions = assertions
        self._prints = prints
        self._codes: dict[tuple[Surface, ...], _Code] = {}
        if guards is None:  # Otherwise the first launch says which version it needs.
            self._code_for(())

    def _code_for(self, failing: tuple[Surface, ...]) -> _Code:
        if failing not in self._codes:
            self._codes[failing] = _Code(self._image(failing))
        return self._codes[failing]

    def launcher(self, specs: Sequence[ParamSpec], /) -> Callable[..., Any]:
        """The function `launch(grid_x, grid_y, grid_z, *arguments)` for arguments that pass `specs`."""
        return launcher_of(self.run, specs)

    def run(self, grid: Grid, slots: Sequence[Slot], /) -> None:
        """Launch and wait. Raises `DeviceError` for arrays that are not in main memory, `DeviceAssertionError` for an
        assertion that failed.
        """
        devices = {device_of(slot.array) for slot in slots if slot.kind == "tensor"}
        if devices - {ON_HOST}:
            found = ", ".join(sorted(devices))
            raise DeviceError("emulated kernels take arrays in main memory", expected=ON_HOST, found=found)
        if math.prod(grid) == 0:
            return
        record = Record()
        bits = [slot.bits for slot in slots]
        values = [*bits, ctypes.addressof(record)]
        held = (ctypes.c_uint64 * len(values))(*(value & (1 << 64) - 1 for value in values))
        programs = product(*(range(size) for size in reversed(grid)))
        each = (_Program(grid, (x, y, z), self._shared) for z, y, x in programs)
        code = self._code_for(self._guards.failing(bits) if self._guards is not None else ())
        if code.waits and self._warps > 1:
            self._together(code, held, each)
        else:
            for program in each:
                for warp in range(self._warps):
                    code.run(held, ctypes.byref(program.place(warp, 0)))
        if self._prints:
            ctypes.CDLL(None).fflush(None)
        check(self._assertions, record, grid)

    def _together(self, code: _Code, held: Any, programs: Iterator[_Program]) -> None:
        """One thread for each warp, program after program."""
        library = ctypes.CDLL(None)
        barrier = ctypes.create_string_buffer(_BARRIER_BYTES)
        library.pthread_barrier_init(barrier, None, ctypes.c_uint(self._warps))

        def run(program: _Program, warp: int) -> None:
            code.run(held, ctypes.byref(program.place(warp, ctypes.addressof(barrier))))

        before = threading.stack_size(_STACK)
        try:
            for program in programs:
                threads = [threading.Thread(target=run, args=(program, warp)) for warp in range(self._warps)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
        finally:
            threading.stack_size(before)
            library.pthread_barrier_destroy(barrier)


class _Code:
    """The code of an object file: `run` is one warp of one program; `waits`, whether warps wait for each other."""

    def __init__(self, image: bytes) -> None:
        self._engine, address = call_llvm(partial(_linked, image))  # The engine owns the code.
        self.run = ctypes.CFUNCTYPE(None, _PTR, _PTR)(address)
        self.waits = _WAIT in image


class _Program:
    """One program of a grid, with its shared memory."""

    def __init__(self, grid: tuple[int, int, int], group: tuple[int, int, int], shared: int) -> None:
        self._grid = grid
        self._group = group
        self._memory = (ctypes.c_uint8 * max(1, shared))()
        ctypes.memset(self._memory, _UNWRITTEN, shared)

    def place(self, warp: int, barrier: int) -> _Place:
        """Where one of its warps is."""
        three = ctypes.c_uint32 * 3
        return _Place(warp, three(*self._group), three(*self._grid), 0, ctypes.addressof(self._memory), barrier)


def _linked(image: bytes) -> tuple[Kept, int]:
    """An object file's code, linked with the C library's functions that it calls, and where `run` is."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(image))
    engine.finalize_object()
    return Kept(engine), engine.get_function_address("run")
