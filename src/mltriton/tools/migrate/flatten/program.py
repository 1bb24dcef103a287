"""The given files while block pointers are taken apart: calls of helpers, analysed functions, and one change to both.

Level: source text. A step changes one thing in one or several of the given files; its notes stand at the lines of the
user's texts.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from mltriton.tools.migrate.classify.bounds import Bounds
from mltriton.tools.migrate.classify.pointers import Pointers
from mltriton.tools.migrate.read.callers import Callers, Function
from mltriton.tools.migrate.read.flow import parameters_of
from mltriton.tools.migrate.read.parse import MAKERS, Source, functions_of
from mltriton.tools.migrate.read.syntax import children, cst, keyword_of, walk
from mltriton.tools.migrate.result import Note
from mltriton.tools.migrate.rewrite.edits import Edits

# The notes of a step by file, and the new texts of the files that it changed.
Changed = tuple[list[tuple[str, Note]], dict[str, str]]


@dataclass(frozen=True, eq=False)
class Site:
    """A call of a helper inside a function. `statement`: the small one around it, or the compound one it heads; `alone`
    where a small one has its line for itself.
    """

    path: str
    caller: cst.FunctionDef
    statement: cst.CSTNode
    alone: bool
    call: cst.Call
    passed: Mapping[str, cst.Arg]


class Program:
    """The files of a migration at one moment; functions are analysed when they are first asked for."""

    def __init__(self, sources: Mapping[str, Source], notes: Notes) -> None:
        self.sources = sources
        self.notes = notes
        self.callers = Callers(sources)
        self._known: dict[str, list[tuple[Pointers, Bounds]]] = {}

    def of(self, path: str) -> list[tuple[Pointers, Bounds]]:
        """The functions of a file that have block pointers."""
        if path not in self._known:
            source = self.sources[path]
            every = [Pointers(source, function) for function in functions_of(source.module)]
            self._known[path] = [(each, Bounds(source, each)) for each in every if each.groups]
        return self._known[path]

    def analysis(self, path: str, function: cst.FunctionDef) -> tuple[Pointers, Bounds] | None:
        """One function, where it has block pointers."""
        return next((each for each in self.of(path) if each[0].function is function), None)

    def sites(self, function: Function) -> list[Site]:
        """Every call of a helper; none where the files do more with it than call it, or arguments have no names."""
        found = self._sites.get(function, [])
        return [each for each in found if each] if None not in found and self.callers.is_only_called(function) else []

    def receiver(self, path: str, call: cst.Call, arg: cst.Arg) -> tuple[Function, str] | None:
        """The helper that an argument goes to, and its parameter; None where `sites` has not all of its calls."""
        function = self.callers.called(path, call.func)
        for site in self.sites(function) if function is not None else ():
            for name, each in site.passed.items():
                if each is arg and function is not None:
                    return function, name
        return None

    @cached_property
    def _sites(self) -> dict[Function, list[Site | None]]:
        found: dict[Function, list[Site | None]] = defaultdict(list)
        for path, source in self.sources.items():
            for caller, statement, alone, call in _calls(source):
                function = self.callers.called(path, call.func)
                if function is not None:
                    names = [each.name.value for each in parameters_of(self.callers.functions[function])]
                    passed = keyword_of(call, names)
                    if caller is None or passed is None:
                        found[function].append(None)
                    else:
                        found[function].append(Site(path, caller, statement, alone, call, passed))
        return found


def _calls(source: Source) -> Iterator[tuple[cst.FunctionDef | None, cst.CSTNode, bool, cst.Call]]:
    """Every call of a file, with the function and the statement around it."""
    waiting: list[tuple[cst.CSTNode, cst.FunctionDef | None, cst.CSTNode, bool]] = []
    waiting.append((source.module, None, source.module, False))
    while waiting:
        node, function, statement, alone = waiting.pop()
        if isinstance(node, cst.FunctionDef):
            function = node
        if isinstance(node, cst.BaseCompoundStatement | cst.BaseSmallStatement):
            statement = node
        elif isinstance(node, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            alone = isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1
        elif isinstance(node, cst.Call):
            yield function, statement, alone, node
        waiting += [(child, function, statement, alone) for child in reversed(children(node))]


class Change:
    """A change to a helper and its calls."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function
        self.helper = program.callers.functions[function]
        self._edits: dict[str, Edits] = defaultdict(Edits)
        self._lines: dict[str, set[int]] = {}
        self.own = self._of(function.path, self.helper)

    def _of(self, path: str, function: cst.FunctionDef) -> Edits:
        self._edits[path].functions.add(function)
        return self._edits[path]

    def at(self, site: Site) -> Edits:
        """The edits of a call's file; the call is named in the notes."""
        line = self.program.notes.line(self.program.sources[site.path], site.call)
        self._lines.setdefault(site.path, set()).add(line)
        return self._of(site.path, site.caller)

    def language(self, path: str) -> str:
        """What a file calls the module of the language."""
        return self.program.sources[path].language() or "tl"

    def finished(self, what: str) -> Changed:
        """The notes, which say what became of the helper, and the new texts."""
        sources = self.program.sources
        line = self.program.notes.line(sources[self.function.path], self.helper)
        texts = {path: edits.apply(sources[path].module) for path, edits in self._edits.items()}
        return list(_notes(line, self.function, what, self._lines)), texts


def _notes(line: int, function: Function, what: str, lines: Mapping[str, set[int]]) -> Iterator[tuple[str, Note]]:
    """What changed for callers, at the helper's line and, where they are in other files, at the calls."""
    sites = [
        ("" if path == function.path else f"{path}: ")
        + f"line{'s' if len(own) > 1 else ''} {', '.join(map(str, sorted(own)))}"
        for path, own in sorted(lines.items(), key=lambda item: (item[0] != function.path, item[0]))
    ]
    text = f"{function.name} {what}; call sites changed: {'; '.join(sites)}"
    if not function.name.startswith("_"):
        text += "; callers in files that were not given must change alike"
    yield function.path, Note(line, "caller", text)
    for path, own in lines.items():
        if path != function.path:
            text = f"{function.name} of {function.path} {what}: its calls here are changed"
            yield path, Note(min(own), "caller", text)


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
