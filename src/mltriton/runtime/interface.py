"""What programs written for upstream ask of a kernel: `KernelInterface`, and the attributes of `JITFunction`.

Level: runtime. `KernelInterface` is the base of whatever can be launched over a grid: kernels, what `autotune` and
`heuristics` make of them, and classes of other packages (Inductor's). `Described` gives a kernel upstream's attributes.
Guarantees: a kernel of a module is pickled by its name there; one whose function another program has taken away (`fn =
None`), as Inductor's worker processes do, by what describes it, which cannot be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mltriton.runtime.forking import fork_lock

if TYPE_CHECKING:
    from mltriton.frontend.source import FunctionSource
    from mltriton.runtime.parameters import Parameter

T = TypeVar("T")

# What of a kernel belongs to this process.
_OF_THE_PROCESS = frozenset(
    (
        *("__wrapped__", "source", "environment", "signature", "dependencies", "watched", "pre_run_hooks"),
        *("launch_metadata", "_compiled", "_programs", "_lock", "_hash_lock", "grids", "shapes"),
    )
)


class KernelInterface(Generic[T]):
    """Something that is launched by `kernel[grid](*arguments)`; subclasses say what `run` does."""

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch over `grid`, or with `warmup` only compile."""
        raise NotImplementedError(f"{type(self).__name__} has no run")

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compile for these arguments without launching."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Any:
        """The launcher for a grid."""
        return partial(self.run, grid=grid, warmup=False)


class Described:
    """Upstream's attributes of a kernel, over `fn`, `source` and `parameters`."""

    if TYPE_CHECKING:
        fn: Callable[..., Any]
        source: FunctionSource
        _compiled: dict[Any, Any]
        __qualname__: str
        parameters: cached_property[tuple[Parameter, ...]]

        _programs: dict[Any, Any]

        def _forget_shapes(self) -> None: ...

    def _describe(self, fn: Callable[..., Any], lock: Any, repr: Callable[..., str] | None) -> None:
        """Set what other programs read and replace."""
        self.__globals__ = fn.__globals__
        self.used_global_vals: dict[Any, Any] = {}
        self.repr: Callable[[Any], str] = repr or _name_of
        self._hash_lock = lock
        self._hash: str | None = None

    @property
    def hash(self) -> str | None:
        """What other programs keep here. None says that a function that the kernel calls has another text."""
        return self._hash

    @hash.setter
    def hash(self, value: str | None) -> None:
        self._hash = value
        if value is None:
            self._forget()

    def _unsafe_update_src(self, text: str) -> None:
        """Take `text`, from `def` on, for the kernel's; functions that call it must be told by the caller (`hash`)."""
        with self._hash_lock:
            if text != self.source.undecorated:
                self.source.replace(text)
            self._forget()

    def _forget(self) -> None:
        """Forget what was compiled, and what the kernel depends on."""
        with self._hash_lock:
            self.__dict__.pop("dependencies", None)
            self._compiled.clear()
            self._programs.clear()
            self._forget_shapes()

    @property
    def params(self) -> list[Parameter]:
        """The parameters: `num`, `name`, `is_constexpr`, `is_const`, `do_not_specialize`, ..."""
        return list(self.parameters)

    def get_capture_scope(self) -> dict[str, Any]:
        """The names that the function sees: those of its module, and above them those it closes over."""
        captured = zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True)
        return self.__globals__ | {name: cell.cell_contents for name, cell in captured}

    @property
    def src(self) -> str:
        """The text from `def` on, not indented."""
        return self.__dict__.get("_src") or self.source.undecorated

    @cached_property
    def raw_src(self) -> list[str]:
        """The lines as they stand in the file, decorators included."""
        return self.source.text.splitlines(keepends=True)

    @property
    def file_name(self) -> str:
        """The file; programs that make a kernel's text themselves say here, and below, where it is from."""
        return self.source.file

    @file_name.setter
    def file_name(self, name: str) -> None:
        self.source.file = name

    @property
    def starting_line_number(self) -> int:
        """The line of the first decorator, from 1."""
        return self.source.first_line

    @starting_line_number.setter
    def starting_line_number(self, line: int) -> None:
        self.source.move_to(line)

    @cached_property
    def def_file_line_number(self) -> int:
        """The line of `def`, from 1."""
        return self.source.tree.lineno

    @cached_property
    def def_file_col_number(self) -> int:
        """The column of `def`, from 0."""
        return self.source.tree.col_offset

    @property
    def device_caches(self) -> dict[int, tuple[dict[Any, Any], dict[Any, Any], Any, Any, None]]:
        """What was compiled, by device: kernels by key first, then an empty dictionary, the target and its backend."""
        from mltriton.as_triton.backends import make_backend  # Few launches need it.
        from mltriton.runtime.driver import driver

        target = driver.active.get_current_target()
        return {0: (dict(self._compiled), {}, target, make_backend(target), None)}

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A kernel is pickled, and copied, as Python's functions are: by its name in its module."""
        return super().__reduce_ex__(protocol) if getattr(self, "fn", None) is None else self.__qualname__

    def __getstate__(self) -> dict[str, Any]:
        """What a kernel is without its function: for processes that only describe or launch it."""
        described = {"parameters": self.parameters, "_src": self.src, "arg_names": [p.name for p in self.parameters]}
        return {name: value for name, value in self.__dict__.items() if name not in _OF_THE_PROCESS} | described

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Give the kernel the things of this process anew."""
        self.__dict__.update(state)
        lock = fork_lock()
        fresh: dict[str, Any] = {
            "grids": {},
            "shapes": {},
            "_compiled": {},
            "_programs": {},
            "_lock": lock,
            "_hash_lock": lock,
            "launch_metadata": None,
        }
        self.__dict__.update(fresh)


def _name_of(kernel: Any) -> str:
    return kernel.__name__ if hasattr(kernel, "__name__") else kernel.name
