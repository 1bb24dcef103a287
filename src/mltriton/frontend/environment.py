"""What a kernel sees outside itself: closure variables, globals and Python's builtins, and which of them it may use.

Level: above `tt`. Guarantees: a name is resolved as Python would, at the time of compiling; a global whose value the
compiled kernel could not follow (a plain number, an array) is a `NameNotFoundError`, since changing it later would
silently do nothing; one that changes while the kernel is compiled does not matter (`snapshot.py`).
"""

from __future__ import annotations

import builtins
import enum
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from mltriton.errors import NameNotFoundError, did_you_mean
from mltriton.frontend.snapshot import UNSEEN, attribute_of, seen_name
from mltriton.frontend.values import wrap
from mltriton.language.constants import constexpr
from mltriton.language.types import dtype
from mltriton.runtime.config import ALLOW_GLOBALS

ABSENT = object()

# Modules whose plain numbers are constants by agreement.
_CONSTANT_MODULES = frozenset({"math", "numpy", "torch"})


class Environment:
    """The names that a Python function sees outside its own variables."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def find(self, name: str) -> Any:
        """The Python object that a name means, or `ABSENT`; while compiling, what it meant for the cache's key."""
        found = seen_name(self, name)
        return self.look_up(name) if found is UNSEEN else found

    def look_up(self, name: str) -> Any:
        """The Python object that a name means now, or `ABSENT`; closure first, then globals, then builtins."""
        code = self._fn.__code__
        if name in code.co_freevars:
            cell = (self._fn.__closure__ or ())[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:  # The enclosing function has not assigned it yet.
                return ABSENT
        value = self._fn.__globals__.get(name, ABSENT)
        return getattr(builtins, name, ABSENT) if value is ABSENT else value

    def lookup(self, name: str) -> Callable[[str], Any]:
        """How a name is looked up.

        In a closure's cell, or in the globals (also a builtin, which a global may come to hide).
        """
        freevars = self._fn.__code__.co_freevars
        return self.look_up if name in freevars else self._fn.__globals__.get

    def has(self, name: str) -> bool:
        """Whether the name means anything."""
        return self.find(name) is not ABSENT

    def resolve(self, chain: tuple[str, ...]) -> Any:
        """The object that a dotted name means by attributes of modules.

        None where it means none, or a part is no module.
        """
        value = self.find(chain[0])
        for attribute in chain[1:]:
            if not isinstance(value, ModuleType):
                return None
            value = attribute_of(value, attribute, None)
        return None if value is ABSENT else value

    def value(self, name: str) -> Any:
        """The value of a name in a kernel.

        Raises `NameNotFoundError` for one that is unknown or that a kernel may not use.
        """
        found = self.find(name)
        if found is ABSENT:
            raise NameNotFoundError(f"{name} is not defined", hint=self._similar(name))
        return usable(found, name, is_annotated=self._is_annotated_constant(name))

    def _is_annotated_constant(self, name: str) -> bool:
        """Whether the module says `name: tl.constexpr = ...`."""
        annotation = self._fn.__globals__.get("__annotations__", {}).get(name)
        return annotation is constexpr or (isinstance(annotation, str) and annotation.endswith("constexpr"))

    def _similar(self, name: str) -> str | None:
        code = self._fn.__code__
        known = [*code.co_varnames, *code.co_freevars, *self._fn.__globals__]
        return did_you_mean(name, [other for other in known if other != name])


def usable(found: Any, name: str, *, is_annotated: bool = False) -> Any:
    """A Python object from outside the kernel as a value.

    Raises `NameNotFoundError` for one whose later changes would be lost.
    """
    if is_annotated or is_constant(found):
        return wrap(found)
    if isinstance(found, ModuleType) or callable(found):
        return found
    if isinstance(found, int | float | str) and ALLOW_GLOBALS.get():
        return wrap(found)
    is_array = hasattr(found, "dtype") and hasattr(found, "shape")  # No program can have it for a constant.
    argument = "pass it as an argument."
    raise NameNotFoundError(
        f"the kernel uses the global variable {name}, which is not a constexpr",
        found=f"a value of type {type(found).__name__}",
        hint=argument.capitalize()
        if is_array
        else f"Write `{name} = tl.constexpr(...)` where it is defined, or {argument}",
        upstream=f"Cannot access global variable {name} from within @jit'ed function. Triton kernels can only access "
        "global variables that are instanstiated as constexpr (`x = triton.language.constexpr(42)`).",
    )


def is_constant(found: Any) -> bool:
    """Whether a Python object is a constant, or a tuple of constants."""
    if isinstance(found, tuple):
        return all(is_constant(item) for item in cast("tuple[Any, ...]", found))
    return found is None or isinstance(found, constexpr | enum.Enum | dtype)


def attribute_of_module(module: ModuleType, name: str) -> Any:
    """The value of `module.name` in a kernel; `NameNotFoundError` as for a global."""
    found = attribute_of(module, name, ABSENT)
    if found is ABSENT:
        hint = did_you_mean(name, [item for item in dir(module) if not item.startswith("_")])
        raise NameNotFoundError(f"module {module.__name__} has no attribute {name}", hint=hint)
    is_annotated = getattr(module, "__annotations__", {}).get(name) in (constexpr, "tl.constexpr", "constexpr")
    return usable(found, name, is_annotated=is_annotated or module.__name__ in _CONSTANT_MODULES)
