"""`triton.testing`'s other clocks, and what it asks of a GPU's driver.

Level: user. Upstream measures by CUDA graphs or by its profiler where launches take longer than kernels; here
`do_bench` measures the kernel in all cases (the host's clock on the CPU, the GPU's own events on a GPU), so that these
names are it. Clocks of GPUs are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from mltriton.as_triton.throughput import get_dram_gbps, get_max_simd_tflops
from mltriton.errors import TargetError
from mltriton.runtime.driver import driver
from mltriton.testing import do_bench

__all__ = ["do_bench_cudagraph", "do_bench_cudagraph_proton", "do_bench_proton", "set_gpu_clock"]

do_bench_proton = do_bench


def do_bench_cudagraph(
    fn: Callable[[], object],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that a call of `fn` takes, measured for about `rep` milliseconds."""
    return do_bench(fn, rep, rep, grad_to_none, quantiles, return_mode)


do_bench_cudagraph_proton = do_bench_cudagraph


@contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Generator[tuple[float, float]]:
    """On the CPU: its 10 ** 12 operations and gigabytes a second. Raises `TargetError` on a GPU."""
    if _is_gpu():
        hint = f"nvidia-smi --lock-gpu-clocks={ref_sm_clock} --lock-memory-clocks={ref_mem_clock}"
        raise TargetError("mltriton does not change a GPU's clocks", hint=hint)
    yield get_max_simd_tflops("float32"), get_dram_gbps()


def _is_gpu() -> bool:
    return driver.active.get_current_target().backend == "cuda"
