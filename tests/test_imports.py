"""The graph of imports: arrows point down, nothing goes round, and what is imported late says why."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import mltriton

SOURCES = Path(mltriton.__file__).parent
# What each folder may import besides itself; `errors` and `records` are everybody's. A folder that is not here may
# import anything but what is only for the command line.
BELOW: Mapping[str, set[str]] = {
    "errors": {"ir"},
    "ir": {"layouts"},
    "layouts": {"ir"},
    "dialects": {"ir", "layouts"},
    "analysis": {"ir", "layouts", "dialects", "targets"},
    "passes": {"ir", "layouts", "dialects", "analysis", "targets", "runtime"},
    "executor": {"ir", "layouts", "dialects", "analysis", "targets", "runtime"},
    "language": {"ir", "dialects", "frontend", "runtime"},
    "frontend": {"ir", "dialects", "language", "runtime"},
    "targets": {"ir", "layouts", "dialects", "analysis", "executor", "frontend", "runtime"},
}
FOR_THE_COMMAND_LINE = {"tools", "commands", "cli"}
DOORS = {"as_triton", "__main__"}  # Other ways in.


def module_of(path: Path) -> str:
    parts = ["mltriton", *path.relative_to(SOURCES).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {module_of(path): path for path in sorted(SOURCES.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(PATHS[module].read_text(encoding="utf-8"))


def imported(node: ast.AST) -> Iterator[str]:
    """The modules of ours that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in PATHS)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "mltriton" and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in PATHS else str(node.module) for name in names)


def statements(node: ast.AST, late: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Every import below a node but those for type checkers, and whether it stands in a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from statements(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))


def folder_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


@cache
def imports_of(module: str) -> tuple[tuple[ast.stmt, bool, tuple[str, ...]], ...]:
    """The imports of ours in a module: each with whether it stands in a function, and the modules it names."""
    found = ((statement, late, tuple(imported(statement))) for statement, late in statements(tree_of(module)))
    return tuple(item for item in found if item[2])


def edges(*, late: bool = True) -> Iterator[tuple[str, str]]:
    for module in PATHS:
        for _, is_late, targets in imports_of(module):
            if late or not is_late:
                yield from ((module, target) for target in targets)


def test_arrows_point_down() -> None:
    assert sum(1 for _ in edges()) > 1000
    wrong = [
        f"{module} imports {target}"
        for module, target in edges()
        if folder_of(module) in BELOW
        and folder_of(target) not in BELOW[folder_of(module)] | {folder_of(module), "errors", "records", "tracebacks"}
    ]
    assert not wrong


def test_nothing_imports_what_is_for_the_command_line() -> None:
    wrong = [
        f"{module} imports {target}"
        for module, target in edges()
        if folder_of(module) not in FOR_THE_COMMAND_LINE | DOORS and folder_of(target) in FOR_THE_COMMAND_LINE
    ]
    assert not wrong


def test_imports_at_the_top_never_go_round() -> None:
    left: dict[str, set[str]] = {module: set() for module in PATHS}
    for module, target in edges(late=False):
        left[module].add(target)
    while ready := [module for module, targets in left.items() if not targets & left.keys() - {module}]:
        for module in ready:
            del left[module]
    assert not left, f"imports go round among {sorted(left)}"


def test_a_late_import_says_why() -> None:
    """On its line or the one before, for those that follow it, too; or once, where a docstring speaks of imports."""
    silent: list[str] = []
    for module in PATHS:
        if "import" in (ast.get_docstring(tree_of(module)) or ""):
            continue
        lines = PATHS[module].read_text(encoding="utf-8").split("\n")
        said = 0  # the line after the last import that says why
        for statement, late, _ in imports_of(module):
            first, last = statement.lineno, statement.end_lineno or statement.lineno
            if not late or "#" in "".join(lines[max(0, first - 2) : last]) or first == said:
                said = last + 1
            else:
                silent.append(f"{module}: {lines[first - 1].strip()}")
    assert not silent
