"""Benchmarks on an NVIDIA GPU: the same text of kernels compiled by mltriton and by upstream, torch, and plain copies.

Times are the GPU's own between two events, with its second-level cache empty, contenders in turns
(`targets/nvidia/timing.py`). Guarantees: what is timed was compared with torch's result before, on random data.
"""

from __future__ import annotations

import atexit
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from mltriton.errors import ExecutionError, OptionError
from mltriton.targets.nvidia import driver
from mltriton.targets.nvidia.timing import Clock, calls_in
from mltriton.targets.target import split_name
from mltriton.tools.side_by_side import OURS, Measurement, Times

UPSTREAM = "triton"
COPY = "copy"
_IMPORTS = {"import triton\n": "import mltriton as triton\n", "import triton.language": "import mltriton.language"}
_BUDGET = 60.0  # milliseconds of each contender
_ROUNDS = (10, 100)  # at least, and at most


def is_on_gpu(target: str) -> bool:
    """Whether what is timed runs on an NVIDIA GPU, not on the CPU. Raises `OptionError` for other targets."""
    if target != "cpu" and split_name(target)[0] != "cuda":
        raise OptionError(f"nothing is timed on {target}", expected="cpu or cuda", found=target)
    return target != "cpu"


def name_of_gpu() -> str:
    """What is measured on. Raises `DeviceError` where there is no GPU."""
    gpu = driver.device(driver.current_index())
    version = ".".join(str(number) for number in gpu.capability)
    return f"{gpu.name} (compute capability {version})"


@cache
def load_both(path: Path) -> dict[str, ModuleType]:
    """The module at `path`, which imports triton or mltriton as it, for mltriton and, where installed, for upstream."""
    text = path.read_text(encoding="utf-8")
    kept = tempfile.TemporaryDirectory(prefix="mltriton-bench-")  # until the process ends
    atexit.register(kept.cleanup)
    folder = Path(kept.name)
    ours = theirs = text
    for upstream, own in _IMPORTS.items():
        ours, theirs = ours.replace(upstream, own), theirs.replace(own, upstream)
    if ours == theirs:
        raise OptionError(f"{path} does not import triton")
    texts = {OURS: ours} | ({UPSTREAM: theirs} if find_spec(UPSTREAM) is not None else {})
    return {name: _load(folder / f"{path.stem}_of_{name}.py", of) for name, of in texts.items()}


def _load(file: Path, text: str) -> ModuleType:
    file.write_text(text, encoding="utf-8")
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[file.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy_of(bytes_: int) -> Callable[[], object]:
    """A copy that reads and writes so many bytes together."""
    torch: Any = sys.modules["torch"]
    source = torch.empty(bytes_ // 2, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def compared_on_gpu(
    job: str,
    problem: str,
    contenders: Mapping[str, Callable[[], Any]],
    *,
    work: float,
    unit: str = "GB/s",
    expected: Callable[[], Any] | None = None,
    tolerance: float = 2e-2,
) -> Measurement:
    """Check what the contenders give (tensors) against `expected`, then time them in turns.

    `work` counts bytes or floating-point operations; with bytes a copy of as many takes part. Raises `ExecutionError`
    for a result that is off by more than `tolerance` of the greatest element.
    """
    if expected is not None:
        wanted = expected()
        for name, run in contenders.items():
            _check(f"{job} {problem} of {name}", run(), wanted, tolerance)
    every = {**contenders, **({COPY: copy_of(int(work))} if unit == "GB/s" else {})}
    with Clock() as clock:
        estimate = max(clock.estimate(run) for run in every.values())
        rounds = min(_ROUNDS[1], max(_ROUNDS[0], calls_in(_BUDGET, max(estimate, 1e-3))))
        taken = clock.times(every, rounds)
    times = {name: Times(min(of) / 1e3, statistics.median(of) / 1e3) for name, of in taken.items()}
    return Measurement(job, problem, times, work, unit)


def _check(what: str, found: Any, wanted: Any, tolerance: float) -> None:
    error = (found.double() - wanted.double()).abs().max().item() / max(1e-30, wanted.double().abs().max().item())
    if not error <= tolerance:
        raise ExecutionError(f"the result of {what} is wrong", expected=f"within {tolerance}", found=f"{error:.3g}")


def host_times(
    job: str, problem: str, contenders: Mapping[str, Callable[[], object]], *, calls: int = 200, rounds: int = 40
) -> Measurement:
    """What a call takes of the host's time: many in a row, and the GPU is waited for between."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    torch: Any = sys.modules["torch"]
    for run in contenders.values():
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(calls):
                run()
            taken[name].append((time.perf_counter() - started) / calls)
    torch.cuda.synchronize()
    return Measurement(job, problem, {name: Times(min(of), statistics.median(of)) for name, of in taken.items()})


def compile_times(job: str, problem: str, contenders: Mapping[str, Callable[[], object]]) -> Measurement:
    """CPU seconds of each contender's first call, programs that it starts included; nothing is in a cache."""
    times: dict[str, Times] = {}
    for name, run in contenders.items():
        started = cpu_seconds()
        run()
        seconds = cpu_seconds() - started
        times[name] = Times(seconds, seconds)
    return Measurement(job, problem, times)


def cpu_seconds() -> float:
    """Of this process and those that it has started and that are done."""
    return sum(os.times()[:4])
