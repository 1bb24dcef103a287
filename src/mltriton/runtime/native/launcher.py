"""Kernels of object files, and the functions that launch them.

Level: runtime. Takes an object file with the kernel ABI of memory targets and a `ParamSpec` for each parameter; gives a
callable `launcher(grid_x, grid_y, grid_z, *arguments)`. Guarantees: it runs the kernel over the grid and returns None,
or, when an argument is not what the kernel was specialised for, does nothing and returns `NotImplemented`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from mltriton.records import NamedTuple

from .. import config
from . import layout, library
from .objects import load_object
from .params import ParamSpec, encode_table
from .pool import Pool, check_scratch, pool

if TYPE_CHECKING:
    from ..slots import Slot
    from .portable import PortablePool

_METH_FASTCALL, _METH_KEYWORDS = 0x80, 0x2
_CALL = struct.Struct("<QQqqq")  # `Call` of sources/calls.py


class Launcher(Protocol):
    """What `NativeKernel.launcher` returns. Grid dimensions are ints from 0 to 2^31 - 1; with a 0 nothing runs."""

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, /, *arguments: Any) -> Any:
        """Launch and return None, or return `NotImplemented`. Raises `ScratchMemoryError`."""
        ...


class NativeKernel:
    """A kernel in this process: `void symbol(ptr args, i64 begin, i64 end, ptr scratch)`.

    Its code stays loaded as long as this object or one of its launchers lives. Raises `ObjectLoadError` for an object
    file that cannot be linked and `ScratchLimitError` for more scratch memory per thread than is allowed.
    """

    def __init__(
        self, image: bytes, scratch_bytes: int = 0, symbol: str = "kernel", variables: Sequence[str] = ()
    ) -> None:
        self.scratch_bytes = check_scratch(scratch_bytes)
        self._loaded = load_object(image, [symbol, *variables])
        self.variables = {name: self._loaded.addresses[name] for name in variables}
        self.address = self._loaded.addresses[symbol]

    def launcher(self, specs: Sequence[ParamSpec], *, serial_below: int = 2) -> Launcher:
        """Return the function that launches this kernel for arguments that pass `specs`, in order.

        Grids of fewer than `serial_below` programs run on the calling thread alone.
        """
        if not is_native():
            from .portable import PortableLauncher

            return PortableLauncher(self.address, self.scratch_bytes, specs, serial_below, owner=self._loaded)
        table = encode_table(self.address, self.scratch_bytes, serial_below, specs, pool().torch_key)
        return new_launcher("launch", (table, self._loaded, *specs))

    def run(self, grid: tuple[int, int, int], slots: Sequence[Slot]) -> None:
        """Launch with the parameters' slots already filled: for arguments that no spec covers.

        Launchers take arrays of the same types from then on. Raises `ScratchMemoryError`.
        """
        programs = grid[0] * grid[1] * grid[2]
        if programs == 0:
            return
        if is_native():
            pool().take_types(slot.array for slot in slots)
        current_pool().run(self.address, (*(slot.bits for slot in slots), *grid), programs, self.scratch_bytes)


@cache
def _native_works() -> bool:
    return library.machine() is not None and layout.is_as_expected()


def is_native() -> bool:
    """Return whether launches go through machine code (`MLTRITON_LAUNCHER`), or through Python threads.

    Raises `TargetError` when native is asked for where it does not work.
    """
    choice = config.LAUNCHER.get()
    if choice == "native" and not _native_works():
        library.refuse()
    return choice != "portable" and _native_works()


def current_pool() -> Pool | PortablePool:
    """Return the pool launches use: the native one, or that of Python threads."""
    if is_native():
        return pool()
    from . import portable

    return portable.pool()


def set_num_threads(count: int | None) -> None:
    """Let launches use `count` threads; None: `torch.get_num_threads()` once torch is loaded, before that all CPUs."""
    current_pool().set_num_threads(count)


def num_threads() -> int:
    """Return how many threads a launch may use now."""
    return current_pool().num_threads()


def release_scratch() -> int:
    """Free the scratch memory of all threads that are not running a kernel; return how many bytes that were."""
    return current_pool().release_scratch()


def described(launch: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a grid, six objects that describe the launch, two of them hooks, and the arguments.

    Without hooks it calls `launch` with the grid and the arguments; with hooks, and where that gives `NotImplemented`,
    `otherwise` with everything.
    """
    return new_launcher("launch_described", (launch, otherwise)) if is_native() else otherwise


class KnownCall(NamedTuple):
    """A launch that went through a launcher, and what calls must be like to go through it, too.

    The call's arguments and then its keywords' values have places from 0 on, values of `defaults` from -1 down.
    """

    positional: int  # so many arguments without names
    keywords: tuple[str, ...]
    grid: tuple[int, int, int]
    order: Sequence[int]  # places of what the launcher takes
    defaults: tuple[Any, ...]
    options: Sequence[int]  # places of what must be the very objects `option_values`
    option_values: tuple[Any, ...]
    valid: list[Any]  # the call is known as long as the first item is what it is now

    def encoded(self, launch: Launcher, gives: Any) -> tuple[Any, ...]:
        """As sources/calls.py reads it; `gives` is the value of such calls, `launch` one that `new_launcher` made."""
        places = (*self.options, *self.order)
        values = (*self.grid, *self.option_values, *self.defaults)
        code = _function_of(launch), id(cast(Any, launch).__self__)
        table = _CALL.pack(*code, self.positional, len(self.order), len(self.options))
        table += struct.pack(f"<{len(places)}q{len(values)}Q", *places, *map(id, values))
        return (table, self.keywords or None, self.valid, self.valid[0], gives, launch, *values)


def knowing(
    launch: Callable[..., Any], hooks: Sequence[Any], watched: Sequence[Any], known: list[tuple[Any, ...]]
) -> Callable[..., Any]:
    """Return a function that hands calls like one of the `known` ones to its launcher and others to `launch`.

    Those, too, as long as there are `hooks`, or one of `watched` (a callable, an argument, what it must give) differs.
    """
    return new_launcher("launch_known", (launch, hooks, watched, known), _METH_KEYWORDS)


class Parts(NamedTuple):
    """How launches with tuples consist of what a launcher takes (`sources/parts.py`).

    Places: those of the arguments, and behind them of the items of each tuple in turn.
    """

    arguments: int
    tuples: Sequence[tuple[int, type, int]]  # the place, the exact type and the size of each
    order: Sequence[int]  # the places of what the launcher takes, or -1 - the number of a constant
    constants: Sequence[Any]

    def launcher(self, launch: Callable[..., Any]) -> Launcher:
        """Return the launcher of such arguments; NotImplemented for tuples of other types or sizes."""
        numbers = [number for place, _, size in self.tuples for number in (place, size)]
        places = self.arguments + sum(size for _, _, size in self.tuples)
        words = (self.arguments, places, len(self.tuples), len(self.order), *numbers, *self.order)
        table = struct.pack(f"<{len(words)}q", *words)
        return new_launcher("launch_parts", (launch, table, *(kind for _, kind, _ in self.tuples), *self.constants))


@cache
def describe_tensors() -> Callable[..., Any]:
    """Return a function of torch's tensors, or None, that gives bytes which decide how a launch would be made of them
    (the number of threads is one of these, and which begin at one address); NotImplemented for others.
    """
    return new_launcher("describe_tensors", ()) if is_native() else lambda *_: NotImplemented


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def new_launcher(function: str, holder: tuple[Any, ...], flags: int = 0) -> Launcher:
    """Return a Python function that calls the library's `function` with `holder` for `self`."""
    return _new_function(ctypes.addressof(_method(function, flags)), holder, None)


@cache
def _method(function: str, flags: int) -> _MethodDef:
    """Return the one definition that all launchers of a kind share; it lives as long as the process."""
    doc = b"launch($self, grid_x, grid_y, grid_z, /, *arguments)\n--\n\nReturn None, or NotImplemented."
    return _MethodDef(b"launch", pool().library.addresses[function], _METH_FASTCALL | flags, doc)


_new_function: Callable[[int, tuple[Any, ...], None], Launcher] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))

_function_of: Callable[[Launcher], int] = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyCFunction_GetFunction", ctypes.pythonapi)
)
