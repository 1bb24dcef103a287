"""Links of the documentation lead somewhere, files, folders and passes that it names are there, and its prose keeps to
120 columns.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mltriton.passes.registry import PASSES

ROOT = Path(__file__).parents[2]
DOCUMENTS = {str(path.relative_to(ROOT)): path for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))]}
# The contracts and what they point to; tables and blocks of code may be wider.
NARROW = [
    f"docs/{name}.md" for name in ("architecture", "cpu", "gpu", "nvidia", "measurements", "measurements-nvidia", "xe")
]
OTHERS = ("docs/libraries.md", "docs/migrate.md")  # they name files of other people's programs
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
NAMED = re.compile(r"`([\w./]+\.(?:py|mlir|md|ll|sh)|[\w./]+/)`")
IN_DOCSTRING = re.compile(r"`([\w./]+\.(?:py|mlir|md|ll|sh))`")
TOPS = [ROOT / folder for folder in ("src", "tests", "docs", "scripts", "examples", "benchmarks")]
FILES = [path for top in TOPS for path in [top, *top.rglob("*")]]
PASS = re.compile(r"`([a-z]+(?:-[a-z]+)+)`")
NO_PASSES = {"spirv-val"}
INLINE = re.compile(r"`[^`\n]*`")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def prose(path: Path) -> str:
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """Headings as GitHub names them in links."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    path = DOCUMENTS[name]
    for target, anchor in LINK.findall(INLINE.sub("", prose(path))):
        there = path.parent / target if target else path
        assert there.exists(), f"{name} links to {target}"
        assert not anchor or anchor in anchors(there), f"{name} links to {target}#{anchor}"


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in OTHERS])
def test_files_that_are_named_are_there(name: str) -> None:
    files = [str(path.relative_to(ROOT)) + "/" * path.is_dir() for path in FILES]
    known = {"/" + file for file in [*files, *DOCUMENTS]}
    missing = [
        named for named in NAMED.findall(prose(DOCUMENTS[name])) if not any(k.endswith("/" + named) for k in known)
    ]
    assert not missing


@pytest.mark.parametrize("name", NARROW)
def test_lines_are_short(name: str) -> None:
    wide = [line for line in prose(DOCUMENTS[name]).splitlines() if len(line) > 120 and not line.startswith("|")]
    assert not wide


def test_files_that_docstrings_name_are_there() -> None:
    known = ["/" + str(path.relative_to(ROOT)) for path in FILES]
    modules = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    named = [(at, file) for at, text in modules.items() for file in IN_DOCSTRING.findall(text.split('"""')[1])]
    assert len(named) > 100
    assert not [(at, file) for at, file in named if not any(path.endswith("/" + file) for path in known)]


def test_what_the_architecture_names_is_where_it_says() -> None:
    named = NAMED.findall(prose(DOCUMENTS["docs/architecture.md"]))
    paths = [path for path in named if "/" in path]
    assert len(paths) > 40
    assert not [path for path in paths if not any((ROOT / top / path).exists() for top in ("", "src/mltriton"))]


def test_the_architecture_lists_every_folder() -> None:
    block = DOCUMENTS["docs/architecture.md"].read_text(encoding="utf-8").split("## The folders")[1].split("```")[1]
    lines = re.findall(r"^  ((?:\w+/)(?:, \w+/)*)", block, re.MULTILINE)
    listed = {folder.strip("/") for line in lines for folder in line.split(", ")}
    there = {path.parent.name for path in (ROOT / "src" / "mltriton").glob("*/__init__.py")}
    assert listed == there


@pytest.mark.parametrize("name", [f"docs/{name}.md" for name in ("architecture", "cpu", "gpu", "xe", "nvidia")])
def test_passes_that_are_named_are_there(name: str) -> None:
    named = set(PASS.findall(prose(DOCUMENTS[name]))) - NO_PASSES
    assert named
    assert named <= PASSES.keys()
