"""`triton.testing`'s questions about a machine: how fast its memory and its arithmetic are at most.

Level: user. Answers for this machine's CPU and all threads of a launch. Memory is measured, once; arithmetic is
counted: two units of a vector register's width in each core (matrix tiles: what the instruction does in a cycle), at
the clock rate that is given, or the highest that the system names.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mltriton.errors import TargetError

F = TypeVar("F", bound=Callable[..., Any])
BYTES = 64 << 20  # that a thread copies
UNITS = 2  # of arithmetic in a core
# Operations of matrix tiles (AMX) in a cycle of a core: products and sums.
TILES = {"bfloat16": 1024, "float16": 1024, "int8": 2048}
_BITS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "int8": 8, "int32": 32}
_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")


@cache
def get_dram_gbps(device: int | None = None) -> float:
    """Gigabytes a second that all threads read and write when they copy memory: the best of five."""
    threads = _threads()
    sources = [np.ones(BYTES, np.uint8) for _ in range(threads)]
    targets = [np.empty(BYTES, np.uint8) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        seconds = min(_timed(lambda: list(pool.map(np.copyto, targets, sources))) for _ in range(5))
    return 2e-9 * BYTES * threads / seconds


def get_max_simd_tflops(dtype: Any, clock_rate: float | None = None, device: int | None = None) -> float:
    """10 ** 12 operations a second of vector registers; `clock_rate` in kHz."""
    from mltriton.targets.cpu.features import host  # Needed seldom.

    name = _name(dtype)
    narrow = host().bf16_dot and name == "bfloat16"
    bits = _BITS[name] if narrow or not name.startswith(("float16", "bfloat16")) else 32  # computed in fp32
    return host().lanes(bits) * 2 * UNITS * _threads() * (clock_rate or _clock_rate()) * 1e-9


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float | None = None, device: int | None = None) -> float:
    """10 ** 12 operations a second of matrix tiles where the processor has them for the dtype, else of vectors."""
    from mltriton.targets.cpu.features import host  # Needed seldom.

    short = {"bfloat16": "bf16", "float16": "f16", "int8": "i8"}.get(_name(dtype))
    if short not in host().matrix_tiles:
        return get_max_simd_tflops(dtype, clock_rate, device)
    return TILES[_name(dtype)] * _threads() * (clock_rate or _clock_rate()) * 1e-9


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """Numbers of the first GPU as `nvidia-smi --query-gpu` gives them. Raises FileNotFoundError where there is none."""
    question = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}", "--format=csv,noheader,nounits"]
    return [int(number) for number in subprocess.check_output(question, text=True).split(",")]


def cuda_memcheck(**_options: Any) -> Callable[[F], F]:
    """A decorator that leaves a test as it is: `MLTRITON_SANITIZE=1` checks accesses here."""
    return lambda fn: fn


def _timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def _threads() -> int:
    from mltriton.runtime.native.launcher import num_threads  # Needed seldom.

    return num_threads()


def _name(dtype: Any) -> str:
    name = str(dtype).rpartition(".")[2]
    name = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}.get(name, name)
    if name not in _BITS:
        raise TargetError(f"nothing is known of the speed of {dtype}", expected=", ".join(_BITS), found=name)
    return name


def _clock_rate() -> float:
    """The highest clock rate in kHz. Raises `TargetError` where the system does not name one."""
    try:
        return float(_CLOCK.read_text())
    except (OSError, ValueError):
        pass
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    rates = [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    if not rates:
        raise TargetError("the system does not say how fast this processor runs", hint="Give clock_rate, in kHz.")
    return max(rates) * 1e3
