"""A clock that goes only as far as it is told: what measures times by it finds the same on a busy machine.

It stands for the module `time` where that is what a module of ours asks.
"""

from __future__ import annotations

TICK = 100  # nanoseconds that pass with every look at it


class Clock:
    """Wall-clock time and CPU time."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0

    def sleep(self, seconds: float) -> None:
        """Let time pass in which this thread does nothing."""
        self.wall += round(seconds * 1e9)

    def work(self, seconds: float) -> None:
        """Let time pass in which this thread computes."""
        self.sleep(seconds)
        self.cpu += round(seconds * 1e9)

    def perf_counter_ns(self) -> int:
        """Nanoseconds of wall-clock time."""
        self.wall += TICK
        return self.wall

    def perf_counter(self) -> float:
        """Seconds of wall-clock time."""
        return self.perf_counter_ns() * 1e-9

    def thread_time(self) -> float:
        """Seconds of CPU time."""
        self.cpu += TICK
        return self.cpu * 1e-9
