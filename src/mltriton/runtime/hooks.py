"""What runs around launches: launch hooks, which profilers install (`mltriton.knobs`), and a kernel's pre-run hooks.

Level: runtime. Loaded with the first hook; a launch without any asks one list (`runtime/jit.py`) and takes the short
way. Guarantees: `enter` hooks run after the kernel is compiled and before it is launched, `exit` hooks after it has
returned, in the reverse order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mltriton.compiler import CompiledKernel
from mltriton.errors import ArgumentError, calling_place
from mltriton.runtime import jit
from mltriton.runtime.grid import Grid

Hook = Callable[..., Any]


class LaunchMetadata:
    """What a launch hook gets: `get()` gives a dict, the entries that the kernel's `launch_metadata` adds included."""

    def __init__(self, kernel: jit.JITFunction, compiled: CompiledKernel, grid: Grid, named: Mapping[str, Any]) -> None:
        self._kernel = kernel
        self._compiled = compiled
        self._grid = grid
        self._named = dict(named)

    def get(self) -> dict[str, Any]:
        """The entries: the kernel's `name`, `function` (None) and `stream` (0), and those of `launch_metadata`."""
        known: dict[str, Any] = {"name": self._compiled.name, "function": None, "stream": 0}
        describe = self._kernel.launch_metadata
        return known if describe is None else known | describe(self._grid, self._compiled.metadata, self._named)


class HookChain:
    """Hooks that run one after the other; each one is there once."""

    def __init__(self, *, is_reversed: bool = False) -> None:
        self.calls: list[Hook] = []
        self._is_reversed = is_reversed

    def add(self, hook: Hook) -> None:
        """Run `hook` too from now on."""
        if not callable(hook):
            raise ArgumentError("a hook is a function", found=repr(hook), place=calling_place())
        if hook not in self.calls:
            self.calls.append(hook)
            jit.HOOKS.append(hook)

    def remove(self, hook: Hook) -> None:
        """Run `hook` no more; nothing where it is not there."""
        if hook in self.calls:
            self.calls.remove(hook)
            jit.HOOKS.remove(hook)

    def set(self, hook: Hook | None) -> None:
        """Run only `hook`, or none."""
        for call in list(self.calls):
            self.remove(call)
        if hook is not None:
            self.add(hook)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the hooks."""
        for call in reversed(self.calls) if self._is_reversed else self.calls:
            call(*args, **kwargs)


enter, leave = HookChain(), HookChain(is_reversed=True)


def launch_with_hooks(
    kernel: jit.JITFunction,
    plain: jit.Launcher,
    grid: tuple[Grid | None, Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> CompiledKernel:
    """A launch with what there is of hooks around it.

    `plain` is the launch without them, `grid` its grid or the function that gives one.
    """
    kernel.pre_run_hooks(*args, **kwargs)
    if not enter.calls and not leave.calls:
        return plain(*args, **kwargs)
    shape = kernel.shape(args, kwargs)
    arguments = shape.pick((*args, *kwargs.values(), *shape.defaults))
    compiled = kernel.compiled_for(arguments, {name: kwargs[name] for name in shape.option_names})
    named = dict(zip(kernel.arg_names, arguments, strict=True))
    fixed, compute = grid
    size = fixed or kernel.computed_grid(compute, kwargs | named)
    metadata = LaunchMetadata(kernel, compiled, size, named)
    enter(metadata)
    plain(*args, **kwargs)
    leave(metadata)
    return compiled
