"""Timing several implementations of one job side by side.

Takes callables that do the same work; guarantees that they are measured in one run, in turns, so that a noisy or
throttled machine hits all of them alike. Each turn is a short burst: the first call of a burst, which pays for
another library's threads still spinning, is not counted.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

OURS = "mltriton"


@dataclass(frozen=True)
class Times:
    """Seconds of one call: the shortest and the median of all counted calls."""

    minimum: float
    median: float


@dataclass(frozen=True)
class Measurement:
    """One job: its name, its problem, what each contender took, and the work it does (for a rate), 0 if that says
    nothing.

    `unit` is `GFLOP/s` or `GB/s`; `work` counts floating-point operations or bytes.
    """

    job: str
    problem: str
    times: Mapping[str, Times]
    work: float = 0.0
    unit: str = "GFLOP/s"

    def ratio(self, statistic: str = "median") -> float:
        """How many times as fast as the best of the others we are; above 1 we are faster. NaN with nothing to compare
        with.
        """
        others = [getattr(times, statistic) for name, times in self.times.items() if name != OURS]
        return min(others) / getattr(self.times[OURS], statistic) if others and OURS in self.times else math.nan

    def rate(self, name: str) -> float:
        """Work a second of the shortest call, in units of 1e9."""
        return self.work / self.times[name].minimum / 1e9


def measure(contenders: Mapping[str, Callable[[], object]], rounds: int = 7, budget: float = 4.0) -> dict[str, Times]:
    """Time the contenders in turns: `rounds` bursts each, fewer when they would take longer than about `budget`
    seconds together.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    started = time.perf_counter()
    for turn in range(rounds):
        if turn >= 2 and time.perf_counter() - started > budget:
            break
        for name, run in contenders.items():
            samples[name] += _burst(run)
    return {name: Times(min(taken), statistics.median(taken)) for name, taken in samples.items()}


def _burst(run: Callable[[], object]) -> list[float]:
    """Seconds of a few calls in a row, after one that is not counted; short calls are timed several at once."""
    started = time.perf_counter()
    run()
    first = time.perf_counter() - started
    repeat = max(1, min(1000, int(1e-3 / max(first, 1e-7))))
    taken: list[float] = []
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(repeat):
            run()
        taken.append((time.perf_counter() - started) / repeat)
    return taken


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(math.log(value) for value in values))
