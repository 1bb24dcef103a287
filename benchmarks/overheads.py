"""What a user waits for besides kernels: import, first compile, load of a cached kernel, launch. Fresh processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPEAT = 20_000


def measurements(quick: bool) -> Iterator[Any]:
    from mltriton.tools.costs import Cost, sample_in_processes
    from mltriton.tools.jobs import has_torch

    def cost(name: str, function: Callable[[], float], budget: float, cached: bool = False) -> Cost:
        samples = sample_in_processes(Path(__file__), function.__name__, 2 if quick else 7, cached=cached)
        return Cost(name, samples, budget)

    yield cost("import mltriton, its language and jit, on top of numpy (CPU)", import_time, 100e-3)
    yield cost("first compile of the GEMM, imports included (CPU)", compile_gemm, 150e-3)
    yield cost("first compile of causal attention, imports included (CPU)", compile_attention, 300e-3)
    yield cost("load of the cached GEMM, imports included (CPU)", compile_gemm, 5e-3, cached=True)
    yield cost("launch with four numpy arrays (wall)", launch_numpy, 3e-6, cached=True)
    if has_torch():
        yield cost("launch with four torch tensors (wall)", launch_torch, 3e-6, cached=True)


def import_time() -> float:
    import numpy  # noqa: F401 - its own cost is not counted

    started = time.process_time()
    import mltriton
    import mltriton.language

    _ = mltriton.jit
    return time.process_time() - started


def compile_gemm() -> float:
    import numpy as np

    from mltriton.kernels.gemm import matmul_launch

    a = np.ones((1, 1024, 1024), np.float32)
    launch = matmul_launch(a, a, np.empty_like(a))
    return _compile_time(launch)


def compile_attention() -> float:
    import numpy as np

    from mltriton.kernels.attention import attention_launch
    from mltriton.kernels.attention_blocks import Blocks

    q = np.ones((1, 2, 1024, 64), np.float32)
    blocks = Blocks(128, 128)  # Choosing them asks for the number of threads, which loads the launcher.
    return _compile_time(attention_launch(q, q, q, np.empty_like(q), causal=True, blocks=blocks))


def _compile_time(launch: Any) -> float:
    """Until the kernel is ready to be called."""
    from mltriton.tools.costs import cpu_seconds

    started = cpu_seconds()
    _ = launch.compiled().loaded
    return cpu_seconds() - started


def launch_numpy() -> float:
    import numpy as np

    return _launch_time(*(np.ones(64, np.float32) for _ in range(4)))


def launch_torch() -> float:
    import torch

    return _launch_time(*(torch.ones(64) for _ in range(4)))


def _launch_time(*arrays: Any) -> float:
    """The shortest of ten runs of a kernel that does next to nothing."""
    import mltriton as triton
    import mltriton.language as tl

    @triton.jit
    def add3(x_ptr, y_ptr, z_ptr, o_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x, y, z = tl.load(x_ptr + i, i < n), tl.load(y_ptr + i, i < n), tl.load(z_ptr + i, i < n)
        tl.store(o_ptr + i, x + y + z, i < n)

    taken: list[float] = []
    for _ in range(10):
        started = time.perf_counter()
        for _ in range(REPEAT // 10):
            add3[(1,)](*arrays, 64, BLOCK=64)
        taken.append((time.perf_counter() - started) / (REPEAT // 10))
    return min(taken[1:])
