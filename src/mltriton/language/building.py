"""Where builtins put their operations: the builder of the kernel that is being compiled.

Takes the builder, the inliner and the target's kind from the front end (`building`); guarantees that a builtin
called outside a kernel raises a `NameNotFoundError` instead of doing something else. Imports nothing of the
compiler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from mltriton.errors import CompilationError, InternalError, TypeMismatchError
from mltriton.language.constants import unwrap
from mltriton.records import NamedTuple

if TYPE_CHECKING:
    from mltriton.ir.builder import Builder
    from mltriton.ir.operation import Block, Value

P = ParamSpec("P")
R = TypeVar("R")

# Inlines a function written in the language at the insertion point: takes it and its arguments, gives its value.
Inliner = Callable[[Any, Sequence[Any]], Any]


class _Kernel(NamedTuple):
    """What a builtin may ask about the kernel that is being compiled."""

    builder: Builder
    inliner: Inliner | None
    target: str
    deferred: dict[Value, dict[str, tuple[int, ...]]]
    entry: Block
    warps: int | None
    debug: bool
    sanitizes: bool
    threads: int
    nesting: list[int]  # how many builtins stand between the kernel's text and what runs now


_kernel: ContextVar[_Kernel | None] = ContextVar("mltriton_kernel", default=None)


@contextmanager
def building(
    builder: Builder,
    inliner: Inliner | None = None,
    target: str = "cpu",
    warps: int | None = None,
    debug: bool = False,
    sanitize_overflow: bool = True,
    threads: int = 1,
) -> Generator[Builder]:
    """Let builtins create operations with `builder`, which stands in the kernel's outermost block, and inline functions
    with `inliner` within the `with` statement.

    `target` is the target's name ("cpu", "xe:pvc", "cuda:90"): only `tl.target_info` reads it. `warps` is the number of
    warps of a program where the kernel is written for warps. With `debug` the kernel checks what `tl.device_assert`
    says, and with `sanitize_overflow` too whether sums, differences and products of integers fit. `threads` is how many
    of the machine's threads run a program.
    """
    sanitizes = debug and sanitize_overflow
    token = _kernel.set(_Kernel(builder, inliner, target, {}, builder.block, warps, debug, sanitizes, threads, [0]))
    try:
        yield builder
    finally:
        _kernel.reset(token)


def current() -> Builder:
    """The builder of the kernel that is being compiled; `CompilationError` outside a kernel."""
    return _require().builder


def current_target() -> str:
    """The kind of machine that the kernel is compiled for; `CompilationError` outside a kernel."""
    return _require().target.partition(":")[0]


def target_being_compiled_for() -> str | None:
    """The name of the target that the kernel is compiled for; None outside a kernel."""
    kernel = _kernel.get()
    return None if kernel is None else kernel.target


def current_warps() -> int | None:
    """The number of warps of a program in a warp-level kernel; None in any other kernel."""
    return _require().warps


def current_threads() -> int:
    """How many of the machine's threads run a program."""
    return _require().threads


def is_debugging() -> bool:
    """Whether the kernel is compiled with `debug`: its assertions are checked when it runs."""
    return _require().debug


def is_sanitizing() -> bool:
    """Whether the builtin that runs is to check that integers do not overflow: one that the kernel's text calls, not
    another builtin, in a kernel that is compiled so.
    """
    kernel = _require()
    return kernel.sanitizes and kernel.nesting[0] <= 1


def entry_block() -> Block:
    """The outermost block of the kernel that is being compiled."""
    return _require().entry


def deferred() -> dict[Value, dict[str, tuple[int, ...]]]:
    """What `tl.multiple_of` and its like promise about parameters and what control flow hands on, by name."""
    return _require().deferred


def _require() -> _Kernel:
    kernel = _kernel.get()
    if kernel is None:
        raise CompilationError(
            "a function of mltriton.language was called outside a kernel",
            hint="these functions build the kernel: call them in a function decorated with @triton.jit and launch that",
        )
    return kernel


def inline(fn: Any, arguments: Sequence[Any]) -> Any:
    """Call `fn` on values at the insertion point.

    A builtin runs, a function written in the language goes to the front end's inliner.
    """
    kernel = _require()
    saved, kernel.nesting[0] = kernel.nesting[0], 0
    try:
        return _inline(kernel, fn, arguments)
    finally:
        kernel.nesting[0] = saved


def _inline(kernel: _Kernel, fn: Any, arguments: Sequence[Any]) -> Any:
    if is_builtin(fn):
        return _called(fn, arguments)
    inliner = kernel.inliner
    if inliner is None:
        raise InternalError(
            f"no inliner is registered, so {getattr(fn, '__name__', fn)!r} cannot be called from a builtin"
        )
    return inliner(fn, arguments)


def _called(fn: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    try:
        return fn(*arguments)
    except TypeError:
        if message := binding_mistake(fn, arguments, {}):
            raise TypeMismatchError(message) from None
        raise


def binding_mistake(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> str | None:
    """What is wrong with the number or the names of arguments; None if nothing is."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        return f"{name_of(function)}: {error}"
    return None


def name_of(function: Any) -> str:
    """What messages call a function."""
    inner: Any = function.func if isinstance(function, partial) else function
    return getattr(inner, "__name__", repr(inner)).lstrip("_")


def builtin(fn: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that a kernel may call.

    It gets Python values in place of `constexpr`, also inside lists and tuples. `_semantic`, which upstream's functions
    hand on to each other, says nothing here.
    """

    @wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        plain = [unwrap(argument) for argument in args]
        named: Mapping[str, Any] = {name: unwrap(value) for name, value in kwargs.items() if name != "_semantic"}
        kernel = _kernel.get()
        if kernel is None or not kernel.sanitizes:
            return cast(Any, fn)(*plain, **named)
        kernel.nesting[0] += 1
        try:
            return cast(Any, fn)(*plain, **named)
        finally:
            kernel.nesting[0] -= 1

    call.__dict__["is_builtin"] = True
    return call


def made_builtin(fn: Callable[P, R], name: str, meaning: str | None) -> Callable[P, R]:
    """`builtin` of a function that another one has made, under a name and with a docstring of its own."""
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = meaning
    return builtin(fn)


def is_builtin(fn: object) -> bool:
    """Whether `fn` runs on values while the kernel is compiled (the front end calls it) instead of being compiled
    itself; other packages mark theirs by `__triton_builtin__`.
    """
    return getattr(fn, "is_builtin", False) is True or getattr(fn, "__triton_builtin__", False) is True
