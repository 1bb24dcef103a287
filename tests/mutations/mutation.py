"""Planted mistakes: a text of a source file, what stands there instead, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


class StaleMutationError(Exception):
    """The text that a mutation replaces does not stand in its file once."""


@dataclass(frozen=True)
class Mutation:
    """In `file` (below src/mltriton) `old`, which stands there once, becomes `new`; `why` that is wrong; `tests` are
    the arguments of pytest that notice, below tests/, where the module `needs` is installed.
    """

    file: str
    old: str
    new: str
    why: str
    tests: str
    needs: str = ""

    @property
    def path(self) -> str:
        """The file below src."""
        return f"mltriton/{self.file}"

    @property
    def is_testable(self) -> bool:
        """Whether what the tests need is installed."""
        return not self.needs or find_spec(self.needs) is not None

    @property
    def selection(self) -> list[str]:
        """The arguments of pytest."""
        return [word if word.startswith("-") else f"tests/{word}" for word in self.tests.split()]

    def applied(self, source: Path = SOURCE) -> str:
        """The text of the file with the mistake. Raises `StaleMutationError`."""
        text = (source / self.path).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1 or self.old == self.new:
            raise StaleMutationError(
                f"{self.path} has {count} times, not once, what is to become {self.new!r}:\n{self.old}"
            )
        return text.replace(self.old, self.new)
