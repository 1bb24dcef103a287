"""Which of several ways to do a thing is the fastest, on a machine that does other things too.

Level: runtime. All candidates are run in turns, so that a slow moment of the machine slows all of them; the slower half
(by its shortest run, which other programs disturb least) leaves after each round, and those that stay are run longer.
Guarantees: a candidate that fails leaves, and nobody else; every other one has run twice at least, unless its first run
was far longer than another's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mltriton.tracebacks import raised_by_signal

Timings = tuple[float, ...]

FIRST_SHARE = 1 / 16  # of a candidate's time goes into its first round; it doubles
MOST_RUNS = 100  # of a candidate in a round
FINALISTS = 2
HOPELESS = 8.0  # A candidate whose first run takes so many times another's leaves at once,
NOTICEABLE = 50.0  # if it takes more than these milliseconds, which loading a kernel does not.


@dataclass
class Candidate:
    """`run` does it once and gives milliseconds; `first` is the first run's, `times` the later ones'."""

    run: Callable[[], float]
    first: float = 0.0
    times: list[float] = field(default_factory=list[float])
    error: Exception | None = None

    @property
    def shortest(self) -> float:
        """The best estimate there is."""
        return min(self.times, default=self.first)

    @property
    def timings(self) -> Timings:
        """Median, 20 % and 80 % quantiles."""
        return tuple(float(value) for value in np.quantile(self.times or [self.first], (0.5, 0.2, 0.8)))

    def measured(self) -> bool:
        """Run once more; whether that went well."""
        return self._try(lambda: self.times.append(self.run()))

    def begun(self) -> bool:
        """Run for the first time, whose time counts little; whether that went well."""

        def begin() -> None:
            self.first = self.run()

        return self._try(begin)

    def _try(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except Exception as error:
            if raised_by_signal(error):
                raise
            self.error = error
        return self.error is None


def fastest(
    candidates: Sequence[Candidate], warmup: float, rep: float, tell: Callable[[int], None] = lambda left: None
) -> Candidate | None:
    """The fastest one; None where all fail.

    `warmup` milliseconds are spent before times count, and about `rep` on those that come last, together; `tell` is
    called with the number of those left, before each round.
    """
    left = [candidate for candidate in candidates if candidate.begun()]
    quickest = min((candidate.first for candidate in left), default=0.0)
    left = [c for c in left if c.first <= max(HOPELESS * quickest, NOTICEABLE)]
    _warm(left, warmup)
    share = rep * FIRST_SHARE
    while left:
        tell(len(left))
        if len(left) <= FINALISTS:
            return min(_round(left, rep / FINALISTS), key=lambda candidate: candidate.timings, default=None)
        left = sorted(_round(left, share), key=lambda candidate: candidate.shortest)
        left = left[: (len(left) + 1) // 2]
        share = min(2 * share, rep / FINALISTS)
    return None


def _round(left: Sequence[Candidate], share: float) -> list[Candidate]:
    """Run each candidate for about `share` milliseconds, in turns; those that did not fail."""
    runs = [min(MOST_RUNS, max(1, int(share / max(candidate.shortest, 1e-3)))) for candidate in left]
    for turn in range(max(runs)):
        for candidate, count in zip(left, runs, strict=True):
            if turn < count and candidate.error is None:
                candidate.measured()
    return [candidate for candidate in left if candidate.error is None]


def _warm(left: Sequence[Candidate], milliseconds: float) -> None:
    """Let the machine come to speed; the times count for nothing."""
    started = time.perf_counter()
    for turn in range(MOST_RUNS * len(left)):
        if (time.perf_counter() - started) * 1e3 >= milliseconds:
            return
        candidate = left[turn % len(left)]
        if candidate.error is None and candidate.measured():
            candidate.times.pop()
