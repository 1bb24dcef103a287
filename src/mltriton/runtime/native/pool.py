"""Python's side of the pool in sources/pool.py: how many threads, which threads, torch's OpenMP, forks, scratch memory.

Level: runtime. A launch runs on the calling thread and a team: torch's own OpenMP library once torch is loaded (two
spinning pools in one process slow each other down several times), otherwise workers of our own, started by the first
launch that can use them. Guarantees: the machine code is told of torch at the first launch after torch appears; a
forked child starts with no workers and does not use OpenMP, which does not survive a fork; workers take no signals.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Literal, cast

import numpy as np

from ...errors import OutOfResources
from .. import config
from ..arrays import has_memory
from ..forking import fork_lock
from . import layout, library
from .cpus import available_cpus

_SPIN_SECONDS = 150e-6  # How long a thread that waits spins before it sleeps: longer than Python between two launches.
_CLOCK_SECONDS = {
    "ticks_long": 1e-3,
    "ticks_ask": 0.1,  # Asking takes the interpreter's lock.
    "ticks_split": 16e-6,  # Less than waking a thread may take.
    "ticks_claim": 2e-6,  # Several times what a claim takes that many threads make at once.
    "ticks_forget": 40e-3,  # A few turns of a busy machine's scheduler.
    "ticks_held": 3e-3,  # A turn is longer, and what a virtual machine stands still is mostly shorter.
    "ticks_hold": 0.2,  # Other libraries' threads spin for tens of milliseconds after their last call.
}
_NAMES = ("torch", "dtype", "is_cpu", "data_ptr", "is_neg", "requires_grad")
_DERIVED_TYPES = 16  # Of each kind in sources/tensors.py, besides the null at the end.
_IS_NEG = "_ZN2at6native6is_negERKNS_6TensorE"  # bool at::native::is_neg(const at::Tensor &)
# Of torch's stable C interface: int32 function(int32 device, cudaStream_t *), and int32 function(at::Tensor *, what it
# gives *).
_STREAM = "aoti_torch_get_current_cuda_stream"
_FACTS = {
    "torch_layout": "aoti_torch_get_layout",
    "torch_dtype": "aoti_torch_get_dtype",
    "torch_device_type": "aoti_torch_get_device_type",
    "torch_device_index": "aoti_torch_get_device_index",
    "torch_data": "aoti_torch_get_data_ptr",  # the last one set, which says that the others are there
}
_HAS_STORAGE = "_ZNK3c1010TensorImpl11has_storageEv"  # bool c10::TensorImpl::has_storage() const
_RECORDS = "_ZN3c108GradMode10is_enabledEv"  # bool c10::GradMode::is_enabled()
# Numbers, of which `signal` makes names first: that takes longer than linking a kernel.
_signal: Any = import_module("_signal")
_FAULTS = {_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL, _signal.SIGABRT, _signal.SIGTRAP}


class ScratchLimitError(OutOfResources):
    """A kernel needs more scratch memory per thread than `MLTRITON_MAX_SCRATCH` allows."""


class ScratchMemoryError(OutOfResources, MemoryError):
    """There is no memory for a launch's scratch buffers; some programs of the grid have not run."""


def check_scratch(scratch_bytes: int) -> int:
    """Return a kernel's scratch size per thread rounded up to cache lines, or raise `ScratchLimitError`."""
    limit = config.MAX_SCRATCH.get()
    if scratch_bytes > limit:
        raise ScratchLimitError(
            f"a kernel needs {scratch_bytes} bytes of scratch memory per thread",
            expected=f"at most {limit} bytes",
            hint="Use smaller blocks, or raise MLTRITON_MAX_SCRATCH.",
        )
    return -(-scratch_bytes // 64) * 64


class Pool:
    """The pool of this process; `pool()` returns it. All methods need the interpreter's lock, `run` releases it."""

    def __init__(self) -> None:
        self.library = library.load()
        self.library.number("tuple_items").value = layout.TUPLE_ITEMS
        self.library.number("bytes_start").value = layout.BYTES_START
        self._lock = fork_lock()
        self._forked = False
        self._worker_count = self.library.number("workers")
        addresses = self.library.addresses
        self._thread_count = ctypes.PYFUNCTYPE(ctypes.c_int64)(addresses["thread_count"])
        self._run = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p)(
            addresses["run_released"]
        )
        self._release_scratch = ctypes.CFUNCTYPE(ctypes.c_int64)(addresses["release_scratch"])
        self._reset_after_fork = ctypes.PYFUNCTYPE(None)(addresses["reset_after_fork"])
        self._set_up()

    def _set_up(self) -> None:
        """Tell the code what it needs of this process."""
        objects = {
            "ndarray_type": np.ndarray,
            "modules": sys.modules,
            "prepare": self.prepare,
            "scratch_error": ScratchMemoryError,
            "has_memory": has_memory,
            **{f"name_{name}": sys.intern(name) for name in _NAMES},
        }
        for name, item in objects.items():
            self.library.pointer(name).value = _immortal(item)
        self.set_num_threads(config.NUM_THREADS.get())
        self.library.number("main_thread").value = threading.main_thread().ident or 0
        self._set_clocks()
        os.register_at_fork(after_in_child=self._after_fork)

    @property
    def kind(self) -> Literal["openmp", "workers"]:
        """Which threads help: torch's OpenMP library's or our own workers."""
        return "openmp" if self.library.pointer("gomp_parallel").value else "workers"

    @property
    def workers(self) -> int:
        """How many workers of our own have been started."""
        return self._worker_count.value

    def num_threads(self) -> int:
        """Return how many threads a launch may use now, the calling one included."""
        if self._torch_has_appeared():
            self._bind_torch()
        return self._thread_count()

    def set_num_threads(self, count: int | None) -> None:
        """Use `count` threads from now on; None: torch's number once it is loaded, before that one for each CPU."""
        if count is not None:
            config.check_threads(count)
        self._chosen = count
        asks_torch = bool(self.library.pointer("torch_get_num_threads").value)
        self.library.number("threads").value = count or (0 if asks_torch else available_cpus())

    def run(
        self, kernel: int, slots: Iterable[int], programs: int, scratch_bytes: int, team: int | None = None
    ) -> None:
        """Run programs [0, programs) of the kernel at an address; `slots` are the values of the 8-byte argument slots.

        Raises `ScratchMemoryError`.
        """
        words = [slot & 0xFFFF_FFFF_FFFF_FFFF for slot in slots]
        arguments = (ctypes.c_uint64 * len(words))(*words)
        if team is None:
            self.prepare()
            team = self._thread_count()
        if self._run(kernel, ctypes.addressof(arguments), programs, scratch_bytes, team if programs > 1 else 1, None):
            raise ScratchMemoryError("there is no memory for the kernel's scratch buffers")

    def release_scratch(self) -> int:
        """Free the scratch buffers of all threads that are not running a kernel; return how many bytes that were."""
        return self._release_scratch()

    def prepare(self) -> None:
        """Bind torch if it is loaded, and start the workers that are missing. Called by the launcher's code as well."""
        with self._lock:
            if self._torch_has_appeared():
                self._bind_torch()
            if self.kind == "workers" or self.library.flag("wants_workers").value:
                self._start_workers(self._thread_count() - 1)

    def _torch_has_appeared(self) -> bool:
        return "torch" in sys.modules and not self.library.flag("torch_is_bound").value

    def _bind_torch(self) -> None:
        """Take torch's types, functions and OpenMP library, unless another thread is still importing it."""
        torch: Any = sys.modules["torch"]
        parameter = getattr(getattr(torch, "nn", None), "Parameter", None)
        if parameter is None or not hasattr(torch, "get_num_threads"):
            return
        self.library.pointer("torch_tensor_type").value = _immortal(torch.Tensor)
        self.library.pointer("torch_parameter_type").value = _immortal(parameter)
        self.library.pointer("torch_describe").value = layout.find_describe(torch.Tensor)
        self.library.pointer("torch_stream").value = _address_in_torch(_STREAM, "libtorch_cuda.so")
        self.library.pointer("torch_records").value = _address_in_torch(_RECORDS) or None
        self._bind_handles(torch)
        functions = _openmp_of_torch()
        for name, address in functions.items():
            if name == "torch_get_num_threads" or not self._forked:
                self.library.pointer(name).value = address
        self.set_num_threads(self._chosen)
        self.library.flag("torch_is_bound").value = 1

    def _bind_handles(self, torch: Any) -> None:
        """Let the code ask torch's own functions of an at::Tensor, as far as they work as expected."""
        describe = self.library.pointer("torch_describe").value
        if not describe:
            return
        # The launch may be inside a transform, or a mode in which new tensors have no memory.
        with torch._C._DisableFuncTorch(), torch.utils._python_dispatch._disable_current_modes():
            plain = torch.zeros(2, device="cpu")
            negated = torch._neg_view(plain)
        offset = layout.find_handle(describe, plain)
        if offset is None:
            return
        self.library.number("torch_handle").value = offset
        if address := _address_in_torch(_IS_NEG):
            is_neg = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(address)
            if is_neg(id(negated) + offset) and not is_neg(id(plain) + offset):
                self.library.pointer("torch_is_neg").value = address
        if address := _address_in_torch(_HAS_STORAGE):
            has_storage = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)(address)
            if has_storage(ctypes.c_void_p.from_address(id(plain) + offset).value):
                self.library.pointer("torch_has_storage").value = address
        facts = {name: _address_in_torch(function) for name, function in _FACTS.items()}
        if all(facts.values()) and _fact(facts["torch_data"], id(plain) + offset) == plain.data_ptr():
            for name, address in facts.items():
                self.library.pointer(name).value = address

    def take_types(self, arrays: Iterable[Any]) -> None:
        """Let launches take arrays of these ones' types, derived from numpy's or torch's: of 16 each at most."""
        torch_type = getattr(sys.modules.get("torch"), "Tensor", ())
        with self._lock:
            for array in arrays:
                if isinstance(array, np.ndarray):
                    self._list_type("array_types", cast(Any, array).__class__)
                elif isinstance(array, torch_type):
                    self._list_type("tensor_types", array.__class__)

    def _list_type(self, table: str, kind: type) -> None:
        listed = (ctypes.c_void_p * _DERIVED_TYPES).from_address(self.library.addresses[table])
        free = next((place for place, item in enumerate(listed) if item in (None, id(kind))), None)
        if free is not None and listed[free] is None:
            listed[free] = _immortal(kind)

    def torch_key(self, dtype: Any) -> int:
        """Return what the launcher's code compares for a torch dtype. torch must be loaded."""
        self.num_threads()
        if self.library.pointer("torch_data").value is None:
            return id(dtype)
        code = _address_in_torch(f"aoti_torch_dtype_{str(dtype).removeprefix('torch.')}")
        return ctypes.CFUNCTYPE(ctypes.c_int32)(code)() if code else -1

    def _start_workers(self, count: int) -> None:
        """Start workers until there are `count`."""
        if count >= available_cpus() or self.kind == "openmp":
            self.library.number("spin_limit").value = 0  # A spinning thread would keep another one from working.
        # Threads inherit the mask: signals are for Python's threads, but a fault must still be reported where it is.
        previous = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals() - _FAULTS)
        try:
            while self.workers < count:
                number = self.workers + 1
                if not _create_thread(self.library.addresses["worker"], number):
                    self._settle_for(number)
                    break
                self._worker_count.value = number
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, previous)

    def _settle_for(self, count: int) -> None:
        """Go on with `count` threads, the calling one included, because the system gives no more."""
        warnings.warn(f"only {count} thread(s) can be started for kernels", RuntimeWarning, stacklevel=2)
        self.set_num_threads(count)

    def _set_clocks(self) -> None:
        """Tell the code how often a thread relaxes, and how far its clock counts, in the times it works with."""
        relax_many = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(self.library.addresses["relax_many"])
        ticks = ctypes.PYFUNCTYPE(ctypes.c_int64)(self.library.addresses["ticks"])
        trial = 500  # Of 40 to 150 cycles each, depending on the processor.
        start, first = time.perf_counter(), ticks()
        relax_many(trial)
        seconds, counted = max(time.perf_counter() - start, 1e-9), max(ticks() - first, 1)
        self.library.number("spin_limit").value = int(trial * _SPIN_SECONDS / seconds)
        for name, duration in _CLOCK_SECONDS.items():
            self.library.number(name).value = int(counted * duration / seconds)

    def _after_fork(self) -> None:
        self._lock = fork_lock()
        self._forked = True
        self.library.number("main_thread").value = threading.get_ident()
        self._reset_after_fork()
        self.library.pointer("gomp_parallel").value = None


def _create_thread(entry: int, argument: int) -> bool:
    """Start a thread that never ends: `void *entry(void *argument)`. Returns False if the system has none to give."""
    create = ctypes.CDLL(None).pthread_create
    create.argtypes = [ctypes.POINTER(ctypes.c_ulong), *[ctypes.c_void_p] * 3]
    return create(ctypes.byref(ctypes.c_ulong()), None, entry, argument) == 0


def _openmp_of_torch() -> dict[str, int]:
    """Return the functions of the OpenMP library torch itself uses, by our names; none if torch was built otherwise."""
    symbols = {
        "gomp_parallel": "GOMP_parallel",
        "omp_get_thread_num": "omp_get_thread_num",
        "torch_get_num_threads": "_ZN2at15get_num_threadsEv",
    }
    found = {name: _address_in_torch(symbol) for name, symbol in symbols.items()}
    return {name: address for name, address in found.items() if address} if all(found.values()) else {}


def _address_in_torch(symbol: str, library: str = "libtorch_cpu.so") -> int | None:
    """Return the address of a function of torch's library, or of one that it was linked with; None if it is absent."""
    try:
        return ctypes.cast(ctypes.CDLL(library, mode=os.RTLD_NOLOAD)[symbol], ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return None


def _fact(function: int | None, handle: int) -> int:
    """Return what a function of `_FACTS` says of an at::Tensor."""
    found = ctypes.c_uint64()
    failed = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(function or 0)
    return -1 if failed(handle, ctypes.addressof(found)) else found.value


def _immortal(item: object) -> int:
    """Return the address of an object that machine code may use from now on until the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))
    return id(item)


_pool: Pool | None = None
_creation = fork_lock()


def pool() -> Pool:
    """Return this process's pool, setting it up on the first call. Raises `TargetError` on an unsupported machine."""
    global _pool
    if _pool is None:
        with _creation:
            if _pool is None:
                _pool = Pool()
    return _pool
