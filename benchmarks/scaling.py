"""How the same work (strong) and work that grows with the threads (weak) scale from one thread to all, beside torch.

Each number of threads has a process of its own, in which every library uses that many. `scripts/plot_scaling.py` draws
what `mltriton bench scaling --json FILE` writes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

from mltriton.runtime.native.cpus import available_cpus
from mltriton.tools import jobs
from mltriton.tools.side_by_side import REST, Measurement, Times, measure, settings_of_threads


def measurements(quick: bool) -> Iterator[Measurement]:
    for threads in thread_counts():
        command = [sys.executable, __file__, str(threads), *["--quick"] * quick]
        environment = os.environ | settings_of_threads(threads)
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            times = {name: Times(*taken) for name, taken in row["times"].items()}
            yield Measurement(row["job"], f"{threads} thread{'s' * (threads > 1)}", times, row["work"], row["unit"])


def thread_counts() -> list[int]:
    """1, 2, 4 and so on, up to the processors of this process."""
    most = available_cpus()
    return sorted({1 << power for power in range(most.bit_length()) if 1 << power <= most} | {most})


def problems(threads: int, quick: bool) -> Iterator[tuple[str, jobs.Job]]:
    """Names and jobs: of one size whatever the number of threads, then of so much a thread."""
    size, columns = (256, 256) if quick else (2048, 4096)
    for dtype in ("float32", "bfloat16") if jobs.has_torch() else ("float32",):
        yield f"GEMM {dtype} {size}, strong", jobs.gemm(size, size, size, dtype)
    yield f"softmax {size} x {columns}, strong", jobs.softmax(size, columns)
    yield f"layer norm {size} x {columns}, strong", jobs.layer_norm(size, columns)
    yield f"GEMM float32 {size // 8} rows a thread, weak", jobs.gemm(size // 8 * threads, size, size, "float32")
    yield f"softmax {size // 8} rows a thread x {columns}, weak", jobs.softmax(size // 8 * threads, columns)


def _measure_here(threads: int, quick: bool) -> None:
    for name, job in problems(threads, quick):
        times = measure(job.contenders, budget=1.0, rest=REST)
        taken = {library: (its.minimum, its.median) for library, its in times.items()}
        print(json.dumps({"job": name, "times": taken, "work": job.work, "unit": job.unit}), flush=True)


if __name__ == "__main__":
    _measure_here(int(sys.argv[1]), "--quick" in sys.argv)
