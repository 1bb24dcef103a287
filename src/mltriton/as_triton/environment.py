"""Upstream's environment variables, read where a setting of ours is not set.

Level: user. `runtime/config.py` asks `READERS` where mltriton stands in for triton. Variables are read when a setting
is asked for, so that a program may set them at any time. What means nothing here (of GPUs, of upstream's compiler's
insides) is not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from mltriton.runtime import config

_IR = "tt,ttg,warp,intrinsic"
# (variable, what it asks to print)
_DUMPS = (("MLIR_ENABLE_DUMP", _IR), ("LLVM_IR_ENABLE_DUMP", "llvm"), ("NVPTX_ENABLE_DUMP", "asm,ptx"))


def _variable(name: str) -> str:
    return os.environ.get(name, "")


def _is_set(name: str) -> bool:
    return _variable(name).lower() in ("1", "true", "yes", "on", "y")


Reading = tuple[str, str]  # a variable and its text


def _same(name: str) -> Reading:
    return name, _variable(name)


def _cache_dir() -> Reading:
    home = _variable("TRITON_HOME")
    return "TRITON_CACHE_DIR", _variable("TRITON_CACHE_DIR") or (f"{home}/.triton/cache" if home else "")


def _dump() -> Reading:
    """Levels; `MLIR_ENABLE_DUMP` may name the kernel that they are asked of."""
    words = [levels for name, levels in _DUMPS if _is_set(name)]
    kernel = _variable("MLIR_ENABLE_DUMP")
    if kernel and not _is_set("MLIR_ENABLE_DUMP") and kernel.isidentifier():
        words += [_IR, f"@{kernel}"]
    return "MLIR_ENABLE_DUMP", ",".join([*words, "all"] if _is_set("TRITON_KERNEL_DUMP") else words)


def _dump_dir() -> Reading:
    return _same("TRITON_DUMP_DIR" if _is_set("TRITON_KERNEL_DUMP") else "MLIR_DUMP_PATH")


UPSTREAM_VARIABLES = (
    *("TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_ALWAYS_COMPILE", "TRITON_KERNEL_DUMP", "TRITON_DUMP_DIR"),
    *("TRITON_PRINT_AUTOTUNING", "TRITON_CACHE_AUTOTUNING", "TRITON_DEBUG", "TRITON_INTERPRET"),
    *("MLIR_ENABLE_DUMP", "MLIR_DUMP_PATH", "LLVM_IR_ENABLE_DUMP", "NVPTX_ENABLE_DUMP"),
)

READERS: Mapping[str, Callable[[], Reading]] = {
    config.CACHE_DIR.name: _cache_dir,
    config.DUMP.name: _dump,
    config.DUMP_DIR.name: _dump_dir,
    config.ALWAYS_COMPILE.name: partial(_same, "TRITON_ALWAYS_COMPILE"),
    config.PRINT_AUTOTUNING.name: partial(_same, "TRITON_PRINT_AUTOTUNING"),
    config.CACHE_AUTOTUNING.name: partial(_same, "TRITON_CACHE_AUTOTUNING"),
    config.INTERPRET.name: partial(_same, "TRITON_INTERPRET"),
}
