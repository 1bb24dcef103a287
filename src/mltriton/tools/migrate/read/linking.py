"""Which of the given files must be migrated together: those that pass block pointers to helpers of others.

Level: source text. A quick look with Python's own parser, before any file is taken apart: too many links cost time, a
missing one would leave a call with a note.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mltriton.frontend.syntax import parsed
from mltriton.tools.migrate.read.callers import module_files
from mltriton.tools.migrate.read.parse import Imported

_MADE = "make_block_ptr"
_FUNCTION = re.compile(r"\bjit\b[^\n]*\n(?:[ \t]*@[^\n]*\n)*[ \t]*def (\w+)")


def linked(texts: Mapping[Path, str]) -> list[list[Path]]:
    """The files in groups, each in the order in which they were given."""
    by_path = {path.resolve(): path for path in texts}
    group = {path: [path] for path in texts}
    for path, text in texts.items():
        for name, module in _helpers(text) if _MADE in text else ():
            defined = next((by_path[file] for file in _files(module, path) if file in by_path), None)
            if defined is None:
                continue
            # Whoever mentions the helper may call it; where a package passes it on, its file need not be named.
            for other in _mentioning(name, "" if defined.stem == "__init__" else defined.stem, texts):
                if group[other] is not group[path]:
                    merged = [*group[path], *group[other]]
                    group |= dict.fromkeys(merged, merged)
    order = list(texts)
    return [sorted(each, key=order.index) for each in {id(each): each for each in group.values()}.values()]


def launchers(group: Sequence[Path], texts: Mapping[Path, str]) -> dict[str, str]:
    """The other files that speak of functions with block pointers: they may launch them."""
    names = {name for path in group if _MADE in texts[path] for name in _FUNCTION.findall(texts[path])}
    if not names:
        return {}
    word = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b")
    return {str(path): text for path, text in texts.items() if path not in group and word.search(text)}


def _helpers(text: str) -> Iterator[tuple[str, Imported | None]]:
    """The functions to which a file passes block pointers: their names, and from where it has them."""
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError):
        return
    nodes = list(ast.walk(tree))
    made = {name for node in nodes if isinstance(node, ast.Assign) and _makes(node.value) for name in _names(node)}
    called = {
        node.func
        for node in nodes
        if isinstance(node, ast.Call) and any(_is_made(each, made) for each in _arguments(node))
    }
    names = {ast.unparse(func) for func in called}
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    imported = _imported(nodes)
    for name in sorted(names):
        base, _, last = name.rpartition(".")
        if name in own:
            yield name, None
        yield from (
            (module.name if module.name and not base else last, module) for module in imported.get(base or name, ())
        )


def _files(module: Imported | None, path: Path) -> Iterator[Path]:
    """Where a helper may be defined: its module's files, or the file that calls it."""
    return module_files(module, path.resolve()) if module is not None else iter([path.resolve()])


def _mentioning(name: str, stem: str, texts: Mapping[Path, str]) -> Iterator[Path]:
    word = re.compile(rf"\b{re.escape(name)}\b")
    for path, text in texts.items():
        if (path.stem == stem or stem in text) and word.search(text):
            yield path


def _arguments(call: ast.Call) -> Sequence[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_made(node: ast.expr, made: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in made) or _makes(node)


def _makes(node: ast.expr) -> bool:
    """Whether a value is a new block pointer, or has one."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name == _MADE
        case ast.IfExp():
            return _makes(node.body) or _makes(node.orelse)
        case ast.Tuple() | ast.List():
            return any(map(_makes, node.elts))
        case _:
            return False


def _names(node: ast.Assign) -> Iterator[str]:
    return (each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name))


def _imported(nodes: Sequence[ast.AST]) -> dict[str, tuple[Imported, ...]]:
    """The modules that a name may come from: `from a import b` may mean the module b."""
    found: dict[str, tuple[Imported, ...]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = (Imported(alias.name, 0, None),)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                module = node.module or ""
                inner = f"{module}.{alias.name}".strip(".")
                found[alias.asname or alias.name] = (
                    Imported(inner, node.level, None),
                    Imported(module, node.level, alias.name),
                )
    return found
