"""What runs around launches: launch hooks, which profilers install (`mltriton.knobs`), and a kernel's pre-run hooks.

Level: runtime. Loaded with the first hook; a launch without any asks one list (`runtime/jit.py`) and takes the short
way. Guarantees: `enter` hooks run after the kernel is compiled and before it is launched, `exit` hooks after it has
returned, in the reverse order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mltriton.compiler import CompiledKernel, Job, compile_job
from mltriton.compiler.kernel import LOAD_HOOKS
from mltriton.errors import ArgumentError, calling_location
from mltriton.records import NamedTuple
from mltriton.runtime import jit
from mltriton.runtime.grid import Grid, normalize
from mltriton.runtime.launching import Launcher
from mltriton.runtime.preloading import specialization_data

Hook = Callable[..., Any]


class LaunchMetadata:
    """What a launch hook gets: `get()` gives a dict, the entries that the kernel's `launch_metadata` adds included."""

    def __init__(self, kernel: jit.JITFunction, compiled: CompiledKernel, grid: Grid, named: Mapping[str, Any]) -> None:
        self._kernel = kernel
        self._compiled = compiled
        self._grid = grid
        self._named = dict(named)

    @property
    def kernel_name(self) -> str:
        """The kernel's own name."""
        return self._compiled.name

    def get(self) -> dict[str, Any]:
        """The entries: the kernel's `name`, `function` (None) and `stream` (0), and those of `launch_metadata`."""
        known: dict[str, Any] = {"name": self._compiled.name, "function": None, "stream": 0}
        describe = self._kernel.launch_metadata
        return known if describe is None else known | describe(self._grid, self._compiled.metadata, self._named)


class HookChain(list[Hook]):
    """Hooks that run one after the other; each one is there once. A list, so that launches learn in no time of none.

    `jit.HOOKS` has an item for each hook of all chains, never the hook: a kernel that is gone takes its chain along,
    even where a hook names the kernel. Chains that launches do not call are counted elsewhere (`counted`).
    """

    def __init__(self, *, is_reversed: bool = False, counted: list[None] = jit.HOOKS) -> None:
        super().__init__()
        self._is_reversed = is_reversed
        self._all = counted  # its own: at the interpreter's end modules are gone before chains are

    @property
    def calls(self) -> list[Hook]:
        """The hooks, by upstream's name."""
        return self

    def add(self, hook: Hook) -> None:
        """Run `hook` too from now on."""
        if not callable(hook):
            raise ArgumentError("a hook is a function", found=repr(hook), location=calling_location())
        if hook not in self:
            self.append(hook)
            self._all.append(None)

    def remove(self, hook: Hook) -> None:
        """Run `hook` no more; nothing where it is not there."""
        if hook in self:
            super().remove(hook)
            self._all.pop()

    def set(self, hook: Hook | None) -> None:
        """Run only `hook`, or none."""
        for call in list(self):
            self.remove(call)
        if hook is not None:
            self.add(hook)

    def __del__(self) -> None:
        """Let launches no longer ask for what nobody has any more."""
        del self._all[: len(self)]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the hooks."""
        for call in reversed(self) if self._is_reversed else self:
            call(*args, **kwargs)


enter, leave = HookChain(), HookChain(is_reversed=True)
load, loaded = HookChain(counted=[]), HookChain(is_reversed=True, counted=[])
LOAD_HOOKS.update(start=load, end=loaded)


class KernelInfo(NamedTuple):
    """The kernel that a compile hook is told of."""

    module: str
    name: str
    jit_function: jit.JITFunction


def compile_with_hooks(kernel: jit.JITFunction, job: Job, *, is_warmup: bool) -> CompiledKernel:
    """Compile, or load, for a launch or a `warmup`, between `jit_cache_hook` and `jit_post_compile_hook`.

    Those get upstream's keywords.
    """
    key = job.key(kernel.dependencies)
    asked = {name: getattr(job.options, name) for name in ("num_warps", "num_ctas", "num_stages", "debug")}
    asked["enable_fp_fusion"] = dict(job.options.of_targets).get("enable_fp_fusion", True)
    told = {
        "key": key,
        "repr": f"{kernel.__qualname__}[{', '.join(f'{name}={value}' for name, value in asked.items())}]",
        "fn": KernelInfo(kernel.__module__, kernel.__qualname__, kernel),
        "compile": {
            "key": key,
            "signature": job.signature,
            "constants": job.constants,
            **asked,
            "specialization_data": specialization_data(job),
            "is_warmup": is_warmup,
        },
        "is_manual_warmup": False,
        "already_compiled": False,
    }
    if "before" in jit.COMPILE_HOOKS:
        jit.COMPILE_HOOKS["before"](**told)
    compiled = compile_job(job, kernel.dependencies)
    if "after" in jit.COMPILE_HOOKS:
        jit.COMPILE_HOOKS["after"](**told)
    return compiled


def metadata_of(compiled: CompiledKernel, grid: Any, arguments: tuple[Any, ...]) -> LaunchMetadata | None:
    """What hooks get of a launch of a compiled kernel with all its arguments; None where there are no hooks."""
    if not enter and not leave:
        return None
    kernel = compiled.job.fn
    assert isinstance(kernel, jit.JITFunction)
    named = dict(zip(kernel.arg_names, arguments, strict=False))
    return LaunchMetadata(kernel, compiled, normalize(grid), named)


def launch_with_hooks(
    kernel: jit.JITFunction,
    plain: Launcher,
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
