"""The pool and the launcher as machine code, compiled once per machine and kept in the on-disk cache.

Level: runtime. Takes the functions in sources/, which `translation` turns into LLVM text, and LLVM text written by hand
for CUDA and for the operating system (one file for each supported machine). Guarantees: the code is loaded once per
process and never unloaded, since worker threads run it; where it is in the cache nothing is translated.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache, partial
from typing import NoReturn

from ... import __version__
from ...errors import TargetError
from .. import cache as disk
from ..fingerprint import llvm_version, source_files
from .objects import LoadedObject, ObjectLoadError, linked, load_object

_MACHINES = {"x86_64": "x86_64-linux", "aarch64": "aarch64-linux"}
_FILE = "image"
_HERE = os.path.dirname(__file__)
SOURCES = (
    *("system.pyi", "python.pyi", "pieces.py", "pool.py", "arguments.py", "tensors.py", "launcher.py", "calls.py"),
    *("descriptions.py", "parts.py"),
)

FUNCTIONS = (
    *(
        "launch",
        "launch_described",
        "launch_cuda",
        "launch_known",
        "launch_parts",
        "describe_tensors",
        "run_released",
        "thread_count",
        "worker",
        "ticks",
        "relax_many",
        "release_scratch",
        "reset_after_fork",
    ),
)
POINTERS = (
    "gomp_parallel",
    "omp_get_thread_num",
    "ndarray_type",
    "torch_tensor_type",
    "torch_parameter_type",
    "torch_describe",
    "torch_is_neg",
    *(
        "torch_stream",
        "torch_has_storage",
        "torch_data",
        "torch_layout",
        "torch_dtype",
        "torch_device_type",
        "torch_device_index",
    ),
    "torch_records",
    "torch_get_num_threads",
    "prepare",
    "has_memory",
    "modules",
    "name_torch",
    "name_dtype",
    "name_is_cpu",
    "name_data_ptr",
    "name_is_neg",
    "name_requires_grad",
    "scratch_error",
    *("cu_launch_kernel", "cu_launch_kernel_ex", "cu_ctx_get_current", "cu_ctx_push_current", "cu_ctx_pop_current"),
    "cu_tensor_map_encode",
)
NUMBERS = (
    *("spin_limit", "workers", "threads", "torch_handle", "tuple_items", "bytes_start"),
    *("main_thread", "ticks_long", "ticks_ask", "ticks_split", "ticks_claim", "ticks_forget"),
    *("ticks_held", "ticks_hold", "held_at", "held_until"),
)
FLAGS = ("torch_is_bound", "wants_workers")
TABLES = ("array_types", "tensor_types")


def machine() -> str | None:
    """Return the name of this machine's file in ir/, or None if there is none."""
    return _MACHINES.get(platform.machine()) if sys.platform == "linux" else None


class Library:
    """The loaded code: addresses of its functions, and its global variables as attributes of ctypes type."""

    def __init__(self, loaded: LoadedObject) -> None:
        self._loaded = loaded
        self.addresses = loaded.addresses

    def pointer(self, name: str) -> ctypes.c_void_p:
        """Return the global pointer `name`; setting its `value` sets it."""
        return ctypes.c_void_p.from_address(self.addresses[name])

    def number(self, name: str) -> ctypes.c_int64:
        """Return the global 64-bit integer `name`; setting its `value` sets it."""
        return ctypes.c_int64.from_address(self.addresses[name])

    def flag(self, name: str) -> ctypes.c_int8:
        """Return the global 8-bit integer `name`; setting its `value` sets it."""
        return ctypes.c_int8.from_address(self.addresses[name])


@cache
def load() -> Library:
    """Return the library, compiled at most once per cache. Raises `TargetError` on an unsupported machine."""
    name = machine() or refuse()
    key = disk.digest("native library", name, *sorted(source_files(_HERE)), __version__, llvm_version())
    try:
        return _linked((disk.default_cache().get(key) or {})[_FILE])
    except (KeyError, ObjectLoadError):  # It is not there, or damaged.
        image = linked(compile_object(source(name), f"{platform.machine()}-unknown-linux-gnu"))
        disk.default_cache().put(key, {_FILE: image}, {"what": "launcher and pool"})
        return _linked(image)


def _linked(image: bytes) -> Library:
    return Library(load_object(image, (*FUNCTIONS, *POINTERS, *NUMBERS, *FLAGS, *TABLES)))


def refuse() -> NoReturn:
    """Raise `TargetError`: this machine, or this build of Python, cannot run the native launcher."""
    build = f"{platform.python_implementation()} {platform.python_version()}"
    raise TargetError(
        f"there is no native launcher for {build} on {sys.platform} {platform.machine()}",
        hint="MLTRITON_LAUNCHER=portable launches kernels through Python threads.",
    )


def source(name: str) -> str:
    """Return the LLVM text for the machine `name` (`x86_64-linux`, `aarch64-linux`)."""
    from .translation import translated  # Where the code is in the cache nothing is translated.

    written = [translated([_read(f"sources/{part}") for part in SOURCES])]
    return "\n".join(written + [_read(part) for part in _by_hand(name)])


def _by_hand(name: str) -> tuple[str, ...]:
    return "ir/cuda.ll", f"ir/{name}.ll"


def _read(part: str) -> str:
    with open(f"{_HERE}/{part}", encoding="utf-8") as file:
        return file.read()


def compile_object(text: str, triple: str) -> bytes:
    """Compile LLVM text to an object file for any processor of the machine `triple` names."""
    from ..llvm_thread import call_llvm

    return call_llvm(partial(_object, text, triple))


def _object(text: str, triple: str) -> bytes:
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="default")
    module = binding.parse_assembly(text)
    module.triple = triple
    module.data_layout = str(machine.target_data)
    module.verify()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)
