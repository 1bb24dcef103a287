"""Python's parser, whatever other threads do.

Level: above `tt`. Takes a program's text, gives its syntax tree or the parser's own errors. CPython 3.11 counts how
deep a tree is in one place for all threads: where another one parses while a finalizer runs, the count does not come
out even, which is a SystemError (CPython's issue 106905) and says nothing of the text.
"""

from __future__ import annotations

import ast

MOST = 100  # trees of one text; one of 2,500 was miscounted while three threads did nothing but parse


def parsed(text: str, file: str = "<unknown>") -> ast.Module:
    """`ast.parse`, once more where the parser miscounted."""
    for _ in range(MOST):
        try:
            return ast.parse(text, file)
        except SystemError:
            continue
    return ast.parse(text, file)
