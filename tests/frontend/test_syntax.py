"""Trees of texts, where Python's parser fails for what another thread does."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from mltriton.frontend.syntax import parsed


@pytest.mark.parametrize("failures", [1, 20])
def test_a_miscounted_tree_is_made_again(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parse, left = ast.parse, [None] * failures

    def miscounting(*args: Any) -> ast.Module:
        if left:
            left.pop()
            raise SystemError("AST constructor recursion depth mismatch (before=30, after=143)")
        return parse(*args)

    monkeypatch.setattr(ast, "parse", miscounting)
    assert ast.dump(parsed("x = 1 + y\n")) == ast.dump(parse("x = 1 + y\n")) and not left


def test_errors_are_the_parser_s() -> None:
    with pytest.raises(SyntaxError, match=r"f\.py"):
        parsed("x = (", "f.py")
