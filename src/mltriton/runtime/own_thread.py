"""Work on a thread of its own, which the caller waits for.

Level: runtime. Guarantees: the work sees the caller's context variables, its error is raised in the caller with the
frames of both threads, and an exception that reaches the caller at any moment (a signal handler's) leaves no lock held
that the thread needs.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")

SLICE = 0.05  # Seconds between two looks at the clock while waiting.


class NoThreadError(Exception):
    """The system gives no thread with such a stack."""


class OwnThread(Generic[T]):
    """Work on a thread of its own. Derived classes say what kind of thread, and how to wait for it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._context = copy_context()
        self._result: T | None = None
        self._error: BaseException | None = None
        self._is_done = False
        # No event or condition: exceptions in the middle of what is written in Python leave its inner lock held.
        self._running = _thread.allocate_lock()

    def _start(self, stack: int) -> None:
        """Begin, on a stack of so many bytes (0: the usual size). Raises `NoThreadError`."""
        self._running.acquire()
        try:
            with _stack_size:
                usual = threading.stack_size()
                try:
                    threading.stack_size(stack)
                    self._spawn()
                finally:
                    threading.stack_size(usual)
        except RuntimeError:
            self._running.release()
            raise NoThreadError from None

    def _spawn(self) -> None:
        """Start a thread that calls `_main`. Raises `RuntimeError` where there is none."""
        _thread.start_new_thread(self._main, ())

    def _main(self) -> None:
        try:
            self._result = self._context.run(self._work)
        except BaseException as error:  # The caller raises it.
            self._error = error
            self._clean(error)
        finally:
            self._is_done = True
            self._running.release()

    def _clean(self, error: BaseException) -> None:
        """What is to be done with an error on its own thread."""

    def _ended(self, seconds: float) -> bool:
        """Wait, so long at most; whether the work is done."""
        if self._running.acquire(timeout=seconds):
            self._running.release()
        return self._is_done

    def _outcome(self) -> T:
        """Give or raise what the work did, once."""
        error, self._error = self._error, None
        if error is None:
            return self._result  # pyright: ignore[reportReturnType]
        try:
            raise error
        finally:
            del error  # Its traceback holds this frame.


_stack_size = _thread.allocate_lock()  # The size of new threads' stacks is one number of the whole process.


def _after_fork() -> None:
    global _stack_size
    _stack_size = _thread.allocate_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
