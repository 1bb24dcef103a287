"""`triton.profiler`: how long launches take below named scopes, by the names of upstream's Proton.

Level: user. `start(name)` begins a session, `with scope("layer"):` a branch of its tree, every launch while a session
is active adds a leaf; `finalize()` writes NAME.hatchet, which `viewer` reads. Times are the host's around launches,
which is the whole of a launch on the CPU; on a GPU `start` is a `TargetError`. With `hook="triton"` leaves have what
the kernel's `launch_metadata` says (`flops`, `flops16`, `bytes`, and another `name`).
"""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mltriton.errors import OptionError, TargetError
from mltriton.runtime import hooks
from mltriton.runtime.driver import driver

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "activate",
    "cpu_timed_scope",
    "deactivate",
    "enter_scope",
    "exit_scope",
    "finalize",
    "profile",
    "scope",
    "start",
]

DEFAULT_PROFILE_NAME = "proton"
TIME, CPU_TIME, COUNT = "time (ns)", "cpu_time (ns)", "count"


class Node:
    """A scope or a kernel of a tree: its own numbers, and what is below it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.metrics: dict[str, float] = {}
        self.children: dict[str, Node] = {}

    def at(self, path: tuple[str, ...]) -> Node:
        """The node at the end of a path, which is made where it is not there."""
        node = self
        for name in path:
            node = node.children.setdefault(name, Node(name))
        return node

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Add numbers to those that are there."""
        for name, value in metrics.items():
            self.metrics[name] = self.metrics.get(name, 0) + value

    def as_data(self) -> dict[str, Any]:
        """As a file has it."""
        children = [child.as_data() for child in self.children.values()]
        return {"frame": {"name": self.name, "type": "function"}, "metrics": self.metrics, "children": children}


class Session:
    """One profile: its tree, whether launches are added now, and whether their `launch_metadata` is asked."""

    def __init__(self, name: str, *, asks_kernels: bool) -> None:
        self.name = name
        self.root = Node("ROOT")
        self.is_active = True
        self.asks_kernels = asks_kernels


_sessions: dict[int, Session] = {}
_lock = threading.Lock()


class _OfThread(threading.local):
    """The scopes that a thread is in, and when its launches began."""

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.begun: list[int] = []


_here = _OfThread()


def start(
    name: str | None = None,
    *,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: Any = None,
    hook: Any = None,
) -> int:
    """Begin a session and give its number. Raises `TargetError` on a GPU, `OptionError` for what there is not."""
    if driver.active.get_current_target().backend != "cpu":
        raise TargetError("this profiler times launches on the CPU", hint="On a GPU use its vendor's (ncu, nsys).")
    for what, given, known in (("context", context, ("shadow", None)), ("data", data, ("tree", None))):
        if given not in known:
            raise OptionError(f"the profiler has no {what} {given!r}", expected=f"{what}={known[0]!r}")
    if mode is not None or hook not in (None, "triton"):
        raise OptionError("the profiler has no modes, and no hook but 'triton'", found=f"mode={mode!r}, hook={hook!r}")
    with _lock:
        if not _sessions:
            hooks.enter.add(_launched)
            hooks.leave.add(_returned)
        number = max(_sessions, default=-1) + 1
        _sessions[number] = Session(name or DEFAULT_PROFILE_NAME, asks_kernels=hook == "triton")
    return number


def activate(session: int | None = None) -> None:
    """Add launches to a session again; None: to all."""
    for each in _chosen(session):
        each.is_active = True


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Add no launches to a session until it is activated; None: to none."""
    for each in _chosen(session):
        each.is_active = False


def finalize(session: int | None = None, output_format: str = "hatchet") -> None:
    """End a session, or all, and write NAME.hatchet. Raises `OptionError` for another format."""
    if output_format not in ("", "hatchet"):
        raise OptionError(f"the profiler does not write {output_format!r}", expected="hatchet")
    ended = _chosen(session)
    with _lock:
        for number in [number for number, each in _sessions.items() if each in ended]:
            del _sessions[number]
        if not _sessions:
            hooks.enter.remove(_launched)
            hooks.leave.remove(_returned)
    for each in ended:
        text = json.dumps([each.root.as_data(), {"CPU": {"0": {"arch": "cpu"}}}])
        Path(f"{each.name}.hatchet").write_text(text, encoding="utf-8")


def profile(fn: Callable[..., Any] | None = None, *, name: str | None = None, **how: Any) -> Any:
    """A decorator: each call of the function is a session."""
    if fn is None:
        return functools.partial(profile, name=name, **how)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        session = start(name, **how)
        try:
            return fn(*args, **kwargs)
        finally:
            finalize(session)

    return call


def enter_scope(name: str, *, metrics: Mapping[str, Any] | None = None) -> None:
    """Go into a scope of this thread, and add numbers to it."""
    _here.path = (*_here.path, name)
    _add(_here.path, metrics or {})


def exit_scope(name: str | None = None, *, metrics: Mapping[str, Any] | None = None) -> None:
    """Leave the innermost scope of this thread, after adding numbers to it."""
    _add(_here.path, metrics or {})
    _here.path = _here.path[:-1]


class scope:  # noqa: N801 - upstream's name
    """A scope, as a `with` statement or as a decorator."""

    def __init__(self, name: str, metrics: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.metrics = metrics

    def __enter__(self) -> scope:
        enter_scope(self.name, metrics=self.metrics)
        return self

    def __exit__(self, *_: object) -> None:
        exit_scope()

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a scope around each call."""

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.metrics):
                return fn(*args, **kwargs)

        return call


class cpu_timed_scope(scope):  # noqa: N801 - upstream's name
    """A scope that says how long it took on the host."""

    def __enter__(self) -> scope:
        self._began = time.perf_counter_ns()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        exit_scope(metrics={CPU_TIME: time.perf_counter_ns() - self._began})


def _chosen(session: int | None) -> list[Session]:
    return list(_sessions.values()) if session is None else [_sessions[session]] if session in _sessions else []


def _add(path: tuple[str, ...], metrics: Mapping[str, Any]) -> None:
    with _lock:
        for session in _sessions.values():
            if session.is_active and metrics:
                session.root.at(path).add(metrics)


def _launched(_metadata: hooks.LaunchMetadata) -> None:
    _here.begun.append(time.perf_counter_ns())


def _returned(metadata: hooks.LaunchMetadata) -> None:
    taken = time.perf_counter_ns() - _here.begun.pop()
    own: dict[str, Any] | None = None
    with _lock:
        for session in _sessions.values():
            if not session.is_active:
                continue
            own = metadata.get() if own is None else own
            said = {name: value for name, value in own.items() if name.startswith(("flops", "bytes"))}
            name = str(own["name"]) if session.asks_kernels else metadata.kernel_name
            node = session.root.at((*_here.path, name))
            node.add({TIME: taken, COUNT: 1} | (said if session.asks_kernels else {}))
