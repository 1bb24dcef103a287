"""Forks: what other threads of the parent held is free in the child.

Level: runtime. A forked process has one thread. What the others were doing when it was made is never finished there:
locks stay held, modules half imported. Guarantees: a child that was forked while other threads compiled can compile
and launch; a fork waits until LLVM is between two calls, `_PATIENCE` seconds at most. Programs started by `subprocess`
are not concerned. `native/pool.py` and `compile_thread.py` see to their own threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any
from weakref import WeakSet

_PATIENCE = 10.0
_ATTEMPTS = 20
_IMPORTED_ANEW = sys.stdlib_module_names | {"mltriton", "llvmlite"}  # Others might not stand it.

LLVM_LOCK: Any = threading.RLock()  # Held around our own calls of LLVM.
_locks: WeakSet[Any] = WeakSet()


def fork_lock() -> threading.RLock:
    """A reentrant lock that nobody but the forking thread holds in a forked child."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


class _Fork(threading.local):
    """What a thread that forks knows of it. Its steps may be done twice: a signal handler's exception ends them."""

    had_threads = False
    held_before: Sequence[Any] = ()

    def before(self) -> None:
        """Wait for LLVM, whose own state would be torn."""
        self.had_threads = len(sys._current_frames()) > 1  # pyright: ignore[reportPrivateUsage]
        locks = _llvm_locks()
        self.held_before = [lock for lock in locks if lock._is_owned()]
        _surely(*[partial(_take, lock) for lock in locks])

    def in_parent(self) -> None:
        """Go on."""
        _surely(self._release)

    def in_child(self) -> None:
        """Free what other threads held."""
        torn = (_forget_half_imported, _renew_properties) if self.had_threads else ()
        _surely(self._release, _free_locks, *torn)

    def _release(self) -> None:
        for lock in _llvm_locks():
            if lock._is_owned() and lock not in self.held_before:
                lock.release()


def _take(lock: Any) -> None:
    if not lock._is_owned():
        lock.acquire(timeout=_PATIENCE)


def _surely(*steps: Callable[[], object]) -> None:
    """Do all steps, each once more, a few times, where a signal's handler raises in the middle; then raise that."""
    failure: BaseException | None = None
    for step in steps:
        for _ in range(_ATTEMPTS):
            try:
                step()
                break
            except BaseException as error:
                failure = error
    if failure is not None:
        raise failure


def _free_locks() -> None:
    for lock in (*_locks, *_llvm_locks()):
        if not lock._is_owned():
            lock._at_fork_reinit()


def _llvm_locks() -> list[Any]:
    """The locks around every call of LLVM: ours, and llvmlite's, if it is loaded and has one that we know."""
    library = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    lock = getattr(getattr(library, "_lock", None), "_lock", None)
    known = hasattr(lock, "_is_owned") and hasattr(lock, "_at_fork_reinit")
    return [LLVM_LOCK, lock] if known else [LLVM_LOCK]


def _forget_half_imported() -> None:
    """Let modules be imported anew that another thread was importing."""
    bootstrap: Any = sys.modules["importlib._bootstrap"]
    for name in [name for name in bootstrap._module_locks if name.partition(".")[0] in _IMPORTED_ANEW]:
        reference = bootstrap._module_locks.get(name)
        lock = reference() if reference is not None else None
        if lock is not None and lock.owner not in (None, threading.get_ident()):
            del bootstrap._module_locks[name]
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


def _renew_properties() -> None:
    """Give cached properties new locks, which Python has before 3.12: one for each property, whatever the object."""
    if not hasattr(cached_property(len), "lock"):
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "mltriton"]:
        for item in list(vars(sys.modules[name]).values()):
            if isinstance(item, type) and item.__module__ == name:
                for attribute in vars(item).values():
                    if isinstance(attribute, cached_property):
                        attribute.lock = threading.RLock()  # pyright: ignore[reportAttributeAccessIssue]


if hasattr(os, "register_at_fork"):
    _fork = _Fork()
    os.register_at_fork(before=_fork.before, after_in_parent=_fork.in_parent, after_in_child=_fork.in_child)
