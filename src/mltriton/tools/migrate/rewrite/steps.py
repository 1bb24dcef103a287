"""What the steps before the other rules share: each rewrites programs of block pointers to programs of block pointers.

Level: source text. A step changes one thing in one or several of the given files; it is repeated until it finds nothing
more. Its notes stand at the lines of the user's texts.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Set

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.callers import Function
from mltriton.tools.migrate.read.parse import MAKERS, Source, functions_of
from mltriton.tools.migrate.read.syntax import cst, walk
from mltriton.tools.migrate.result import Note

# The notes of a step by file, and the new texts of the files that it changed.
Changed = tuple[list[tuple[str, Note]], dict[str, str]]


def may_be_pointer(source: Source, node: cst.BaseExpression, made: Set[str]) -> bool:
    """Whether an expression may be a block pointer: a quick look before the analysis."""
    return source.callee(node) in MAKERS or (isinstance(node, cst.Name) and node.value in made)


def may_pass_on(source: Source) -> bool:
    """Whether a file may pass block pointers to functions, return them or put them in tuples."""
    made = source.made
    for node in walk(source.module):
        values: list[cst.BaseExpression] = []
        if isinstance(node, cst.Call) and source.callee(node) is None:
            values = [arg.value for arg in node.args]
        elif isinstance(node, cst.Return) and node.value is not None:
            values = [node.value]
        elif isinstance(node, cst.Tuple | cst.List):
            values = [element.value for element in node.elements]
        if any(may_be_pointer(source, value, made) for value in values):
            return True
    return False


class Notes:
    """Notes made between the steps of a migration, at the lines of the user's texts."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self.of: dict[str, list[Note]] = {path: [] for path in texts}

    def line(self, source: Source, node: cst.CSTNode) -> int:
        """The user's line for a node of what the user's text became."""
        return moved(source.text, self._texts[source.path])(source.line(node))


def moved(plain: str, text: str) -> Callable[[int], int]:
    """From lines of the text between two steps to lines of the user's text."""
    if plain == text:
        return lambda line: line
    old, new = text.splitlines(), plain.splitlines()
    lines: dict[int, int] = {}
    for _, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        lines |= {line + 1: min(i + line - k, max(j - 1, i)) + 1 for line in range(k, m)}
    return lambda line: min(lines.get(line, line), max(len(old), 1))


class Analyses:
    """The functions of some files, analysed when they are first asked for."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        self._known: dict[str, list[tuple[Pointers, Bounds]]] = {}

    def of(self, path: str) -> list[tuple[Pointers, Bounds]]:
        """The functions of a file that have block pointers."""
        if path not in self._known:
            source = self.sources[path]
            every = [Pointers(source, function) for function in functions_of(source.module)]
            self._known[path] = [(each, Bounds(source, each)) for each in every if each.groups]
        return self._known[path]


def caller_notes(line: int, function: Function, what: str, lines: Mapping[str, set[int]]) -> Iterator[tuple[str, Note]]:
    """What changed for callers, at the helper's line and, where they are in other files, at the calls."""
    places = [
        ("" if path == function.path else f"{path}: ")
        + f"line{'s' if len(own) > 1 else ''} {', '.join(map(str, sorted(own)))}"
        for path, own in sorted(lines.items(), key=lambda item: (item[0] != function.path, item[0]))
    ]
    text = f"{function.name} {what}; call sites changed: {'; '.join(places)}"
    if not function.name.startswith("_"):
        text += "; callers in files that were not given must change alike"
    yield function.path, Note(line, "caller", text)
    for path, own in lines.items():
        if path != function.path:
            text = f"{function.name} of {function.path} {what}: its calls here are changed"
            yield path, Note(min(own), "caller", text)
