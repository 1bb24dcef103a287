"""The kernels of a source text, loaded without importing the file.

Level: runtime. Only what kernels need is executed: functions under `jit`, constants, and the same of the modules that
they are imported from, as far as their files lie beside this one. Everything else (torch, the package itself) is a
stand-in that takes part in nothing. Guarantees: no import of the user's package, no code of its host functions.
"""

from __future__ import annotations

import ast
import importlib
import linecache
import sys
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

_TRITON = ("triton", "mltriton")
_MAX_DEPTH = 6


class Absent:
    """Stands for whatever was not loaded: has every attribute, can be called, is true, and is no value of a kernel."""

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self

    def __getitem__(self, key: object) -> Absent:
        return self


class Loader:
    """Executes source texts; each module once."""

    def __init__(self) -> None:
        self._modules: dict[Path, dict[str, Any]] = {}

    def load(self, text: str, path: Path, name: str, depth: int = 0) -> dict[str, Any]:
        """The names of a source text. `name` is what tracebacks and errors call the file."""
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names: dict[str, Any] = {"__name__": f"mltriton_migrated_{len(self._modules)}", "__file__": str(path)}
        self._run(ast.parse(text).body, names, path, name, depth)
        return names

    def _run(self, body: list[ast.stmt], names: dict[str, Any], path: Path, name: str, depth: int) -> None:
        for statement in body:
            try:
                self._statement(statement, names, path, name, depth)
            except Exception:  # host code may need anything: what it would have defined stays unknown
                for bound in _bound(statement):
                    names.setdefault(bound, Absent())

    def _statement(self, node: ast.stmt, names: dict[str, Any], path: Path, name: str, depth: int) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    names[alias.asname or first] = _module(alias.name if alias.asname else first)
            case ast.ImportFrom():
                self._import_from(node, names, path, depth)
            case ast.If():
                taken = eval(compile(ast.Expression(node.test), name, "eval"), names)
                self._run(node.body if taken else node.orelse, names, path, name, depth)
            case ast.Try():
                self._run(node.body, names, path, name, depth)
            case ast.FunctionDef() if is_jit(node):
                import mltriton

                bare = copy(node)
                bare.decorator_list = []
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                _execute(bare, names, name)
                function = names[node.name]
                function.__code__ = function.__code__.replace(co_firstlineno=first)
                names[node.name] = mltriton.jit(function)
            case ast.Assign() | ast.AnnAssign():
                _execute(node, names, name)
            case _:
                for bound in _bound(node):
                    names.setdefault(bound, Absent())

    def _import_from(self, node: ast.ImportFrom, names: dict[str, Any], path: Path, depth: int) -> None:
        module = node.module or ""
        root = module.partition(".")[0]
        if not node.level and (root in _TRITON or root in sys.stdlib_module_names):
            found: Any = _module(module)
            for alias in node.names:
                names[alias.asname or alias.name] = getattr(found, alias.name)
            return
        file = _find(module, node.level, path)
        known = self._file(file, depth + 1) if file is not None and depth < _MAX_DEPTH else {}
        for alias in node.names:
            names[alias.asname or alias.name] = known.get(alias.name, Absent())

    def _file(self, path: Path, depth: int) -> dict[str, Any]:
        if path not in self._modules:
            self._modules[path] = {}
            self._modules[path] = self.load(path.read_text(encoding="utf-8"), path, str(path), depth)
        return self._modules[path]


def is_jit(node: ast.FunctionDef) -> bool:
    """Whether a function is compiled by Triton."""
    return any(ast.unparse(each).partition("(")[0].split(".")[-1] == "jit" for each in node.decorator_list)


def _execute(node: ast.stmt, names: dict[str, Any], name: str) -> None:
    exec(compile(ast.Module([node], []), name, "exec"), names)


def _module(name: str) -> Any:
    root, _, rest = name.partition(".")
    if root in _TRITON:
        return importlib.import_module(f"mltriton.{rest}" if rest else "mltriton")
    return importlib.import_module(name) if root in sys.stdlib_module_names else Absent()


def _find(module: str, level: int, path: Path) -> Path | None:
    """The file of a module: relative to this file, or under one of the directories above it."""
    parts = module.split(".") if module else []
    roots = [path.parents[level - 1]] if level else list(path.resolve().parents)
    for root in roots:
        base = root.joinpath(*parts)
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if parts and file.is_file():
                return file
    return None


def _bound(node: ast.stmt) -> Iterator[str]:
    """The names that a statement binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
