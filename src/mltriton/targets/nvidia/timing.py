"""How long the GPU works on a call, by events on its stream.

Level: runtime. Before each call that counts, the second-level cache is overwritten, so that the call finds its data in
the GPU's memory. Guarantees: several contenders take turns, and nobody waits for the GPU between calls; times are those
between two events around a call, so that what the host does counts only where the GPU has to wait for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from mltriton.records import NamedTuple
from mltriton.targets.nvidia import driver
from mltriton.targets.nvidia.driver import Device

FLUSHED = 256 << 20  # bytes; the largest second-level cache of NVIDIA's has half as many
_MOST = 1000  # calls of one contender


class _Interval(NamedTuple):
    """The events before and after a call."""

    start: ctypes.c_void_p
    end: ctypes.c_void_p


class Clock:
    """Measures calls on the stream that launches use now. Use it in a `with` statement: it has memory to overwrite."""

    def __init__(self, device: Device | None = None) -> None:
        self.device = device or driver.device(driver.current_index())
        self.stream = ctypes.c_void_p(driver.stream_function()(self.device.index))
        self._memory = 0

    def __enter__(self) -> Clock:
        self._memory = self.device.allocate(FLUSHED)
        return self

    def __exit__(self, *_: object) -> None:
        self.device.free(self._memory)

    def flush(self) -> None:
        """Take everything out of the second-level cache, in the order of the stream."""
        size = ctypes.c_size_t(FLUSHED)
        self._call("cuMemsetD8Async", ctypes.c_uint64(self._memory), ctypes.c_ubyte(0), size, self.stream)

    def wait(self) -> None:
        """Until the stream has done its work."""
        self._call("cuStreamSynchronize", self.stream)

    def estimate(self, run: Callable[[], object], calls: int = 5) -> float:
        """Milliseconds of a call, roughly; the first ones compile."""
        run()
        self.wait()
        interval = self._interval()
        self._record(interval.start)
        for _ in range(calls):
            self.flush()
            run()
        self._record(interval.end)
        self.wait()
        return self._milliseconds(interval) / calls

    def times(
        self, contenders: Mapping[str, Callable[[], object]], rounds: int, before: Callable[[], object] | None = None
    ) -> dict[str, list[float]]:
        """Milliseconds of each call of each contender, which take turns; `before` runs before each, unmeasured."""
        taken: dict[str, list[_Interval]] = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, run in contenders.items():
                if before is not None:
                    before()
                self.flush()
                interval = self._interval()
                self._record(interval.start)
                run()
                self._record(interval.end)
                taken[name].append(interval)
        self.wait()
        return {name: [self._milliseconds(interval) for interval in of] for name, of in taken.items()}

    def _interval(self) -> _Interval:
        interval = _Interval(ctypes.c_void_p(), ctypes.c_void_p())
        for event in interval:
            self._call("cuEventCreate", ctypes.byref(event), 0)
        return interval

    def _record(self, event: ctypes.c_void_p) -> None:
        self._call("cuEventRecord", event, self.stream)

    def _milliseconds(self, interval: _Interval) -> float:
        taken = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(taken), *interval)
        for event in interval:
            self._call("cuEventDestroy", event)
        return taken.value

    def _call(self, name: str, *arguments: object) -> None:
        with self.device.current():
            self.device.api.call(name, *arguments, what="measuring")


@contextmanager
def clock() -> Generator[Callable[[Callable[[], object]], float]]:
    """What gives the milliseconds of one call, once the GPU has done it; the memory is there for all of them."""
    with Clock() as kept:
        yield lambda run: kept.times({"": run}, 1)[""][0]


def bench(
    run: Callable[[], object], warmup: float, rep: float, before: Callable[[], object] | None = None
) -> Sequence[float]:
    """Milliseconds of single calls: about `rep` milliseconds of them, after about `warmup` that do not count."""
    with Clock() as clock:
        estimate = max(clock.estimate(run), 1e-3)
        clock.times({"": run}, calls_in(warmup, estimate), before)
        return clock.times({"": run}, calls_in(rep, estimate), before)[""]


def calls_in(budget: float, estimate: float) -> int:
    """How many calls fit into so many milliseconds; one at least."""
    return min(_MOST, max(1, int(budget / estimate)))
