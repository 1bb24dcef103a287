"""Whose calls the traceback of an exception shows: a user's, this package's, or a handler's of signals.

Level: all. Imported where something failed, and not before.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import TracebackType

from mltriton.errors import PACKAGE

_PYTHON = str(Path(os.__file__).parent) + os.sep
_INSTALLED = str(Path(_PYTHON, "site-packages")) + os.sep  # what is installed below it is the user's again


def users_frames(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the calls inside this package, and those of Python's own modules that it made."""
    calls: list[TracebackType] = []
    inside = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        of_python = file.startswith(_PYTHON) and not file.startswith(_INSTALLED)
        inside = file.startswith(PACKAGE) or (inside and of_python)
        if not inside:
            calls.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for call in reversed(calls):
        kept = TracebackType(kept, call.tb_frame, call.tb_lasti, call.tb_lineno)
    return kept


def raised_by_signal(error: BaseException) -> bool:
    """Whether an exception comes from a handler of signals (a time limit, an interrupt), not from what it interrupted.

    Such a one goes to whoever set the handler, and no `InternalError` takes its place.
    """
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    functions = [getattr(handler, "__func__", handler) for handler in handlers if callable(handler)]
    codes = {getattr(function, "__code__", None) for function in functions}
    codes |= {getattr(type(function).__call__, "__code__", None) for function in functions}
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code not in codes:
        at = at.tb_next
    return at is not None
