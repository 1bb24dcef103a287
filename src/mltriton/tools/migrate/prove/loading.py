"""The kernels of a source text, loaded without importing the file.

Level: runtime. Executed is what the functions under `jit` need and nothing else: these functions (their decorators are
not), the assignments and the tests of top-level `if`s that give the names they use, imports of Triton and of Python's
own modules among those names, and the same of the files beside this one that such names are imported from. Everything
else (torch, other packages, host functions, classes) is a stand-in that takes part in nothing. Guarantees: no import of
the user's package, no code of its host functions. An assignment that a kernel needs runs as it is written, whatever it
calls; proofs run in a process of their own.
"""

from __future__ import annotations

import ast
import importlib
import linecache
import sys
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from types import ModuleType
from typing import Any

from mltriton.frontend.syntax import parsed

_TRITON = ("triton", "mltriton")
# Packages pass Triton on: `from vllm.triton_utils import tl, triton`.
REEXPORTED = {"triton": "mltriton", "tl": "mltriton.language", "triton_language": "mltriton.language"}
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


class _Module:
    """The statements of one file, executed as far as somebody needs the names that they bind."""

    def __init__(self, text: str, path: Path, name: str, depth: int, number: int) -> None:
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        self.path, self.name, self.depth = path, name, depth
        self.names: dict[str, Any] = {"__name__": f"mltriton_migrated_{number}", "__file__": str(path)}
        self._tree = parsed(text)
        self.waiting = [(node, frozenset(_bound(node))) for node in self._tree.body]

    def take(self, wanted: set[str]) -> list[ast.stmt]:
        """The statements that some names need and that were not taken yet, in their order."""
        needed = set(wanted)
        while True:
            used = {name for node, bound in self.waiting if bound & needed for name in _used(node)}
            if used <= needed:
                break
            needed |= used
        found = [node for node, bound in self.waiting if bound & needed]
        self.waiting = [(node, bound) for node, bound in self.waiting if not bound & needed]
        return found

    def attributes_of(self, name: str) -> set[str]:
        """What the file asks a name for: `b` in `name.b`."""
        nodes = (node for node in ast.walk(self._tree) if isinstance(node, ast.Attribute))
        return {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == name}


class Loader:
    """Executes source texts; each statement of a module once. `texts` stand in the place of files."""

    def __init__(self, texts: Mapping[Path, str] | None = None) -> None:
        self._modules: dict[Path, _Module] = {}
        self._texts = texts or {}
        self.missing: dict[str, str] = {}  # names that stand for nothing, and why

    def load(self, text: str, path: Path, name: str) -> dict[str, Any]:
        """The functions under jit of a source text by name. `name` is what tracebacks and errors call the file."""
        module = _Module(text, path, name, 0, len(self._modules))
        jitted = (node for node in ast.walk(parsed(text)) if isinstance(node, ast.FunctionDef) and is_jit(node))
        self._run(module.take({node.name for node in jitted}), module)
        return module.names

    def _run(self, body: list[ast.stmt], module: _Module) -> None:
        for statement in body:
            try:
                self._statement(statement, module)
            except Exception as error:  # host code may need anything: what it would have defined stays unknown
                for bound in _bound(statement):
                    self.missing[bound] = f"line {statement.lineno} fails with {type(error).__name__}: {error}"
                    module.names.setdefault(bound, Absent())

    def _statement(self, node: ast.stmt, module: _Module) -> None:
        names, name = module.names, module.name
        match node:
            case ast.Import():
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    bound = alias.asname or first
                    names[bound] = self._imported(alias.name if alias.asname else first, bound, module)
                    self._note(bound, names[bound], alias.name)
            case ast.ImportFrom():
                self._import_from(node, module)
            case ast.If():
                taken = eval(compile(ast.Expression(node.test), name, "eval"), names)
                self._run(node.body if taken else node.orelse, module)
            case ast.Try():
                self._run(node.body, module)
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

    def _imported(self, origin: str, bound: str, module: _Module) -> Any:
        """A module of Triton's or Python's own, or a file beside this one as far as `bound.name` asks for it."""
        known = _module(origin)
        file = _find(origin, 0, module.path) if isinstance(known, Absent) else None
        if file is None or module.depth >= _MAX_DEPTH:
            return known
        found = ModuleType(origin)
        found.__dict__.update(self._file(file, module.attributes_of(bound), module.depth + 1))
        return found

    def _import_from(self, node: ast.ImportFrom, module: _Module) -> None:
        origin = node.module or ""
        root = origin.partition(".")[0]
        if not node.level and (root in _TRITON or root in sys.stdlib_module_names):
            found: Any = _module(origin)
            for alias in node.names:
                module.names[alias.asname or alias.name] = getattr(found, alias.name)
            return
        file = _find(origin, node.level, module.path)
        wanted = {alias.name for alias in node.names}
        known = self._file(file, wanted, module.depth + 1) if file is not None and module.depth < _MAX_DEPTH else {}
        for alias in node.names:
            bound = alias.asname or alias.name
            found = known.get(alias.name)
            module.names[bound] = _reexported(alias.name) if found is None or isinstance(found, Absent) else found
            self._note(bound, module.names[bound], "." * node.level + origin)

    def _note(self, name: str, value: object, origin: str) -> None:
        if isinstance(value, Absent):
            self.missing.setdefault(name, f"{origin} is not loaded")

    def _file(self, path: Path, wanted: set[str], depth: int) -> dict[str, Any]:
        path = path.resolve()
        if path not in self._modules:
            text = self._texts.get(path)
            text = path.read_text(encoding="utf-8") if text is None else text
            self._modules[path] = _Module(text, path, str(path), depth, len(self._modules) + 1)
        module = self._modules[path]
        self._run(module.take(wanted), module)
        return module.names


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


def _reexported(name: str) -> Any:
    """What a package passes on under the name that Triton or its language goes by."""
    return importlib.import_module(REEXPORTED[name]) if name in REEXPORTED else Absent()


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


def _used(node: ast.stmt) -> Iterator[str]:
    """The names that executing a statement needs: of functions under jit all, of other functions none."""
    if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and not is_jit(node)):
        return
    parts = [part for part in ast.iter_child_nodes(node) if part not in getattr(node, "decorator_list", ())]
    for part in parts:
        if isinstance(part, ast.stmt) and not isinstance(node, ast.FunctionDef):
            yield from _used(part)
        else:
            yield from (each.id for each in ast.walk(part) if isinstance(each, ast.Name))


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        return
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            yield node.id
        return
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)
