"""The text and the syntax tree of a kernel, with the locations of its nodes in the user's file.

Level: above `tt`. Takes a Python function; guarantees that every node has the line and column it has in the file, so
that errors and locations need no translation. The lines are remembered when the function is decorated (a reference, no
copy), so that a file edited later does not matter, and one edited before is noticed.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Sequence
from functools import cached_property
from tokenize import TokenError
from types import CodeType
from typing import Any, cast

from mltriton.errors import NestingError, SourceLocation, SyntaxNotSupportedError
from mltriton.frontend.syntax import parsed
from mltriton.ir.location import FileLoc


class FunctionSource:
    """Where a Python function is written.

    `file`, `first_line` (of its decorators, from 1), and on demand `text` and `tree`.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        code = fn.__code__
        self.name = fn.__name__
        self.file = code.co_filename
        self.first_line = code.co_firstlineno
        self._code = code
        self._is_of_file = True
        self._lines = linecache.getlines(self.file, fn.__globals__)

    @cached_property
    def text(self) -> str:
        """The function's lines, decorators included, indented as in the file.

        SyntaxNotSupportedError where the file cannot be read or was edited since Python read it, and for a lambda.
        """
        if self.name == "<lambda>":
            raise SyntaxNotSupportedError(
                "a lambda cannot be a kernel", location=self._start, hint="Write a function with def, and decorate it."
            )
        lines = self._lines[self.first_line - 1 :]
        if not lines:
            raise SyntaxNotSupportedError(
                f"the source of {self.name} cannot be read",
                found=f"{self.file}, line {self.first_line}",
                hint="A kernel is compiled from its text: write it to a file or a notebook cell, not through exec.",
            )
        end = _last_line(self._code)
        known = 0 if end is None else end - self.first_line + 1
        if known > len(lines) or not lines[0].lstrip().startswith(("@", "def", "async")):
            raise self._edited()
        try:
            return "".join(_block(lines, known))
        except (SyntaxError, TokenError):
            raise self._edited() from None

    @property
    def undecorated(self) -> str:
        """The text from `def` on, not indented: what another program may compile anew."""
        lines = textwrap.dedent(self.text).splitlines(keepends=True)
        return "".join(lines[self.tree.lineno - self.first_line :])

    def replace(self, text: str) -> None:
        """Take `text` for the function's, at the same location."""
        self._lines = [*[""] * (self.first_line - 1), *text.splitlines(keepends=True)]
        self.__dict__["text"] = text
        self._is_of_file = False
        self.__dict__.pop("tree", None)

    def move_to(self, line: int) -> None:
        """Say that the text begins at a line of its file."""
        text, self.first_line = self.text, line
        self.replace(text)

    @cached_property
    def tree(self) -> ast.FunctionDef:
        """The syntax tree, with the lines and columns of the file."""
        indented = self.text[:1].isspace()
        # A function in an indented place becomes the body of an `if`, which keeps its columns and its strings
        # as they are. Empty lines before it are parsed faster than each node's line is changed.
        head = "if True:\n" if indented else ""
        module = self._parse("\n" * (self.first_line - 1 - head.count("\n")) + head + self.text)
        top = module.body[0]
        node = top.body[0] if isinstance(top, ast.If) else top
        if not isinstance(node, ast.FunctionDef):
            kind = (
                "an async function"
                if isinstance(node, ast.AsyncFunctionDef)
                else "no function that is written with def"
            )
            raise SyntaxNotSupportedError(f"{self.name} is {kind}", location=self.in_source(node))
        if self._is_of_file and not _may_be_of(module, self._code):
            raise self._edited()
        return node

    def _parse(self, text: str) -> ast.Module:
        try:
            return parsed(text, self.file)
        except SyntaxError:
            raise self._edited() from None
        except MemoryError:
            message = f"Python's parser cannot follow the text of {self.name}: it is nested too deep"
            raise NestingError(message, location=self._start) from None

    @property
    def _start(self) -> SourceLocation:
        return SourceLocation(self.file, self.first_line, 0)

    def _edited(self) -> SyntaxNotSupportedError:
        return SyntaxNotSupportedError(
            f"the text of {self.name} in its file is not what Python runs",
            location=self._start,
            hint="The file was edited while it was being imported: import it again.",
        )

    def in_source(self, node: ast.AST) -> SourceLocation:
        """Where a node is; the column counts characters."""
        line, column = getattr(node, "lineno", self.first_line), getattr(node, "col_offset", 0)
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="ignore"))
        return SourceLocation(self.file, line, column)

    def line(self, location: SourceLocation) -> str | None:
        """The text of the line of a location."""
        return self._lines[location.line - 1] if 0 < location.line <= len(self._lines) else None

    def location(self, node: ast.AST) -> FileLoc:
        """Where a node is, for the IR."""
        location = self.in_source(node)
        return FileLoc(location.file, location.line, location.column)


def _block(lines: Sequence[str], known: int) -> Sequence[str]:
    """The lines of a function whose first `known` lines belong to it, up to the first line that is indented no deeper.

    What the byte code does not show can only be at the end: comments, dead code, declarations. (`inspect.getblock`
    finds the end from the tokens, which takes a hundred times as long: it is asked where no line of the body is known.)
    """
    margin = _indentation(lines[0])
    if known == 0 or _indentation(lines[known - 1]) <= margin:
        return inspect.getblock(lines)
    end = known
    for index in range(known, len(lines)):
        if lines[index].strip():
            if _indentation(lines[index]) <= margin:
                if lines[index].lstrip()[0] in ")]}":  # Of the last statement, indented as nobody does.
                    return inspect.getblock(lines)
                break
            end = index + 1
    return lines[:end]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def _may_be_of(module: ast.Module, code: CodeType) -> bool:
    """Whether byte code may come from a text: whether it has all of the text's names and constants, and the arguments.

    It may have more, where what imported the file rewrites it (as pytest does assertions).
    """
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    inner = [constant for constant in compiled.co_consts if isinstance(constant, CodeType)]
    own = next((constant for constant in inner if constant.co_name == code.co_name), None)
    if own is None:  # Python wraps it in a scope of type parameters.
        return True
    arguments = slice(own.co_argcount + own.co_kwonlyargcount)
    same_arguments = own.co_varnames[arguments] == code.co_varnames[arguments]
    return same_arguments and _vocabulary(own) <= _vocabulary(code)


def _vocabulary(code: CodeType) -> set[str]:
    """The names and constants in byte code. (A private name is another one inside a class.)"""
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    found = {name for name in names if "__" not in name}
    for constant in code.co_consts:
        found |= _vocabulary(constant) if isinstance(constant, CodeType) else _text_of(constant)
    return found


def _text_of(constant: object) -> set[str]:
    return (
        {repr(item) for item in cast("frozenset[object]", constant)}
        if isinstance(constant, frozenset)
        else {repr(constant)}
    )


def _last_line(code: CodeType) -> int | None:
    """The last line that the byte code of a function comes from; None where Python keeps no positions."""
    ends = [end for _, end, _, _ in code.co_positions()]
    if None in ends:
        return None
    inner = [_last_line(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return max(end for end in (*ends, *inner) if end is not None)
