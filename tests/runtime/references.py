"""Counts references to objects around repeated calls, for the tests of the launchers."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable

CALLS = 1000


def references_kept(things: Iterable[object], call: Callable[[], object]) -> dict[str, int]:
    """How many references to `things` `CALLS` calls keep, or give away: of those where that is no accident.

    Cyclic garbage that earlier tests left behind holds objects everybody shares (True, torch's element types): it is
    collected before counting, and never between. Other threads may still hold some for a moment, so that what counts is
    a change by a reference for every second call.
    """
    things = list(things)
    gc.collect()
    gc.disable()
    try:
        before = [sys.getrefcount(thing) for thing in things]
        for _ in range(CALLS):
            call()
        after = [sys.getrefcount(thing) for thing in things]
    finally:
        gc.enable()
    kept = {repr(thing): new - old for thing, old, new in zip(things, before, after, strict=True)}
    return {name: count for name, count in kept.items() if abs(count) >= CALLS // 2}
