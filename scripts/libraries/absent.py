"""Stand-ins for the parts of a large package that its kernels' modules import and never call.

`from_sources(package, folder, real)` makes `package` importable from its sources: modules named in `real` are the
package's own, unchanged; every other module below it gives a name that is called, subclassed or subscripted in vain.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


class _Nothing(type):
    """The type of names that are not there: false, and any use of one gives another or what it decorates."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing

    def __call__(cls, *values: Any, **named: Any) -> Any:
        if cls is not Nothing:
            return super().__call__(*values, **named)
        return values[0] if len(values) == 1 and callable(values[0]) and not named else Nothing

    def __bool__(cls) -> bool:
        return False

    def __getitem__(cls, _: Any) -> Any:
        return Nothing

    def __or__(cls, other: Any) -> Any:
        return other

    __ror__ = __or__


class Nothing(metaclass=_Nothing):
    """A name of a module that is not there."""


class _Absent(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module: Any = ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = _nothing
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to execute."""


def _nothing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return Nothing


class _Finder(MetaPathFinder):
    def __init__(self, package: str, folder: Path, real: Collection[str]) -> None:
        self.package, self.folder, self.real = package, folder, {f"{package}.{name}" for name in real}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        if fullname not in self.real:
            return ModuleSpec(fullname, _Absent(), is_package=True)
        file = self.folder.joinpath(*fullname.split(".")).with_suffix(".py")
        return importlib.util.spec_from_file_location(fullname, file)


def from_sources(package: str, folder: Path, real: Collection[str]) -> None:
    """Let `package` be imported from `folder`, with only the modules `real` of it there."""
    sys.meta_path.insert(0, _Finder(package, folder, real))
