"""What the compiler itself costs - imports, compiling, loading, launching - against a budget.

Takes a Python file and the name of a function in it that returns seconds; guarantees that each sample is taken in a
fresh process with compiled Python modules, as an installed package has them, and a kernel cache of its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

from mltriton.errors import OptionError


@dataclass(frozen=True)
class Cost:
    """Something that takes time again and again: samples and budget in seconds."""

    name: str
    samples: tuple[float, ...]
    budget: float

    @property
    def minimum(self) -> float:
        """The shortest sample."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def ok(self) -> bool:
        """Whether the median is within the budget."""
        return self.median <= self.budget


def cpu_seconds() -> float:
    """CPU time of this process's threads, and of the processes that it started and that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def sample_in_processes(file: Path, function: str, count: int, *, cached: bool = False) -> tuple[float, ...]:
    """What `function` of `file` returns in `count` fresh processes; one before them, which compiles the Python modules,
    is not counted.

    The kernel cache is empty in each, or with `cached` filled by the process that is not counted. Raises `OptionError`
    for a function that fails.
    """
    with TemporaryDirectory(prefix="mltriton-costs-") as folder:
        caches = [str(Path(folder, f"kernels{0 if cached else i}")) for i in range(count + 1)]
        return tuple(
            _sample(file, function, [("MLTRITON_CACHE_DIR", cache), ("PYTHONPYCACHEPREFIX", folder)])
            for cache in caches
        )[1:]


def _sample(file: Path, function: str, settings: Sequence[tuple[str, str]]) -> float:
    program = f"import runpy; print(runpy.run_path({str(file)!r})[{function!r}]())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | dict(settings), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OptionError(f"{function} of {file} failed", found=done.stderr.strip().rpartition("\n")[2])
    return float(done.stdout.split()[-1])
