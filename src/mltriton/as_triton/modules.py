"""Modules named triton: found here first, and made when they are imported.

Level: user. `install()` puts a finder in front of Python's and makes the module `triton`. Guarantees: `import triton.x`
gives the module of ours that `names.SAME` names, one made of `names.MADE`, or a `ModuleNotFoundError` that says that
mltriton stands in for triton; a name that a module lacks is such an `AttributeError`, or `ImportError` where it is
imported. Functions of the language say that they are upstream's (`__module__`): torch.compile writes imports by that.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

from mltriton.as_triton.names import ABSENT, MADE, SAME, VERSION

TYPE_CHECKING = False  # Importing it from typing would double the cost of this module.
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)

# What processes that are started later find first: a module triton that imports this package.
FOLDER = os.path.join(os.path.dirname(__file__), "path")  # noqa: PTH118, PTH120 - pathlib takes as long as all of this
_WHO = "mltriton stands in for triton"
_FUNCTION = type(lambda: None)
_LANGUAGE = ("mltriton.language", "mltriton.runtime.arithmetic")


class Names(ModuleType):
    """A module made of names that live elsewhere."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"{name}, by mltriton.")
        self.__path__ = []
        self.__version__ = VERSION

    def __getattr__(self, name: str) -> Any:
        try:
            value = _of_upstream(_find(self.__name__, name), "triton")
        except AttributeError as error:
            raise _absent(error, self.__name__, name) from None
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        table = MADE[self.__name__]
        return sorted({*super().__dir__(), *(name for name in table if name), *dir(import_module(table[""]))})


def _find(module: str, name: str) -> Any:
    """A name of a module that is made here."""
    table, full = MADE[module], f"{module}.{name}"
    if name.startswith("__"):
        raise AttributeError(name)
    if name in table:
        home, _, own = table[name].partition(":")
        return getattr(import_module(home), own or name)
    if full in SAME or full in MADE:
        return import_module(full)
    return getattr(import_module(table[""]), name)


def _absent(error: AttributeError, module: str, name: str) -> Exception:
    """What to raise for a name that there is not, asked of a module by the caller's caller.

    An `ImportError` in an import statement, which otherwise has Python's text; an `AttributeError` for whoever probes.
    """
    if name.startswith("__"):
        return error
    code, at = (caller := sys._getframe(2)).f_code.co_code, caller.f_lasti  # pyright: ignore[reportPrivateUsage]
    from dis import opname

    kind = ImportError if opname[code[at]] == "IMPORT_FROM" else AttributeError
    return kind(_missing(f"{module}.{name}", dir(sys.modules[module])))


def _of_upstream(value: Any, module: str) -> Any:
    """A value, which says that it is of a module of upstream's if it is a function of the language, or `constexpr`."""
    is_named = isinstance(value, _FUNCTION) or getattr(value, "__name__", "") == "constexpr"
    if is_named and getattr(value, "__module__", "").startswith(_LANGUAGE):
        value.__module__ = module
    return value


def _show(module: ModuleType, upstream: str) -> None:
    """Let the functions of a module be those of a module of upstream's, also those imported later."""
    for value in list(vars(module).values()):
        _of_upstream(value, upstream)
    own = module.__dict__.get("__getattr__")

    def find(name: str) -> Any:
        try:
            if own is None:
                raise AttributeError(f"module {upstream!r} has no attribute {name!r}")
            return _of_upstream(own(name), upstream)
        except AttributeError as error:
            raise _absent(error, upstream, name) from None

    module.__getattr__ = find


def _missing(name: str, known: Sequence[str] = ()) -> str:
    reason = next((text for absent, text in ABSENT.items() if f"{name}.".startswith(f"{absent}.")), None)
    from mltriton.errors import closest_public  # Only a mistake needs it.

    close = closest_public(name.rpartition(".")[2], known)
    hint = f"did you mean {close}?" if close else "leave it out, or use the real triton where there is a GPU"
    return f"there is no {name}: {_WHO} ({reason or hint})"


def _home(name: str) -> str | None:
    """The module of ours that a module of upstream's is; `name` itself where one is made, None where there is none."""
    if name in MADE:
        return name
    if name in SAME:
        return SAME[name]
    parent, _, last = name.rpartition(".")
    home = None if parent in ("", "triton") or _is_absent(name) else _home(parent)
    if home is None:
        return None
    from importlib.util import find_spec

    found = f"{MADE[home][''] if home in MADE else home}.{last}"
    try:
        return found if find_spec(found) is not None else None
    except ModuleNotFoundError:  # Its parent is no package.
        return None


def _is_absent(name: str) -> bool:
    return any(f"{name}.".startswith(f"{absent}.") for absent in ABSENT)


def _is_package(name: str, home: str) -> bool:
    if name in SAME or name in MADE:
        return True
    from importlib.util import find_spec

    found = find_spec(home)
    return found is not None and found.submodule_search_locations is not None


class _Finder:
    """Finds modules named triton, and puts ours in their place."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """The module's specification; None for names that are not triton's."""
        if fullname.partition(".")[0] != "triton":
            return None
        home = _home(fullname)
        if home is None:
            raise ModuleNotFoundError(_missing(fullname), name=fullname)
        spec = ModuleSpec(fullname, self, is_package=_is_package(fullname, home))  # pyright: ignore[reportArgumentType]
        spec.loader_state = home
        return spec

    def get_code(self, fullname: str) -> Any:
        """The code of ours, for `python -m`."""
        from importlib.util import find_spec

        found = find_spec(_home(fullname) or fullname)
        loader: Any = found.loader if found is not None else None
        return loader.get_code(loader.name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """None: Python makes a module, which `exec_module` takes the place of."""

    def exec_module(self, module: ModuleType) -> None:
        """Put ours in the module's place."""
        spec = module.__spec__
        assert spec is not None
        home = spec.loader_state
        if home == spec.name:
            sys.modules[spec.name] = _made(spec)
        else:
            sys.modules[spec.name] = found = import_module(home)
            _show(found, spec.name)


def _made(spec: ModuleSpec) -> Names:
    made = Names(spec.name)
    made.__spec__ = spec
    made.__loader__ = spec.loader
    made.__file__ = os.path.join(FOLDER, "triton", "__init__.py")  # noqa: PTH118
    return made


def install() -> None:
    """Find modules named triton here from now on, and make `triton`; nothing where that is so already."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        sys.modules.pop("triton", None)
        import_module("triton")
