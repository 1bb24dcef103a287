"""Kernels as Python objects: `@jit`, and what happens at `kernel[grid](...)`.

Level: runtime. A launch arranges its arguments (`parameters.py`), finds the variants made for its constants and hands
the arguments to their launchers, machine code that checks whether they fit; only when none fits are the arguments
specialised and a kernel is compiled or loaded from the cache. Guarantees: a changed global constant or called function
is noticed; every mistake in a launch is a named error.
What few launches need is imported by the functions that use it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from operator import index
from typing import TYPE_CHECKING, Any, cast, overload

from mltriton.compiler import CompiledKernel, Job, compile_job
from mltriton.errors import ArgumentError, calling_location
from mltriton.frontend.dependencies import Dependencies, Watched, dependencies
from mltriton.frontend.function import LanguageFunction
from mltriton.frontend.function import constexpr_function as constexpr_function
from mltriton.runtime import config
from mltriton.runtime.forking import fork_lock
from mltriton.runtime.grid import EmptyGridError, Grid, check_integers, normalize
from mltriton.runtime.interface import Described
from mltriton.runtime.interface import KernelInterface as KernelInterface
from mltriton.runtime.jobs import Key, Plan, job_for, key_of
from mltriton.runtime.launching import MAX_GRIDS, Launcher, computing_launcher_of, launcher_over, launching
from mltriton.runtime.native.params import ParamSpec
from mltriton.runtime.parameters import CallShape, Parameter, check_constants, parameters_of
from mltriton.runtime.parts import Part, has_parts, is_wrapper, parts_of, taking_parts
from mltriton.runtime.slots import slots_of
from mltriton.runtime.specialization import (
    Placeholder,
    array_like_dtype,
    device_of,
    guard,
    one_nan,
    plain,
)

if TYPE_CHECKING:
    from mltriton.runtime.asynchronous import AsyncCompileMode
    from mltriton.runtime.hooks import HookChain

_MAX_LAUNCHERS = 15  # Launchers tried for arguments of one shape and the same constants, besides the newest.

HOOKS: list[None] = []  # An item for each hook that launches must call; `runtime/hooks.py` fills it.
COMPILE_HOOKS: dict[str, Any] = {}  # Functions called "before" and "after" compiling for new arguments.


class JITFunction(Described, LanguageFunction, KernelInterface[Any]):
    """A kernel: `kernel[grid](*arguments, **options)` compiles it for these arguments if need be, and launches it."""

    default_target: str | None = None  # where a launch runs that names no target; None: where its arrays are

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        do_not_specialize: Sequence[int | str] = (),
        do_not_specialize_on_alignment: Sequence[int | str] = (),
        noinline: bool = False,
        debug: bool = False,
        launch_metadata: Callable[..., Any] | None = None,
        repr: Callable[..., str] | None = None,
        warp_level: bool = False,
    ) -> None:
        super().__init__(fn)
        self.warp_level = warp_level
        self.noinline = noinline
        self.debug = debug
        self.launch_metadata = launch_metadata
        self._do_not_specialize = (tuple(do_not_specialize), tuple(do_not_specialize_on_alignment))
        self.grids: dict[Any, Launcher] = {}
        self.grids_once: set[Any] = set()  # that functions gave, once each
        self.shapes: dict[tuple[Any, ...], CallShape] = {}
        self.generation: list[Any] = [object()]  # another object after each time that `shapes` was emptied
        self._compiled: dict[Key, CompiledKernel] = {}  # by everything that a launch asked for
        self._programs: dict[Key, CompiledKernel] = {}  # by what of it makes a difference
        self._lock = fork_lock()
        self._describe(fn, self._lock, repr)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters and how their arguments are specialised."""
        return parameters_of(self, *self._do_not_specialize)

    def check(self) -> None:
        """Raise `SignatureError` where constants are not to be compiled in: programs may import such a kernel."""
        check_constants(self.__name__, self.parameters)

    @cached_property
    def arg_names(self) -> list[str]:
        """The names of the parameters."""
        return [parameter.name for parameter in self.parameters]

    @property
    def constexprs(self) -> list[int]:
        """The positions of the `tl.constexpr` parameters."""
        return [parameter.index for parameter in self.parameters if parameter.is_constexpr]

    @cached_property
    def pre_run_hooks(self) -> HookChain:
        """What runs before each launch, with the launch's arguments."""
        from mltriton.runtime.hooks import HookChain

        return HookChain()

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook` with the arguments of every launch before it."""
        self.pre_run_hooks.add(hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: a kernel runs over a grid."""
        raise ArgumentError(
            f"{self.__name__} is a kernel and cannot be called like a function",
            hint=f"Launch it over a grid: {self.__name__}[(programs,)](...).",
            upstream="Cannot call @triton.jit'd outside of the scope of a kernel",
            location=calling_location(),
        )

    def __getitem__(self, grid: Any) -> Launcher:
        """The launcher for a grid: an int, a tuple of one to three, or a function from the named arguments to one."""
        try:
            launcher = self.grids.get(grid)
            if launcher is not None:
                check_integers(*grid)
                return launcher
        except TypeError:  # A list, or no integers.
            pass
        if isinstance(grid, int):
            return self[grid,]
        is_kept = isinstance(grid, tuple)
        with launching:
            launcher = self.launcher_for(grid, is_kept=is_kept)
        if is_kept:
            if len(self.grids) >= MAX_GRIDS:
                self.grids.clear()
            numbers = map(index, cast(Any, grid))  # What is in the tuple may hold another number later.
            self.grids[tuple(numbers)] = launcher
        return launcher

    def launcher_for(self, grid: Any, *, is_kept: bool = False) -> Launcher:
        """The launcher for a grid, made anew."""
        if callable(grid):
            return computing_launcher_of(self, grid, HOOKS)
        size = normalize(grid)
        return launcher_over(self, size, HOOKS, is_kept=is_kept) if all(size) else self._compile_only

    def _compile_only(self, *args: Any, **kwargs: Any) -> CompiledKernel:
        """The launcher of a grid without programs."""
        with launching:
            shape = self.shape(args, kwargs)
            arguments = shape.pick((*args, *kwargs.values(), *shape.defaults))
            return self.compiled_for(arguments, {name: kwargs[name] for name in shape.option_names})

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> CompiledKernel | None:
        """Launch over `grid`, or with `warmup` only compile."""
        return self.warmup(*args, grid=grid, **kwargs) if warmup else self[grid](*args, **kwargs)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile for these arguments without launching; a dtype stands for an aligned array of it.

        Gives the compiled kernel, within `AsyncCompileMode` a `FutureKernel`.
        """
        with launching:
            values = [
                _array_if_dtype(value, parameter) for value, parameter in zip(args, self.parameters, strict=False)
            ]
            by_name = {parameter.name: parameter for parameter in self.parameters}
            named = {name: _array_if_dtype(value, by_name.get(name)) for name, value in kwargs.items()}
            shape = self.shape((*values, *args[len(values) :]), named)
            arguments = shape.pick((*values, *named.values(), *shape.defaults))
            options = {name: named[name] for name in shape.option_names}
            if "mltriton.runtime.asynchronous" in sys.modules and (mode := _async_mode()) is not None:
                job = job_for(self, arguments, options, to_launch=False)
                key = (self, *key_of(job, job.options))
                return mode.submit(partial(self.compiled_for, arguments, options), key)
            return self.compiled_for(arguments, options)

    def shape(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CallShape:
        """How a call with such arguments gives the parameters their values."""
        key = (len(args), *kwargs)
        found = self.shapes.get(key)
        if found is None:
            with launching:
                found = self.shapes[key] = CallShape(self, self.parameters, len(args), list(kwargs))
        return found

    def computed_grid(self, compute: Any, arguments: dict[str, Any]) -> Grid:
        """The grid that a function gives for the arguments by name."""
        size = compute(arguments)
        with launching:
            grid = normalize(size)
        if not all(grid):
            raise EmptyGridError
        return grid

    def launch(
        self, grid: Grid, shape: CallShape, everything: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> CompiledKernel:
        """Launch where no variant fitted: specialise, compile or load, and remember the variant."""
        with launching:
            arguments = shape.pick(everything)
            options = {name: kwargs[name] for name in shape.option_names}
            kernel = self.compiled_for(arguments, options, to_launch=True)
            parts = parts_of(self.parameters, arguments, constants=True)
            launch = kernel.loaded.launcher([self._guard(kernel, part) for part in parts])
            if any(map(has_parts, arguments)):
                launch = taking_parts(launch, arguments)
            if launch(*grid, *arguments) is NotImplemented:
                flat = [part.value for part in parts_of(self.parameters, arguments)]
                kernel.loaded.run(grid, slots_of(kernel.job.entries, flat, kernel.metadata.written))
            else:
                key = tuple(map(one_nan, shape.key(everything)))
                known = shape.variants.get(key, ())
                shape.variants[key] = ((launch, kernel), *known[:_MAX_LAUNCHERS])
            return kernel

    def compiled_for(
        self, arguments: Sequence[Any], options: Mapping[str, Any], *, to_launch: bool = False
    ) -> CompiledKernel:
        """The kernel compiled for arguments, one for each parameter; `to_launch` if they must have memory."""
        self.drop_if_stale()
        job = job_for(self, arguments, options, to_launch=to_launch)
        with self._lock:
            found = self._compiled.get(key := key_of(job, job.options))
            if found is None:
                same = None if COMPILE_HOOKS else self._programs.get(key_of(job, job.used_options))
                made = self._compile(job, is_warmup=not to_launch) if same is None else same.asked_for_by(job)
                found = self._compiled[key] = made
            return found

    def _compile(self, job: Job, *, is_warmup: bool) -> CompiledKernel:
        if COMPILE_HOOKS:
            from mltriton.runtime.hooks import compile_with_hooks

            compiled = compile_with_hooks(self, job, is_warmup=is_warmup)
        else:
            compiled = compile_job(job, self.dependencies)
        self.remember(job, compiled)
        return compiled

    def remember(self, job: Job, compiled: CompiledKernel) -> None:
        """Take a kernel that was compiled for a job."""
        with self._lock:
            self._programs[key_of(job, job.used_options)] = compiled
            self._compiled.setdefault(key_of(job, job.options), compiled)
            if len(self.watched) < len(self.dependencies.watched):  # Functions among the constants name more.
                self.watched[:] = self.dependencies.watched

    def preload(self, specialization_data: str) -> CompiledKernel:
        """Compile, or load, for what a compile hook was told (`runtime/preloading.py`), before any launch."""
        from mltriton.runtime.preloading import preload  # Few programs need it.

        with launching:
            return preload(self, specialization_data)

    def knows(self, job: Job) -> bool:
        """Whether the program of a job is there."""
        return key_of(job, job.used_options) in self._programs

    def plan(self, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan:
        """What a launch over `grid` would compile; nothing is compiled."""
        with launching:
            shape = self.shape(args, kwargs)
            arguments = shape.pick((*args, *kwargs.values(), *shape.defaults))
            named = {**kwargs, **dict(zip(self.arg_names, arguments, strict=True))}
            self.drop_if_stale()
            options = {name: kwargs[name] for name in shape.option_names}
            job = job_for(self, arguments, options, to_launch=False)
            return Plan(job, normalize(grid(named) if callable(grid) else grid))

    def _guard(self, kernel: CompiledKernel, part: Part) -> ParamSpec:
        parameter = part.parameter
        if parameter.is_constexpr:
            return ParamSpec.constant(plain(part.value))
        return guard(
            kernel.job.entries[part.name],
            array=part.value.base if is_wrapper(part.value) else None,
            writes=part.name in kernel.metadata.written,
            is_annotated=parameter.annotation is not None,
            by_value=parameter.by_value,
            by_alignment=parameter.by_alignment,
            device=device_of(part.value),
        )

    @cached_property
    def watched(self) -> list[Watched]:
        """What to look up at every launch, since it may have been given another value; always the same list."""
        return list(self.dependencies.watched)

    @cached_property
    def dependencies(self) -> Dependencies:
        """What the kernel's meaning depends on besides its text."""
        return dependencies(self)

    @property
    def cache_key(self) -> str:
        """What identifies the kernel's meaning: its text, and the constants and functions it uses."""
        from mltriton.runtime.cache import digest

        self.drop_if_stale()
        return digest(self.dependencies.parts)

    def drop_if_stale(self) -> None:
        """Forget everything compiled when a constant or a function that the kernel uses was given another value."""
        if self.dependencies.have_changed():
            with self._lock:
                if self.dependencies.have_changed():  # No other thread was here meanwhile.
                    self.__dict__["dependencies"] = dependencies(self)
                    self._compiled.clear()
                    self._programs.clear()
                    self._forget_shapes()
                    self.watched[:] = self.dependencies.watched

    def _forget_shapes(self) -> None:
        self.shapes.clear()
        self.generation[0] = object()

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__qualname__}>"


def _async_mode() -> AsyncCompileMode | None:
    from mltriton.runtime.asynchronous import active_mode

    return active_mode.get()


def _array_if_dtype(value: Any, parameter: Parameter | None) -> Any:
    """For `warmup`: an aligned array where a dtype stands for one."""
    if parameter is None or parameter.is_constexpr:
        return value
    name = array_like_dtype(value)
    return value if name is None else Placeholder(name)


@overload
def jit(fn: Callable[..., Any]) -> JITFunction: ...
@overload
def jit(
    *,
    version: str | None = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Sequence[int | str] | None = None,
    do_not_specialize_on_alignment: Sequence[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
    warp_level: bool = False,
) -> Callable[[Callable[..., Any]], JITFunction]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    version: str | None = None,
    repr: Callable[..., str] | None = None,
    launch_metadata: Callable[..., Any] | None = None,
    do_not_specialize: Sequence[int | str] | None = None,
    do_not_specialize_on_alignment: Sequence[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
    warp_level: bool = False,
) -> JITFunction | Callable[[Callable[..., Any]], JITFunction]:
    """Make a Python function a kernel, or a function that kernels call.

    `do_not_specialize` names parameters (or gives positions) whose value 1 and divisibility are not compiled in,
    `do_not_specialize_on_alignment` those whose divisibility is not. `launch_metadata(grid, metadata,
    arguments)` gives a dict for launch hooks. `version`, `repr` and `noinline` are taken as upstream does; calls are
    inlined. With `warp_level` every tensor of the
    kernel belongs to one warp (`docs/language-extensions.md`).
    """

    def decorate(fn: Callable[..., Any]) -> JITFunction:
        return _kind()(
            fn,
            do_not_specialize=do_not_specialize or (),
            do_not_specialize_on_alignment=do_not_specialize_on_alignment or (),
            noinline=bool(noinline),
            debug=bool(debug),
            launch_metadata=launch_metadata,
            repr=repr,
            warp_level=warp_level,
        )

    return decorate if fn is None else decorate(fn)


def _kind() -> type[JITFunction]:
    """What a function becomes that is decorated now."""
    if not config.INTERPRET.get():
        return JITFunction
    from mltriton.runtime.interpreter import InterpretedFunction

    return InterpretedFunction
