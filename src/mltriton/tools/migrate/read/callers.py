"""The given files together: which function of which file a call calls.

Level: source text. Names are followed through imports from one given file to another, packages' `__init__.py` included.
Functions that are defined twice under one name, or used otherwise than by calling them, are nobody's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mltriton.tools.migrate.read.parse import Imported, Source, functions_of
from mltriton.tools.migrate.read.syntax import children, cst, dotted, walk

_HOPS = 4  # imports through which a name is followed


@dataclass(frozen=True)
class Function:
    """A function of a given file."""

    path: str
    name: str


class Callers:
    """The functions and calls of some files."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        self._paths = {Path(path).resolve(): path for path in sources}
        self.functions: dict[Function, cst.FunctionDef] = {}
        for path, source in sources.items():
            every = list(functions_of(source.module))
            count = Counter(each.name.value for each in every)
            self.functions |= {Function(path, each.name.value): each for each in every if count[each.name.value] == 1}

    def called(self, path: str, node: cst.CSTNode) -> Function | None:
        """The function that the callee of a call in a file means."""
        name = dotted(node)
        return self._function(path, name, 0) if name is not None else None

    def _function(self, path: str, name: str, hops: int) -> Function | None:
        function = Function(path, name)
        if function in self.functions:
            return function
        head, _, last = name.rpartition(".")
        found = self.sources[path].imported.get(head or name)
        if found is None or hops == _HOPS:
            return None
        if head:
            module = f"{found.module}.{found.name}".strip(".") if found.name is not None else found.module
            file = self._file(Imported(module, found.level, None), path)
        else:
            last = found.name or ""
            file = self._file(found, path)
        return self._function(file, last, hops + 1) if file is not None and last else None

    def _file(self, imported: Imported, path: str) -> str | None:
        for base in module_files(imported, Path(path).resolve()):
            if base in self._paths:
                return self._paths[base]
        return None

    def is_only_called(self, function: Function) -> bool:
        """Whether the given files do nothing with a function but define, import and call it."""
        for path, source in self.sources.items():
            callees = {id(node.func) for node in walk(source.module) if isinstance(node, cst.Call)}
            for node in _read(source.module):
                if id(node) not in callees and self.called(path, node) == function:
                    return False
        return True


def _read(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Names and attributes that are values: neither imported, defined nor keywords."""
    if isinstance(node, cst.Name | cst.Attribute):
        yield node
    if isinstance(node, cst.Import | cst.ImportFrom | cst.Name):
        return
    skipped = node.attr if isinstance(node, cst.Attribute) else None
    skipped = node.name if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Param) else skipped
    skipped = node.keyword if isinstance(node, cst.Arg) else skipped
    for child in children(node):
        if child is not skipped:
            yield from _read(child)


def module_files(imported: Imported, path: Path) -> Iterator[Path]:
    """Where the file of a module that `path` imports may lie: relative to it, or under a directory above it."""
    parts = imported.module.split(".") if imported.module else []
    roots = [path.parents[imported.level - 1]] if imported.level else list(path.parents)
    for root in roots:
        base = root.joinpath(*parts)
        if parts:
            yield base.with_suffix(".py")
        yield base / "__init__.py"
