"""Timing several implementations of one job side by side.

Takes callables that do the same work; guarantees that they are measured in one run, in turns, so that a noisy or
throttled machine hits all of them alike. Each turn is a short burst, whose first calls are not counted. Threads of a
library go on spinning on their cores for a while after its last call (OpenBLAS's for some 25 ms): in *phases* the
machine rests between bursts until they sleep, so that every contender has the cores for itself; *in turn* bursts
follow each other, as calls of several libraries do in one program. `compared` measures both. With one thread
(`set_threads(1)`) nothing spins, and CPU time is measured, which other processes change much less than wall-clock time.
"""

from __future__ import annotations

import ctypes
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from mltriton.runtime.config import NUM_THREADS

OURS = "mltriton"
SETTLING = 5e-3  # seconds of calls before those of a burst that count
REST = 0.1  # seconds between phases; longer than idle threads of OpenMP and OpenBLAS spin
LONG = 0.3  # seconds of a call from which a burst counts one
HOPELESS = 5.0

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h


@dataclass(frozen=True)
class Times:
    """Seconds of one call (wall-clock, or CPU with one thread): the shortest and the median of all counted calls."""

    minimum: float
    median: float


@dataclass(frozen=True)
class Measurement:
    """One job: its name, its problem, what each contender took, and the work it does (for a rate), 0 if that says
    nothing.

    `unit` is `GFLOP/s` or `GB/s`; `work` counts floating-point operations or bytes. `in_turn` is what contenders took
    right after one another, where `times` are those of phases.
    """

    job: str
    problem: str
    times: Mapping[str, Times]
    work: float = 0.0
    unit: str = "GFLOP/s"
    in_turn: Mapping[str, Times] = field(default_factory=dict[str, Times])

    def ratio(self, statistic: str = "median") -> float:
        """How many times as fast as the best of the others we are; above 1 we are faster. NaN with nothing to compare
        with.
        """
        return _ratio(self.times, statistic)

    def ratio_to(self, name: str) -> float:
        """The median time of one of the others over ours; NaN where it did not take part."""
        return self.times[name].median / self.times[OURS].median if name in self.times else math.nan

    def ratio_in_turn(self) -> float:
        """The same, of the medians right after one another."""
        return _ratio(self.in_turn, "median")

    def rate(self, name: str) -> float:
        """Work a second of the shortest call, in units of 1e9."""
        return self.work / self.times[name].minimum / 1e9


def _ratio(times: Mapping[str, Times], statistic: str) -> float:
    others = [getattr(taken, statistic) for name, taken in times.items() if name != OURS]
    return min(others) / getattr(times[OURS], statistic) if others and OURS in times else math.nan


Contenders = Mapping[str, Callable[[], object]]


def compared(job: str, problem: str, contenders: Contenders, work: float = 0.0, unit: str = "GFLOP/s") -> Measurement:
    """Time the contenders in phases; where they have several threads, in turn as well."""
    several = NUM_THREADS.get() != 1 and len(contenders) > 1
    in_turn = measure(contenders) if several else {}
    return Measurement(job, problem, measure(contenders, rest=REST if several else 0.0), work, unit, in_turn)


def measure(contenders: Contenders, rounds: int = 40, budget: float = 3.0, rest: float = 0.0) -> dict[str, Times]:
    """Time the contenders in turns: `rounds` bursts each, fewer (but two) when they would take longer than about
    `budget` seconds together. One that is `HOPELESS` times as slow as the fastest in the first round is not timed
    again. Before each burst nothing runs for `rest` seconds.
    """
    keep_freed_memory()
    for run in contenders.values():
        run()  # compiles, or loads a library
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    started = time.perf_counter()
    racing = list(contenders)
    for turn in range(rounds):
        if turn >= 2 and time.perf_counter() - started > budget:
            break
        for name in racing:
            if rest:
                time.sleep(rest)
            samples[name] += _burst(contenders[name])
        fastest = min(map(min, samples.values()))
        racing = [name for name in racing if name == OURS or min(samples[name]) < HOPELESS * fastest]
    return {name: Times(min(taken), statistics.median(taken)) for name, taken in samples.items()}


def set_threads(count: int) -> None:
    """Let every library use `count` threads. Must be called before they are imported."""
    os.environ.update(settings_of_threads(count))


def settings_of_threads(count: int) -> dict[str, str]:
    """The environment in which every library uses `count` threads."""
    names = ("MLTRITON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict.fromkeys(names, str(count))


@cache
def keep_freed_memory() -> None:
    """Let the C library (glibc) give freed memory out again instead of returning it to the system, so that no contender
    pays for the page faults of a fresh result.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def _burst(run: Callable[[], object]) -> list[float]:
    """Seconds of a few calls in a row, after at least one, and `SETTLING` seconds of them, that are not counted; short
    calls are timed several at once.
    """
    clock = time.thread_time if NUM_THREADS.get() == 1 else time.perf_counter
    started = now = clock()
    calls = 0
    while calls == 0 or now - started < SETTLING:
        run()
        calls += 1
        now = clock()
    repeat = max(1, int(calls * 1e-3 / (now - started)))
    taken: list[float] = []
    for _ in range(3 if now - started < LONG else 1):
        started = clock()
        for _ in range(repeat):
            run()
        taken.append((clock() - started) / repeat)
    return taken


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(math.log(value) for value in values))
