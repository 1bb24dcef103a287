"""Counting the instructions of a kernel for Xe: in all, and in its loops.

Level: assembly, as Intel's disassembler writes it. Guarantees: an innermost loop is one with no other loop inside; each
line that holds an instruction counts once. The numbers are those of the text, which says nothing of time.
"""

from __future__ import annotations

import re
from collections import Counter

from mltriton.records import NamedTuple

_LABEL = re.compile(r"^(\w+):")
_INSTRUCTION = re.compile(r"^\s*(?:\([^)]*\)\s+)?([a-z]\w*)(?=[.\s])")
_BACKWARD = re.compile(r"^\s*(?:\([^)]*\)\s+)?(?:jmpi|goto|while|brc|brd)\b.*?\b(L\d+)\b")
_MESSAGE = re.compile(r";\s*(\w+)")
SEND = "send"


class Instructions(NamedTuple):
    """A part of a kernel: how often it has each operation (`dpas`, `send`, `mov`, ...), and each message that it sends
    (`load_block2d`, `store`, ...; a load that keeps nothing is a `prefetch`).
    """

    operations: Counter[str]
    messages: Counter[str]

    @property
    def total(self) -> int:
        """All instructions."""
        return self.operations.total()


class Loop(NamedTuple):
    """A loop by its first and last line, counted from 0."""

    first: int
    last: int
    instructions: Instructions


def count(assembly: str) -> Instructions:
    """The instructions of a text."""
    return _count(assembly.splitlines())


def loops(assembly: str) -> list[Loop]:
    """All loops: from the target of each jump backwards to the jump, in the order in which they end."""
    lines = assembly.splitlines()
    labels = {match[1]: number for number, line in enumerate(lines) if (match := _LABEL.match(line))}
    found: list[Loop] = []
    for number, line in enumerate(lines):
        match = _BACKWARD.match(line)
        start = labels.get(match[1]) if match else None
        if start is not None and start < number:
            found.append(Loop(start, number, _count(lines[start : number + 1])))
    return found


def innermost_loops(assembly: str) -> list[Loop]:
    """The loops that have no other one inside."""
    every = loops(assembly)
    return [
        loop
        for loop in every
        if not any(other is not loop and loop.first <= other.first and other.last <= loop.last for other in every)
    ]


def _count(lines: list[str]) -> Instructions:
    operations: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    for line in lines:
        code, _, comment = line.partition("//")
        match = _INSTRUCTION.match(code)
        if match is None:
            continue
        operation = SEND if match[1].startswith(SEND) else match[1]
        operations[operation] += 1
        if operation == SEND and (message := _MESSAGE.search(comment)):
            messages[_message(code, message[1])] += 1
    return Instructions(operations, messages)


def _message(code: str, name: str) -> str:
    """The name of a message; loads whose result goes nowhere are prefetches."""
    return "prefetch" if name.startswith("load") and re.search(r"\)\s+null\b", code) else name
