"""The Python blocks of the documentation run, one after the other in one namespace a document, and print what it says.

A block fenced as `python` runs; fence one that cannot as anything else (`py`, `text`). A block fenced as `output` right
after it is what it prints, with `...` for anything. Code keeps the file and the lines of the document: an error, in a
kernel too, names the line there.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import textwrap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^(?P<margin> *)```(?P<kind>[^\n]*)\n(?P<text>.*?)^(?P=margin)``` *$", re.MULTILINE | re.DOTALL)
CHECKER = doctest.OutputChecker()


@dataclass(frozen=True)
class Example:
    """A block of code, padded with empty lines up to its own, and what it should print (None: not said)."""

    code: str
    line: int
    output: str | None


def examples_of(text: str) -> list[Example]:
    blocks = list(FENCED.finditer(text))
    found: list[Example] = []
    for block, after in pairwise([*blocks, None]):
        assert block is not None
        if block["kind"] == "python":
            line = text.count("\n", 0, block.start("text"))
            shown = after is not None and after["kind"] == "output" and not text[block.end() : after.start()].strip()
            output = textwrap.dedent(after["text"]) if after is not None and shown else None
            found.append(Example("\n" * line + textwrap.dedent(block["text"]), line, output))
    return found


def run(example: Example, path: Path, namespace: dict[str, Any]) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example.code, str(path), "exec"), namespace)
    found = printed.getvalue()
    if example.output is not None and not CHECKER.check_output(example.output, found, doctest.ELLIPSIS):
        pytest.fail(f"{path.name}:{example.line} prints\n{found}\ninstead of\n{example.output}", pytrace=False)


DOCUMENTS = {path.name: path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]}
WITH_CODE = [name for name, path in DOCUMENTS.items() if examples_of(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("name", WITH_CODE)
def test_the_code_of_a_document_runs(
    name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("docs")
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(folder / "cache"))
    monkeypatch.chdir(folder)
    namespace: dict[str, Any] = {"__name__": name}
    for example in examples_of(DOCUMENTS[name].read_text(encoding="utf-8")):
        run(example, DOCUMENTS[name], namespace)


def test_the_examples_are_found() -> None:
    assert {"README.md", "language-extensions.md"} <= set(WITH_CODE)
    text = "a\n```python\nx = 1\n```\n\n```output\n```\n- b\n  ```python\n  y = x\n  ```\n\nc\n\n```output\nz\n```\n"
    assert examples_of(text) == [Example("\n\nx = 1\n", 2, ""), Example("\n" * 9 + "y = x\n", 9, None)]


def test_a_wrong_output_is_found() -> None:
    (example,) = examples_of("```python\nprint(1, 2, 3)\n```\n```output\n1 ... 4\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"prints\n1 2 3\n\ninstead of\n1 \.\.\. 4"):
        run(example, Path("page.md"), {})
