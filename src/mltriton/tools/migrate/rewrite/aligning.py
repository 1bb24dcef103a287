"""Continuation lines that stood under what follows a bracket stand there again after the text before it changed.

Level: source text, one simple statement. Guarantees: only white space at the start of lines changes, and only where all
such lines of the old statement were aligned.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator

from mltriton.tools.migrate.read.syntax import code_of, cst

_OPEN, _CLOSE = "([{", ")]}"


def realigned(old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> cst.SimpleStatementLine:
    """The new statement, aligned as the old one was."""
    before, after = (code_of(each.with_changes(leading_lines=[])) for each in (old, new))
    if "\n" not in after.strip() or not _is_aligned(before):
        return new
    text = _aligned(after)
    if text == after:
        return new
    made = cst.parse_statement(text)
    return made.with_changes(leading_lines=new.leading_lines) if isinstance(made, cst.SimpleStatementLine) else new


def _is_aligned(text: str) -> bool:
    """Whether a statement has continuation lines in brackets with content, all of them under that."""
    lines = [(column, wanted) for _, column, wanted in _continued(text)]
    return bool(lines) and all(column == wanted for column, wanted in lines)


def _aligned(text: str) -> str:
    lines = text.splitlines(keepends=True)
    for _ in lines:  # the brackets of a line move with it: from the first to the last
        wrong = next(((row, wanted) for row, column, wanted in _continued("".join(lines)) if column != wanted), None)
        if wrong is None:
            break
        row, wanted = wrong
        lines[row] = " " * wanted + lines[row].lstrip()
    return "".join(lines)


def _continued(text: str) -> Iterator[tuple[int, int, int]]:
    """Continuation lines in brackets that are followed by something: number from 0, column, and the bracket's content's
    column.
    """
    stack: list[int | None] = []
    tokens = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.string or each.type == 4]
    row = 0
    for index, token in enumerate(tokens):
        first = token.start[0] - 1 > row and token.type not in (tokenize.NL, tokenize.NEWLINE)
        if first and stack and stack[-1] is not None and token.string not in _CLOSE:
            yield token.start[0] - 1, token.start[1], stack[-1]
        if first:
            row = token.start[0] - 1
        if token.type == tokenize.OP and token.string in _OPEN:
            follower = tokens[index + 1]
            hanging = follower.type in (tokenize.NL, tokenize.COMMENT)
            stack.append(None if hanging else follower.start[1])
        elif token.type == tokenize.OP and token.string in _CLOSE and stack:
            stack.pop()
        if token.type == tokenize.STRING and token.end[0] > token.start[0]:
            row = token.end[0] - 1
