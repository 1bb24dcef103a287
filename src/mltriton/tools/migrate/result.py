"""What a migration gives: the new text, what changed, and what did not and why.

Level: source text. Plain data: lines count from 1 in the old text. Imports nothing of LibCST.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mltriton.errors import CompilationError, OptionError
from mltriton.records import NamedTuple

FORMS = ("auto", "descriptor", "pointer")
TARGETS = ("xe", "nvidia", "any")


class MigrationError(CompilationError):
    """A file that cannot be migrated: it does not parse, or the migrated kernel does not do the same."""


class MissingExtraError(CompilationError):
    """The libraries of the extra `migrate` are not installed."""


@dataclass(frozen=True)
class Options:
    """`to`: which form to write; `target`: whose rules of alignment a descriptor must keep."""

    to: str = "auto"
    target: str = "xe"

    def __post_init__(self) -> None:
        for name, value, known in (("to", self.to, FORMS), ("target", self.target, TARGETS)):
            if value not in known:
                raise OptionError(f"--{name} has no value {value!r}", expected=" | ".join(known))


@dataclass(frozen=True, order=True)
class Note:
    """Something to know at a line. `kind` is a key of `NOTE_KINDS`; `new_line` is 0 where it was not looked up.

    `text` is one line; `detail`, which may be empty, is what `--explain` adds.
    """

    line: int
    kind: str
    text: str
    new_line: int = 0
    detail: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


class Site(NamedTuple):
    """A call that was rewritten. `column` is -1 where only the line is known."""

    line: int
    column: int
    kind: str  # make_block_ptr, advance, load or store


# What kinds of notes there are, and under which heading a report shows them.
NOTE_KINDS: Mapping[str, str] = {
    "change": "Changes made",
    "condition": "Changes made",
    "annotation": "Changes made",
    "performance": "Performance note",
    "caller": "Caller-affecting changes",
    "unresolved": "Left as it was",
}


@dataclass
class Result:
    """One file: `text` is the new source (the old one where nothing changed)."""

    source: str
    text: str
    path: str = "<source>"
    notes: list[Note] = field(default_factory=list[Note])
    counts: Counter[str] = field(default_factory=Counter[str])
    kernels: list[str] = field(default_factory=list[str])
    sites: dict[str, list[Site]] = field(default_factory=dict[str, list[Site]])  # by function, at the old text's lines
    contract: str | None = None  # the old kernels, checking what they had to keep inside a shape by themselves
    # The files that were changed together with this one: source, text and contract.
    beside: dict[str, tuple[str, str, str]] = field(default_factory=dict[str, tuple[str, str, str]])

    @property
    def changed(self) -> bool:
        """Whether there is anything to write."""
        return self.text != self.source

    @property
    def unresolved(self) -> list[Note]:
        """What was left as it was."""
        return self.of_kind("unresolved")

    @property
    def changes(self) -> list[Note]:
        """What was done, in the order of the file."""
        return self.of_kind("change")

    def of_kind(self, *kinds: str) -> list[Note]:
        """The notes of these kinds, by line."""
        return sorted(note for note in self.notes if note.kind in kinds)


def total(results: Iterable[Result]) -> Counter[str]:
    """The counts of several files together."""
    found: Counter[str] = Counter()
    for result in results:
        found.update(result.counts)
    return found
