"""The function behind `kernel[grid]`: the path of every launch whose time users see.

Level: runtime. Guarantees: a launch for which machine code is there makes no call that it does not need; the next ones
like it over the same grid do without the interpreter (`runtime/native/sources/calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, TracebackType
from typing import TYPE_CHECKING, Any

from mltriton.compiler import CompiledKernel
from mltriton.errors import InternalError, TritonError, calling_location
from mltriton.frontend.function import constexpr_function as constexpr_function
from mltriton.runtime.config import FULL_TRACEBACK
from mltriton.runtime.grid import EmptyGridError, Grid, check_integers
from mltriton.runtime.interface import KernelInterface as KernelInterface
from mltriton.runtime.parameters import CallShape

if TYPE_CHECKING:
    from mltriton.runtime.jit import JITFunction

Launcher = Callable[..., CompiledKernel]
MAX_GRIDS = 1024
_MAX_KNOWN = 4  # calls over one grid that machine code tries


def launcher_of(
    kernel: JITFunction,
    fixed: Grid | None,
    compute: Callable[[dict[str, Any]], Any] | None,
    hooks: Sequence[Any],
    known: list[tuple[Any, ...]] | None = None,
) -> Launcher:
    """The function behind `kernel[grid]`: `fixed` is the grid, or `compute` gives one for the arguments by name.

    `hooks` says at each launch whether there are any. Calls that machine code can take are added to `known`. This is
    the path whose time users see, so it is one function that makes no call it does not need.
    """
    shapes, watched, names = kernel.shapes, kernel.watched, kernel.arg_names
    taken: set[Any] = set()  # launchers whose calls are known, and those that machine code cannot call

    def launch(*args: Any, **kwargs: Any) -> CompiledKernel:
        if hooks:
            from mltriton.runtime.hooks import launch_with_hooks  # Few launches need it.

            return launch_with_hooks(kernel, launcher_of(kernel, fixed, compute, ()), (fixed, compute), args, kwargs)
        for find, name, value in watched:
            if find(name) is not value:
                kernel.drop_if_stale()
                break
        shape = shapes.get((len(args), *kwargs)) or kernel.shape(args, kwargs)
        everything = (*args, *kwargs.values(), *shape.defaults)
        arguments = shape.pick(everything)
        try:
            x, y, z = fixed or kernel.computed_grid(compute, kwargs | dict(zip(names, arguments, strict=True)))
        except EmptyGridError:
            return kernel._compile_only(*args, **kwargs)  # pyright: ignore[reportPrivateUsage]
        try:
            variants = shape.variants.get(shape.key(everything), ())
        except TypeError:  # A constant that cannot be hashed: the slow path says what is wrong.
            variants = ()
        for run, compiled in variants:
            if run(x, y, z, *arguments) is None:
                if known is not None and run not in taken:
                    taken.add(run)
                    if isinstance(run, BuiltinFunctionType) and len(known) < _MAX_KNOWN:
                        known.append(_known(kernel, (x, y, z), shape, everything, run, compiled))
                return compiled
        return kernel.launch((x, y, z), shape, everything, kwargs)

    return launch


def launcher_over(kernel: JITFunction, grid: Grid, hooks: Sequence[Any], *, is_kept: bool) -> Launcher:
    """The function behind `kernel[grid]`. One that is kept is machine code, which takes calls like earlier ones and
    leaves others to Python.
    """
    if is_kept:
        # A program that only compiles needs none of it.
        from mltriton.runtime.native.launcher import is_native, knowing

        if is_native():
            known: list[tuple[Any, ...]] = []
            return knowing(launcher_of(kernel, grid, None, hooks, known), hooks, kernel.watched, known)
    return launcher_of(kernel, grid, None, hooks)


def computing_launcher_of(
    kernel: JITFunction, compute: Callable[[dict[str, Any]], Any], hooks: Sequence[Any]
) -> Launcher:
    """The function behind `kernel[compute]`: over a grid that was there before it launches like `kernel[grid]`."""
    shapes, names = kernel.shapes, kernel.arg_names

    def launch(*args: Any, **kwargs: Any) -> CompiledKernel:
        with launching:
            shape = shapes.get((len(args), *kwargs))
            if hooks or shape is None:
                return launcher_of(kernel, None, compute, hooks)(*args, **kwargs)
            arguments = shape.pick((*args, *kwargs.values(), *shape.defaults))
            return _over(kernel, compute(kwargs | dict(zip(names, arguments, strict=True))))(*args, **kwargs)

    return launch


def _over(kernel: JITFunction, size: Any) -> Launcher:
    """The function behind `kernel[size]`, which is kept from the second time on: sizes may never come again."""
    try:
        launcher = kernel.grids.get(size)
        if launcher is not None:
            check_integers(*size)
            return launcher
    except TypeError:  # A list, or no integers.
        return kernel[size]
    if size in kernel.grids_once or not isinstance(size, tuple):
        return kernel[size]
    if len(kernel.grids_once) >= MAX_GRIDS:
        kernel.grids_once.clear()
    kernel.grids_once.add(size)
    return kernel.launcher_for(size)


def _known(
    kernel: JITFunction, grid: Grid, shape: CallShape, everything: tuple[Any, ...], run: Any, compiled: CompiledKernel
) -> tuple[Any, ...]:
    """A call that a launcher has taken, as machine code compares others with it."""
    from mltriton.runtime.native.launcher import KnownCall  # It is there: it made the launcher.

    given = shape.count + len(shape.keywords)
    order = [index if index < given else given - index - 1 for index in shape.order]
    options = tuple(everything[index] for index in shape.options)
    call = KnownCall(
        shape.count, shape.keywords, grid, order, shape.defaults, shape.options, options, kernel.generation
    )
    return call.encoded(run, compiled)


class Launching:
    """A `with` statement that gives errors without a place that of the launch.

    The calls inside the compiler that led to a mistake of the program's leave the traceback, which is then the
    program's own (`MLTRITON_FULL_TRACEBACK` keeps them). Those to an error of the compiler's stay.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, TritonError):
            return
        if error.location is None:
            error.at(calling_location())
        if not isinstance(error, InternalError) and not FULL_TRACEBACK.get():
            from mltriton.tracebacks import users_frames  # Only a failure needs it.

            error.__traceback__ = users_frames(trace)


launching = Launching()
