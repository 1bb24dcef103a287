"""Python's collector of garbage while a kernel is compiled.

Compiling makes many objects and little garbage: looking for cycles among them would take a third of the time.
Guarantees: the collector is at work afterwards if it was before, also in the child of a fork; what the program keeps
frozen stays so.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import get_ident


@contextmanager
def collector_paused() -> Generator[None]:
    """Let the collector rest, for all threads."""
    was_enabled = gc.isenabled()
    try:  # An exception of a signal's handler may arrive as soon as it is paused.
        _paused[get_ident()] = was_enabled
        gc.disable()
        yield
    finally:
        if was_enabled:
            _settle()
            gc.enable()
        _paused.pop(get_ident(), None)


_paused: dict[int, bool] = {}  # The threads that compile: whether the collector was at work before.
_settled: list[bool] = []  # Not empty after the first compilation.


def _settle() -> None:
    """After the first compilation nearly all new objects are the compiler's own modules, which stay.

    They join the oldest generation, where the collector would put them after it has looked at all of them twice.
    """
    if not _settled and not _program_froze():  # Thawing would thaw its objects, too.
        gc.freeze()
        gc.unfreeze()
    _settled.append(True)


def _program_froze() -> bool:
    """Whether the program keeps objects frozen: all that there were at some time, and `sys.modules` is as old as any.

    Python 3.12 itself freezes those that never die, and freezes them anew in its next full collection.
    """
    return gc.get_freeze_count() > 0 and all(old is not sys.modules for old in gc.get_objects(generation=2))


def _after_fork() -> None:
    """What other threads paused is at work in the child."""
    if get_ident() not in _paused and any(_paused.values()):
        gc.enable()
    for thread in [thread for thread in _paused if thread != get_ident()]:
        del _paused[thread]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
