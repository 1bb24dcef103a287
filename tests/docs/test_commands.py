"""The commands that the documentation shows are there, and so are their options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_group

from mltriton.commands import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`mltriton ([a-z]+)([^`]*)`")
LINE = re.compile(r"^ *(?:\$ )?mltriton ([a-z]+)([^#\n]*)", re.MULTILINE)
COMMANDS = get_group(app).commands


def calls_in(text: str) -> list[tuple[str, str]]:
    """Commands and what follows them, in blocks of code and between backticks."""
    return [*INLINE.findall(FENCED.sub("", text)), *LINE.findall("\n".join(FENCED.findall(text)))]


CALLS = [(page.name, name, rest) for page in PAGES for name, rest in calls_in(page.read_text(encoding="utf-8"))]


def test_commands_are_shown() -> None:
    assert len(CALLS) > 50
    assert {name for _, name, _ in CALLS} == COMMANDS.keys()


@pytest.mark.parametrize(("page", "name", "rest"), dict.fromkeys(CALLS), ids=lambda text: str(text).strip() or "-")
def test_options_that_are_shown_are_there(page: str, name: str, rest: str) -> None:
    known = {flag for parameter in COMMANDS[name].params for flag in (*parameter.opts, *parameter.secondary_opts)}
    words = [word for word in shlex.split(rest) if re.match(r"--?[a-z]", word)]
    assert name == "run" or not set(words) - known - {"--help"}, page
