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
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Generic, TypeVar

from mltriton.errors import NestingError
from mltriton.runtime import config

if TYPE_CHECKING:
    from mltriton.ir.operation import Operation

T = TypeVar("T")

STACKS = (512 * 2**20, 128 * 2**20, 32 * 2**20)  # Bytes, tried in turn: a process may have less memory left to map.
BYTES_A_FRAME = (
    1280  # Of the C stack, at most: a call from C into Python (a generator's in `any`) takes less than this.
)
SHALLOW = 24  # Operations inside each other that every stack has room for.
SLICE = 0.05  # Seconds between two looks at the clock while waiting.
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
            except _NoThreadError:
                continue
    finally:
        _deep_stack.reset(token)
    raise RecursionError


class _NoThreadError(Exception):
    """The system gives no thread with such a stack."""


class _Work(Generic[T]):
    """Work on a thread of its own."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._result: T | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self, stack: int) -> T:
        """Do the work on a stack of so many bytes (0: the usual size) and wait for it."""
        try:
            self._start(stack)
            self._wait()
        except BaseException:
            self._stop()
            raise
        error, self._error = self._error, None
        if error is None:
            return self._result  # pyright: ignore[reportReturnType]
        try:
            raise error
        finally:
            del error  # Its traceback holds this frame.

    def _start(self, stack: int) -> None:
        context, traced, profiled = copy_context(), sys.gettrace(), sys.getprofile()

        def main() -> None:
            sys.settrace(traced)
            sys.setprofile(profiled)
            context.run(self._guarded)

        self._thread = threading.Thread(target=main, name="mltriton-compile", daemon=True)
        with _stack_size:
            usual = threading.stack_size(stack)
            try:
                self._thread.start()
            except RuntimeError:
                raise _NoThreadError from None
            finally:
                threading.stack_size(usual)

    def _guarded(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # The caller raises it.
            self._error = error
        finally:
            self._done.set()

    def _wait(self) -> None:
        """Until the work is done. Raises `TimeIsUp`, and whatever reaches this thread meanwhile.

        Outside the main thread an exception from another thread arrives only between two waits.
        """
        deadline = _deadline.get()
        while not self._done.wait(SLICE):
            if deadline is not None and time.monotonic() > deadline + 4 * SLICE:  # A tool's own error says more.
                raise TimeIsUp

    def _stop(self) -> None:
        """Raise an exception inside the work, and give it a moment to end."""
        thread = self._thread
        if thread is None or thread.ident is None or self._done.is_set():
            return
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped))
        self._done.wait(GRACE)


_stack_size = threading.Lock()  # The size of new threads' stacks is one number of the whole process.
_limit_lock = threading.Lock()
_limits: list[int] = []  # Python's own, and those that work under way asked for.


@contextmanager
def _recursion_limit(limit: int) -> Generator[None]:
    """Let Python recurse so deep. The limit is one number for all threads: the last to leave restores it."""
    with _limit_lock:
        if not _limits:
            _limits.append(sys.getrecursionlimit())
        _limits.append(limit)
        sys.setrecursionlimit(max(_limits))
    try:
        yield
    finally:
        with _limit_lock:
            is_ours = sys.getrecursionlimit() == max(_limits)
            _limits.remove(limit)
            if is_ours:
                sys.setrecursionlimit(max(_limits))
            if len(_limits) == 1:
                _limits.clear()


def _after_fork() -> None:
    """A forked process has one thread: what other threads held or asked for is nobody's there."""
    global _stack_size, _limit_lock
    _stack_size, _limit_lock = threading.Lock(), threading.Lock()
    if _limits:
        sys.setrecursionlimit(_limits[0])
        _limits.clear()


os.register_at_fork(after_in_child=_after_fork)
