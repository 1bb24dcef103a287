"""Compiling on a thread of its own: with a stack for programs of any depth, or with a limit on its time.

Level: runtime. Passes follow programs by recursion, as deep as operations nest. `unlimited` does the work here and,
where Python's limit stops it, again on a thread with a large stack and a high limit, whatever the caller's depth;
`limited` bounds work in time. Guarantees: the work sees the caller's context variables, trace and profile functions;
its error is raised in the caller with its traceback; an exception that reaches the waiting caller (Ctrl-C, a signal
handler's) stops the work before it goes on; ordinary work costs no thread. While a large stack is in use the recursion
limit is high for every thread, as Python has one limit.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from mltriton.errors import NestingError
from mltriton.runtime import config
from mltriton.runtime.own_thread import SLICE, NoThreadError, OwnThread

if TYPE_CHECKING:
    from mltriton.ir.operation import Operation

T = TypeVar("T")

STACKS = (512 * 2**20, 128 * 2**20, 32 * 2**20)  # Bytes, tried in turn: a process may have less memory left to map.
BYTES_A_FRAME = (
    1280  # Of the C stack, at most: a call from C into Python (a generator's in `any`) takes less than this.
)
SHALLOW = 24  # Operations inside each other that every stack has room for.
GRACE = 5.0  # Seconds that stopped work has to end; work that C code holds is left behind.

# When the work of this context must be done, by time.monotonic(); None: whenever.
_deadline: ContextVar[float | None] = ContextVar("mltriton_deadline", default=None)
_deep_stack: ContextVar[bool] = ContextVar("mltriton_deep_stack", default=False)


class TimeIsUp(Exception):  # noqa: N818 - an event, as `KeyboardInterrupt` is
    """The work took longer than its limit."""


class _Stopped(SystemExit):
    """Raised inside work that nobody waits for any more; a thread that ends by a `SystemExit` says nothing."""


def time_limit() -> float | None:
    """Seconds that a tool may take: what is left of this work's, or the limit that is set; None without one."""
    deadline = _deadline.get()
    return config.COMPILE_TIMEOUT.get() if deadline is None else max(deadline - time.monotonic(), SLICE)


def is_deep() -> bool:
    """Whether this is work on a large stack already."""
    return _deep_stack.get()


def unlimited(work: Callable[[], T]) -> T:
    """What `work` gives; where it recurses too deep for this thread it is done anew on one of a larger stack.

    Raises `NestingError` where that one does not suffice either. `work` must be fit to run twice.
    """
    if is_deep():
        return work()
    try:
        return work()
    except RecursionError:
        pass
    return deep(work)


def deep(work: Callable[[], T]) -> T:
    """What `work` gives on a large stack from the start: for what cannot be done twice. Raises as `unlimited` does."""
    if is_deep():
        return work()
    try:
        return _deep(work)
    except RecursionError:
        pass
    raise NestingError(
        "the program is nested too deep to be compiled", hint="Take it apart: calls, branches and terms nest."
    )


def nests_deep(root: Operation) -> bool:
    """Whether a program's operations nest so deep that following them may need a large stack."""
    depths: dict[Operation | None, int] = {None: 0}
    for op in root.walk():
        depths[op] = depths.get(op.parent_op, 0) + 1
    return max(depths.values()) > SHALLOW


def limited(work: Callable[[], T], seconds: float) -> T:
    """What `work` gives within `seconds`; raises `TimeIsUp` after them. Inside limited work its limit stays."""
    if _deadline.get() is not None:
        return work()
    token = _deadline.set(time.monotonic() + seconds)
    try:
        return _Work(work).run(0)
    finally:
        _deadline.reset(token)


def _deep(work: Callable[[], T]) -> T:
    token = _deep_stack.set(True)
    try:
        for size in STACKS:
            try:
                with _recursion_limit(size // BYTES_A_FRAME):
                    return _Work(work).run(size)
            except NoThreadError:
                continue
    finally:
        _deep_stack.reset(token)
    raise RecursionError


class _Work(OwnThread[T]):
    """Work that can be stopped."""

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(work)
        profiled = sys.getprofile()
        self._traced, self._profiled = sys.gettrace(), profiled if callable(profiled) else None  # cProfile's is not
        self._thread: threading.Thread | None = None

    def run(self, stack: int) -> T:
        """Do the work on a stack of so many bytes (0: the usual size) and wait for it."""
        try:
            self._start(stack)
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self._outcome()

    def _spawn(self) -> None:
        self._thread = threading.Thread(target=self._main, name="mltriton-compile", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        sys.settrace(self._traced)
        sys.setprofile(self._profiled)
        super()._main()

    def _wait(self) -> None:
        """Until the work is done. Raises `TimeIsUp`, and whatever reaches this thread meanwhile.

        Outside the main thread an exception from another thread arrives only between two waits.
        """
        deadline = _deadline.get()
        while not self._ended(SLICE):
            if deadline is not None and time.monotonic() > deadline + 4 * SLICE:  # A tool's own error says more.
                raise TimeIsUp

    def _stop(self) -> None:
        """Raise an exception inside the work, and give it a moment to end."""
        thread = self._thread
        if thread is None or thread.ident is None or self._is_done:
            return
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped))
        self._ended(GRACE)


_limit_lock = threading.Lock()
_limits: list[list[int]] = []  # Python's own, and those that work under way asked for; the first number of each.


@contextmanager
def _recursion_limit(limit: int) -> Generator[None]:
    """Let Python recurse so deep. The limit is one number for all threads: the last to leave restores it."""
    asked = [limit]
    try:
        with _limit_lock:
            if not _limits:
                _limits.append([sys.getrecursionlimit()])
            _limits.append(asked)
            sys.setrecursionlimit(max(_limits)[0])
        yield
    finally:
        with _limit_lock:
            is_ours = [sys.getrecursionlimit()] == max(_limits, default=None)
            _limits[:] = [other for other in _limits if other is not asked]
            if is_ours:
                sys.setrecursionlimit(max(_limits)[0])
            if len(_limits) == 1:
                _limits.clear()


def _after_fork() -> None:
    """A forked process has one thread: what other threads held or asked for is nobody's there."""
    global _limit_lock
    _limit_lock = threading.Lock()
    if _limits:
        sys.setrecursionlimit(_limits[0][0])
        _limits.clear()


os.register_at_fork(after_in_child=_after_fork)
