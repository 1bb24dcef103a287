"""Rules that hold for the repository as a whole: import cost, docstrings, file sizes, words."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mltriton

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "examples", "docs", "typings", ".ci")
TEXT = {".py", ".pyi", ".md", ".mlir", ".toml", ".cfg", ".yml", ".yaml", ""}
FILES = sorted(
    path
    for path in [*ROOT.iterdir(), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    if path.is_file() and path.suffix in TEXT and path.name != ".git"
)
MODULES = [path for path in FILES if path.suffix in {".py", ".pyi"}]
HEAVY = ("llvmlite", "torch", "typer", "rich", "matplotlib", "xdsl", "numpy")
LONGEST_SOURCE = 400
LONGEST_FILE = 600
# Paths of somebody's machine; written in two parts so that this file does not hold them.
BANNED = re.compile("/" + r"(tmp|work|root|home)\b(?!/\.)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def loaded_after(statement: str) -> set[str]:
    """The modules in memory after a statement, in a fresh interpreter without site customisations."""
    program = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(result.stdout.split())


def test_import_loads_one_module_of_ours_and_no_library() -> None:
    loaded = loaded_after("import mltriton")
    assert {module for module in loaded if module.startswith("mltriton")} == {"mltriton"}
    assert not loaded.intersection(HEAVY)
    assert len(loaded) <= 12, sorted(loaded)


def test_errors_load_no_compiler() -> None:
    loaded = loaded_after("import mltriton; mltriton.CompilationError")
    assert {module for module in loaded if module.startswith("mltriton")} == {"mltriton", "mltriton.errors"}
    assert not loaded.intersection(HEAVY)


def test_public_names_are_listed_before_they_are_loaded() -> None:
    assert set(mltriton.__all__) <= set(dir(mltriton))
    assert {"jit", "autotune", "Config", "cdiv", "compile", "language", "testing"} <= set(mltriton.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'mltriton' has no attribute 'nothing'"):
        _ = mltriton.nothing


def test_modules_say_what_they_are() -> None:
    silent = [name(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert not silent, "every module starts with a docstring: its level, what it takes, what it guarantees"


def test_files_are_short() -> None:
    lines = {name(path): path.read_text(encoding="utf-8").count("\n") for path in FILES}
    most = {n: LONGEST_SOURCE if n.startswith("src/") else LONGEST_FILE for n in lines}
    assert {n: count for n, count in lines.items() if count > most[n]} == {}


def test_files_name_no_path_of_one_machine() -> None:
    found = {name(path): BANNED.search(path.read_text(encoding="utf-8")) for path in FILES}
    assert {n: match.group() for n, match in found.items() if match} == {}


def test_what_all_gpus_share_imports_none_of_them() -> None:
    shared = sorted((ROOT / "src" / "mltriton" / "targets" / "simt").glob("*.py"))
    target = re.compile(r"mltriton\.targets\.(xe|nvidia|cpu)\b")
    assert shared and not [name(path) for path in shared if target.search(path.read_text(encoding="utf-8"))]


def test_the_checks_see_the_sources() -> None:
    assert {"pyproject.toml", "README.md", "src/mltriton/errors.py", ".ci/run"} <= set(map(name, FILES))
