"""Reading tokens of MLIR text at a position.

Level: all. Takes the text; every method that consumes a token also consumes the white space and comments after it, so
that `position` always stands at the next token. Errors are `IRSyntaxError` with file, line, column and the source
line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import NoReturn

from mltriton.errors import IRSyntaxError, SourceLocation

_SPACE = r"\s*(?://[^\n]*\s*)*"
_WORD = re.compile(r"([A-Za-z_][\w$.]*)" + _SPACE)
_SSA = re.compile(r"%([\w$.-]+(?:#\d+)?)" + _SPACE)
_INTEGER = re.compile(r"(-?(?:0x[0-9a-fA-F]+|\d+))" + _SPACE)
_NUMBER = re.compile(r"(-?(?:0x[0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\d+))" + _SPACE)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"' + _SPACE)
_ESCAPE = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)|\\(.)")
_ESCAPED = {"n": "\n", "t": "\t"}
_SYMBOL = re.compile(r"@([A-Za-z_$.][\w$.-]*)" + _SPACE)
_DIMENSIONS = re.compile(r"((?:\d+x)*)")
_FOLLOWS = re.compile(_SPACE)
_TOKEN = re.compile(r"[%@#!^]?[\w$.]+|->|\S|\Z")


class Scanner:
    """The text, the position in it, and what can be read there."""

    def __init__(self, text: str, filename: str = "<text>") -> None:
        self.text_read = text
        self.filename = filename
        self.position = 0
        self.skip()

    def skip(self, count: int = 0) -> None:
        """Consume `count` characters and the white space and comments after them."""
        found = _FOLLOWS.match(self.text_read, self.position + count)
        assert found is not None
        self.position = found.end()

    def at(self, text: str) -> bool:
        """Whether the text goes on with `text`."""
        return self.text_read.startswith(text, self.position)

    def accept(self, text: str) -> bool:
        """Consume `text` if it comes next."""
        if not self.text_read.startswith(text, self.position):
            return False
        self.skip(len(text))
        return True

    def expect(self, text: str) -> None:
        """Consume `text`."""
        if not self.accept(text):
            self.fail(f"expected `{text}`")

    def at_word(self, word: str) -> bool:
        """Whether the next word is `word`."""
        found = _WORD.match(self.text_read, self.position)
        return found is not None and found[1] == word

    def accept_word(self, word: str) -> bool:
        """Consume `word` if it is the next word."""
        found = self.at_word(word)
        if found:
            self.skip(len(word))
        return found

    def expect_word(self, word: str) -> None:
        """Consume the word `word`."""
        if not self.accept_word(word):
            self.fail(f"expected `{word}`")

    def word(self, what: str = "a name") -> str:
        """Consume an identifier."""
        return self._match(_WORD, what)

    def one_of(self, words: Sequence[str]) -> str:
        """Consume one of the given words."""
        start = self.position
        word = self.word("one of " + ", ".join(words))
        if word not in words:
            self.fail(f"unknown keyword `{word}`", at=start, expected="one of " + ", ".join(words), found=f"`{word}`")
        return word

    def value_name(self) -> str:
        """Consume `%name` or `%name#1`; the name without the percent sign."""
        return self._match(_SSA, "a value (%name)")

    def integer(self) -> int:
        """Consume an integer, decimal or hexadecimal."""
        start = self.position
        return self.integer_of(self._match(_INTEGER, "an integer"), start)

    def integer_of(self, token: str, start: int) -> int:
        """The value of an integer's text, which stands at `start`."""
        try:
            return int(token, 16 if "x" in token else 10)
        except ValueError:  # Python reads some thousand digits at most.
            self.fail("the integer has too many digits", at=start)

    def number_token(self) -> str:
        """Consume an integer or a decimal fraction; its text."""
        return self._match(_NUMBER, "a number")

    def at_number(self) -> bool:
        """Whether a number comes next."""
        return _NUMBER.match(self.text_read, self.position) is not None

    def string(self) -> str:
        """Consume a string in quotes."""
        return _ESCAPE.sub(_unescape, self._match(_STRING, "a string"))

    def symbol(self) -> str:
        """Consume `@name` or `@"any name"`."""
        if self.at('@"'):
            self.position += 1
            return self.string()
        return self._match(_SYMBOL, "a symbol (@name)")

    def dimensions(self) -> tuple[int, ...]:
        """Consume `128x64x` in front of an element type."""
        if self.at("?"):
            self.fail("dynamic sizes are not supported")
        found = _DIMENSIONS.match(self.text_read, self.position)
        assert found is not None
        start, self.position = self.position, found.end()
        return tuple(self.integer_of(size, start) for size in found[1].split("x")[:-1])

    def skip_angles(self) -> str:
        """Consume `<...>` with everything nested in it; its text."""
        start = self.position
        depth = 0
        for found in re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>]').finditer(self.text_read, start):
            depth += {"<": 1, ">": -1}.get(found[0], 0)
            if depth == 0:
                self.position = found.end()
                self.skip()
                return self.text_read[start : found.end()]
        raise self.error("expected `<...>`", at=start)

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        found = pattern.match(self.text_read, self.position)
        if found is None:
            self.fail(f"expected {what}")
        self.position = found.end()
        return found[1]

    def fail(
        self, message: str, at: int | None = None, expected: str | None = None, found: str | None = None
    ) -> NoReturn:
        """Raise an `IRSyntaxError` at a position (the current one when none is given)."""
        raise self.error(message, at, expected, found)

    def error(
        self, message: str, at: int | None = None, expected: str | None = None, found: str | None = None
    ) -> IRSyntaxError:
        """An error at a position."""
        position = self.position if at is None else at
        location = self.in_source(position)
        source = self.text_read[self._lines[location.line - 1] :].split("\n", 1)[0]
        if found is None and expected is None:
            token = _TOKEN.search(self.text_read, position)
            found = f"`{token[0]}`" if token and token[0] else "the end of the text"
        return IRSyntaxError(message, location=location, source=source, expected=expected, found=found)

    def in_source(self, position: int) -> SourceLocation:
        """File, line and column of a position."""
        line = bisect_right(self._lines, position)
        return SourceLocation(self.filename, line, position - self._lines[line - 1])

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text_read))]


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        return bytes.fromhex(found[1].replace("\\", "")).decode()
    return _ESCAPED.get(found[2], found[2])
