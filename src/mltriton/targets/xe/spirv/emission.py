"""LLVM IR text to SPIR-V 1.4, through LLVM's back end in a process of its own.

Level: `llvm` -> binary. LLVM ends its process on what it cannot translate, so it never runs in this one. Guarantees:
the module imports nothing: a function that is neither defined nor known as a built-in one raises `BackendError` with
its name, before any other compiler sees the module.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum

from mltriton.errors import BackendError
from mltriton.runtime.compile_thread import time_limit
from mltriton.targets.llvm.toolchain import Machine, save
from mltriton.targets.xe.spirv.assembly import put_assembly
from mltriton.targets.xe.spirv.builtins import every_builtin
from mltriton.targets.xe.spirv.mangling import mangled, unmangled
from mltriton.targets.xe.spirv.patches import renumber_predicated_accesses
from mltriton.targets.xe.spirv.words import SpirvModule, read

# One name that LLVM does not know would make it ignore the whole list.
EXTENSIONS = (
    "SPV_INTEL_2d_block_io",
    "SPV_INTEL_subgroup_matrix_multiply_accumulate",
    "SPV_INTEL_split_barrier",
    "SPV_INTEL_subgroups",
    "SPV_INTEL_cache_controls",
    "SPV_INTEL_bfloat16_conversion",
    "SPV_INTEL_tensor_float32_conversion",
    "SPV_INTEL_predicated_io",
    "SPV_INTEL_inline_assembly",
    "SPV_INTEL_memory_access_aliasing",
    "SPV_INTEL_kernel_attributes",
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_KHR_bit_instructions",
    "SPV_KHR_bfloat16",
    "SPV_KHR_expect_assume",
    "SPV_KHR_no_integer_wrap_decoration",
    "SPV_KHR_shader_clock",
    "SPV_KHR_subgroup_rotate",
    "SPV_KHR_uniform_group_instructions",
)
PRINTF = f"{mangled('__spirv_ocl_printf', ('constant const char*',))}z"  # takes any number of arguments
INTERNAL = "llvm.genx."  # intrinsics of Intel's compiler, which it links itself
MACHINE = Machine(
    "spirv64v1.4-unknown-unknown",
    options=(
        "--spirv-ext=" + ",".join(f"+{name}" for name in EXTENSIONS),
        f"--spv-allow-unknown-intrinsics={INTERNAL.removesuffix('.')}",
    ),
)
TIME_LIMIT = 60  # seconds, where MLTRITON_COMPILE_TIMEOUT is not set


class Code(Enum):
    """What a lane's program stands for: one lane of a warp, or the whole warp (SIMD)."""

    SIMT = "simt"
    SIMD = "simd"


def emit(text: str, meanings: Mapping[str, object] | None = None) -> bytes:
    """A SPIR-V module of the IR in `text`, in which functions with these meanings are assembly; a kernel that prints is
    its last function, of which LLVM takes the calls of printf to be.
    """
    from mltriton.targets.llvm.isolation import compile_isolated

    module = read(compile_isolated(text, MACHINE, time_limit() or TIME_LIMIT))
    module = put_assembly(renumber_predicated_accesses(module), meanings or {})
    _check_imports(module, text)
    return module.image


def _check_imports(module: SpirvModule, text: str) -> None:
    for symbol in module.imports:
        if not symbol.startswith("spirv.llvm_genx_"):
            raise _undefined(symbol).saved_to(save(text))


def _undefined(symbol: str) -> BackendError:
    """The error for a function that neither the module nor LLVM knows."""
    name = unmangled(symbol)
    known = {builtin.symbol: builtin.name for builtin in every_builtin()}
    same = [other for other, function in known.items() if name is not None and name in (function, function[:-1])]
    close = same or get_close_matches(symbol, known, n=1)
    message = f"the kernel calls the undefined function {symbol}"
    return BackendError(message, expected=" or ".join(close[:3]) or None, found=symbol)
