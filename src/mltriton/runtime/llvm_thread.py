"""LLVM's threads: llvmlite's objects are made, used and freed where no exception arrives from outside.

Level: runtime. Python runs the handlers of signals on the main thread, between any two instructions. An exception that
one raises while llvmlite frees an object makes it free the object twice, and while llvmlite takes its lock, keep it.
`call_llvm` does work on a thread of its own, in which nobody raises anything, and waits. Guarantees: no llvmlite object
is left to the caller, by an error's frames neither (`Kept` holds those that must outlive the call); an exception that
reaches the caller (Ctrl-C) goes on at once, and the work ends by itself; a process that ends waits for it, `GRACE`
seconds at most. Where the system gives no thread the work is done here.
"""

from __future__ import annotations

import atexit
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from weakref import ref

from mltriton.runtime.compile_thread import GRACE, is_deep
from mltriton.runtime.own_thread import SLICE, NoThreadError, OwnThread

if TYPE_CHECKING:
    from _thread import LockType

T = TypeVar("T")

# Bytes: twice what a main thread has (LLVM takes less than 256 KiB for 6,000 operations in a chain), and little beside
# LLVM itself where memory is limited; more for what is nested so deep that Python needed more.
_STACK, _DEEP_STACK = 16 * 2**20, 128 * 2**20


def call_llvm(work: Callable[[], T]) -> T:
    """What `work` gives, which must hold no llvmlite object. Raises what it raises. `work` must be fit to run twice."""
    for size in (_DEEP_STACK, _STACK) if is_deep() else (_STACK,):
        try:
            return _Call(work).run(size)
        except NoThreadError:
            continue
    return work()


class _Call(OwnThread[T]):
    """Work on a thread that Python does not know by name, so that nobody raises exceptions in it."""

    def run(self, stack: int) -> T:
        """Do the work on a stack of so many bytes and wait for it. Raises `NoThreadError`."""
        process = os.getpid()
        self._start(stack)
        while not self._ended(SLICE):
            if os.getpid() != process:  # A signal's handler has forked; the thread is the parent's.
                return call_llvm(self._work)
        return self._outcome()

    def _main(self) -> None:
        _under_way.add(self._running)
        _free_dropped()
        super()._main()
        _under_way.discard(self._running)

    def _clean(self, error: BaseException) -> None:
        """Free what the frames held that the error and its causes came through."""
        import traceback

        chain, seen = [error], set[int]()
        while chain:
            error = chain.pop()
            if id(error) not in seen:
                seen.add(id(error))
                traceback.clear_frames(error.__traceback__)
                chain += [cause for cause in (error.__cause__, error.__context__) if cause is not None]


class Kept:
    """Holds an llvmlite object that outlives a call, and is made in it. It may go on any thread: the object is freed in
    the next call.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, held: object) -> None:
        grave = _Grave(self, _dropped.append)  # Appending is one step of C code: no handler runs in it.
        grave.held = held
        _graves[id(grave)] = grave


class _Grave(ref[Kept]):
    held: object


_graves: dict[int, _Grave] = {}
_dropped: deque[ref[Kept]] = deque()


def _free_dropped() -> None:
    while _dropped:
        try:
            del _graves[id(_dropped.popleft())]
        except IndexError:  # Another thread was faster.
            return


_under_way: set[LockType] = set()


@atexit.register
def _finish() -> None:
    """Let LLVM's work end before its library goes, for a moment: it may take minutes. Ctrl-C ends the wait."""
    left, deadline = set(_under_way), time.monotonic() + GRACE
    while left & _under_way and time.monotonic() < deadline:
        time.sleep(SLICE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_under_way.clear)
