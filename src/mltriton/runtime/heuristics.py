"""Parameters that are computed from the others at every launch: `heuristics`; and what is common to all that launches.

Level: runtime. Guarantees: what `heuristics` and `autotune` make of a kernel of a module is pickled by its name there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pickle import PicklingError
from typing import Any, Protocol

from mltriton.errors import OptionError, calling_location
from mltriton.runtime.interface import KernelInterface
from mltriton.runtime.jit import JITFunction
from mltriton.runtime.jobs import Plan


class Launchable(Protocol):
    """A kernel, or what wraps one: tuned, or with heuristics."""

    arg_names: list[str]

    def __getitem__(self, grid: Any, /) -> Callable[..., Any]:
        """The launcher for a grid."""
        ...

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile without launching."""
        ...


def checked(fn: Launchable, decorator: str) -> Launchable:
    """A kernel that a decorator is given; `OptionError` for a function that is none yet."""
    if not hasattr(fn, "arg_names"):
        raise OptionError(
            f"{decorator} takes a kernel",
            found=f"{fn!r} of type {type(fn).__name__}",
            hint=f"Write @triton.jit below @triton.{decorator}, next to the function.",
            location=calling_location(),
        )
    return fn


class Heuristics(KernelInterface[Any]):
    """A kernel some of whose parameters are computed from the others at every launch."""

    def __init__(self, fn: Launchable, values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> None:
        self.fn = fn
        self.values = dict(values)
        self.arg_names = fn.arg_names

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, and copied, as Python's functions are: by the name."""
        return by_name(self)

    def _with_values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        named = dict(zip(self.arg_names, args, strict=False)) | kwargs
        for name, compute in self.values.items():
            named[name] = kwargs[name] = compute(named)
        return kwargs

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """The launcher for a grid."""
        launch = self.fn[grid]
        return lambda *args, **kwargs: launch(*args, **self._with_values(args, kwargs))

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch over `grid`, or with `warmup` only compile."""
        return self.warmup(*args, grid=grid, **kwargs) if warmup else self[grid](*args, **kwargs)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile for these arguments without launching."""
        return self.fn.warmup(*args, grid=grid, **self._with_values(args, kwargs))

    def plan(self, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan | None:
        """What a launch over `grid` would compile."""
        return plan_of(self.fn, grid, args, self._with_values(args, dict(kwargs)))


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Launchable], Heuristics]:
    """Compute parameters from the named arguments of each launch: `@heuristics({"EVEN": lambda args: args["n"] % 2 ==
    0})`.
    """
    return lambda fn: Heuristics(checked(fn, "heuristics"), values)


def plan_of(fn: Launchable, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan | None:
    """What a launch would compile; None where what wraps the kernel does not tell."""
    return fn.plan(grid, args, kwargs) if isinstance(fn, JITFunction | Heuristics) else None


def kernel_of(fn: Any) -> JITFunction:
    """The kernel inside what `autotune` and `heuristics` made of it."""
    while not isinstance(fn, JITFunction):
        fn = fn.fn
    return fn


def by_name(launchable: Any) -> tuple[Any, ...]:
    """How to find again what `autotune` or `heuristics` made of a kernel. Raises `PicklingError` where no name says."""
    kernel = kernel_of(launchable)
    where = (kernel.__module__, kernel.__qualname__)
    if named(*where) is not launchable:
        raise PicklingError(f"{'.'.join(where)} is another object than what is pickled")
    return named, where


def named(module: str, name: str) -> Any:
    """What has a qualified name in a module; None where nothing has."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
