"""Read a file: its syntax tree, the places of its nodes, and under which names it knows Triton's language.

Level: source text. A file that does not parse is a `MigrationError` with its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from mltriton.errors import SourceLocation
from mltriton.frontend.syntax import parsed
from mltriton.tools.migrate.read.syntax import cst, dotted, keyword_of, names_in, walk
from mltriton.tools.migrate.result import MigrationError

# The parameters of the functions that take or make block pointers, in the order of their positions.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "make_block_ptr": ("base", "shape", "strides", "offsets", "block_shape", "order"),
    "advance": ("base", "offsets"),
    "load": (
        "pointer",
        "mask",
        "other",
        "boundary_check",
        "padding_option",
        "cache_modifier",
        "eviction_policy",
        "volatile",
    ),
    "store": ("pointer", "value", "mask", "boundary_check", "cache_modifier", "eviction_policy"),
}
MAKERS = ("make_block_ptr", "advance")
LANGUAGES = ("triton.language", "mltriton.language")


@dataclass(frozen=True)
class Imported:
    """What a name stands for: a module (`level` dots before it), or `name` of it."""

    module: str
    level: int
    name: str | None

    def __str__(self) -> str:
        return "." * self.level + self.module


@dataclass
class Source:
    """A parsed file."""

    text: str
    path: str
    module: cst.Module
    positions: Mapping[cst.CSTNode, CodeRange]
    aliases: frozenset[str]
    direct: Mapping[str, str]
    imported: Mapping[str, Imported]

    def line(self, node: cst.CSTNode) -> int:
        """The line on which a node starts."""
        return self.positions[node].start.line

    def in_source(self, node: cst.CSTNode) -> SourceLocation:
        """Where a node starts."""
        start = self.positions[node].start
        return SourceLocation(self.path, start.line, start.column)

    def callee(self, node: cst.CSTNode) -> str | None:
        """The name of the function of Triton's language that a call calls, `advance` as a method of a pointer too."""
        return self._function(node) or ("advance" if self._is_method(node, self.made) else None)

    def _function(self, node: cst.CSTNode) -> str | None:
        if not isinstance(node, cst.Call):
            return None
        if isinstance(node.func, cst.Attribute):
            base = dotted(node.func.value)
            return node.func.attr.value if base in self.aliases else None
        return self.direct.get(node.func.value) if isinstance(node.func, cst.Name) else None

    def _is_method(self, node: cst.CSTNode, made: Set[str]) -> bool:
        """Whether a call is `p.advance(...)` of a name among `made`, or of a pointer that is made in place."""
        match node:
            case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="advance"))):
                if isinstance(value, cst.Name):
                    return value.value in made
                return self._function(value) in MAKERS or self._is_method(value, made)
            case _:
                return False

    @cached_property
    def made(self) -> frozenset[str]:
        """Names that are assigned what make_block_ptr or advance returns, anywhere in the file."""
        found: set[str] = set()
        if "make_block_ptr" not in self.text:
            return frozenset()
        assigned = [node for node in walk(self.module) if isinstance(node, cst.Assign)]
        while True:
            more = {
                name
                for node in assigned
                if any(self._function(part) in MAKERS or self._is_method(part, found) for part in walk(node.value))
                for target in node.targets
                for name in names_in(target.target)
            }
            if more <= found:
                return frozenset(found)
            found |= more

    def arguments(self, call: cst.Call) -> dict[str, cst.Arg] | None:
        """The arguments of one of the calls in `PARAMETERS` by name; of a method, what it is called on as well."""
        callee = self.callee(call) or ""
        if self._function(call) is None and isinstance(call.func, cst.Attribute):
            call = call.with_changes(args=[cst.Arg(call.func.value), *call.args])
        return keyword_of(call, PARAMETERS[callee])

    def language(self) -> str | None:
        """How this file writes Triton's language: `tl`."""
        return min(self.aliases & self._bound, key=lambda name: (len(name), name), default=None)

    @property
    def _bound(self) -> frozenset[str]:
        """The aliases that the file itself imports; `tl` stands for itself where somebody else brings it."""
        return frozenset(name for name in self.aliases if name in self.text)


def parse(text: str, path: str) -> Source:
    """Parse a file; MigrationError where it is no Python."""
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise _unreadable(text, path, error) from None
    wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    aliases, direct = _imports(module)
    return Source(text, path, module, positions, frozenset(aliases | {"tl"}), direct, _imported(module))


def _unreadable(text: str, path: str, error: cst.ParserSyntaxError) -> MigrationError:
    """The error for a file that does not parse; Python's own parser says best where and why."""
    line, column, found = error.raw_line, error.raw_column, error.message.partition("\n")[0]
    try:
        parsed(text)
    except SyntaxError as fault:
        line, column, found = fault.lineno or line, max((fault.offset or 1) - 1, 0), fault.msg
    lines = text.splitlines()
    location = SourceLocation(path, min(line, max(len(lines), 1)), column)
    source = lines[location.line - 1] if lines else ""
    return MigrationError("the file does not parse", found=found).at(location, source)


def _imports(module: cst.Module) -> tuple[set[str], dict[str, str]]:
    """The names of the language module, and names that are imported from it."""
    aliases: set[str] = set(LANGUAGES)
    direct: dict[str, str] = {}
    for statement in _small_statements(module):
        if isinstance(statement, cst.Import):
            for alias in statement.names:
                name = dotted(alias.name)
                if alias.asname is not None and name in LANGUAGES:
                    aliases.add(dotted(alias.asname.name) or "")
                elif alias.asname is not None and name in ("triton", "mltriton"):
                    aliases.add(f"{dotted(alias.asname.name)}.language")
        elif isinstance(statement, cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar):
            origin = dotted(statement.module) if statement.module is not None else None
            for alias in statement.names:
                bound = (dotted(alias.asname.name) if alias.asname else None) or dotted(alias.name) or ""
                if origin in LANGUAGES:
                    direct[bound] = dotted(alias.name) or ""
                elif origin in ("triton", "mltriton") and dotted(alias.name) == "language":
                    aliases.add(bound)
                elif dotted(alias.name) in ("tl", "triton_language"):
                    aliases.add(bound)  # a package passes it on
                elif dotted(alias.name) == "triton":
                    aliases.add(f"{bound}.language")
    return aliases, direct


def _imported(module: cst.Module) -> dict[str, Imported]:
    """Where imported names come from, by the name that a call writes: `f`, `m` or `package.m`."""
    found: dict[str, Imported] = {}
    for statement in _small_statements(module):
        if isinstance(statement, cst.Import):
            for alias in statement.names:
                name = dotted(alias.name) or ""
                found[dotted(alias.asname.name) or name if alias.asname is not None else name] = Imported(name, 0, None)
        elif isinstance(statement, cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar):
            origin = (dotted(statement.module) or "") if statement.module is not None else ""
            for alias in statement.names:
                name = dotted(alias.name) or ""
                bound = (dotted(alias.asname.name) if alias.asname is not None else None) or name
                found[bound] = Imported(origin, len(statement.relative), name)
    return found


def _small_statements(module: cst.Module) -> Iterator[cst.CSTNode]:
    for statement in module.body:
        for node in walk(statement) if isinstance(statement, cst.Try | cst.If | cst.SimpleStatementLine) else ():
            if isinstance(node, cst.Import | cst.ImportFrom):
                yield node


def functions_of(module: cst.Module) -> Iterator[cst.FunctionDef]:
    """Every function of a file, those inside others as well."""
    return (node for node in walk(module) if isinstance(node, cst.FunctionDef))
