"""Which line of the new text stands for a line of the old one, and the other way round.

Level: source text. Lines that are the same are exact; in a stretch that changed, constructors of block pointers and
of descriptors belong together in their order where there are as many, other lines by their number in the stretch.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from mltriton.tools.migrate.result import Note, Result

_OLD, _NEW = "make_block_ptr", "make_tensor_descriptor"


class Lines:
    """The lines of one file before and after; they count from 1."""

    def __init__(self, result: Result) -> None:
        old, new = result.source.splitlines(), result.text.splitlines()
        self._new: dict[int, int] = {}
        self._old: dict[int, int] = {}
        for _, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            self._new |= {line + 1: _proportional(line, i, j, k, m) for line in range(i, j)}
            self._old |= {line + 1: _proportional(line, k, m, i, j) for line in range(k, m)}
            for before, after in _constructors(old, new, range(i, j), range(k, m)):
                self._new[before], self._old[after] = after, before
        self._last = max(len(old), 1), max(len(new), 1)

    def new(self, line: int) -> int:
        """The line in the new text."""
        return self._new.get(line, min(line, self._last[1]))

    def old(self, line: int) -> int:
        """The line in the old text."""
        return self._old.get(line, min(line, self._last[0]))


def located(result: Result) -> list[Note]:
    """The notes of a file by line, each with its line in the new text."""
    if not result.changed:
        return sorted(replace(note, new_line=note.line) for note in result.notes)
    lines = Lines(result)
    return sorted(note if note.new_line else replace(note, new_line=lines.new(note.line)) for note in result.notes)


def _proportional(line: int, i: int, j: int, k: int, m: int) -> int:
    """Line `line` of stretch `i` to `j` in stretch `k` to `m`."""
    return min(k + (line - i) * max(m - k, 1) // max(j - i, 1), max(m - 1, k)) + 1


def _constructors(old: Sequence[str], new: Sequence[str], before: range, after: range) -> list[tuple[int, int]]:
    first = [line + 1 for line in before if _OLD in old[line]]
    second = [line + 1 for line in after if _NEW in new[line]]
    return list(zip(first, second, strict=True)) if len(first) == len(second) else []
