"""Every rule of every operation: what breaks it, and the message that says so."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from mltriton.errors import VerificationError
from mltriton.ir.parser import parse_module
from mltriton.ir.verifier import verify

HEAD = """
#blocked = #ttg.blocked<{sizePerWarp = [4, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
tt.func private @callee(%x: i32) -> i32 {
  tt.return %x : i32
}
tt.func @k(%i: i32, %j: i64, %x: f32, %h: f16, %b: i1, %n: index, %p: !tt.ptr<f32>, %q: !tt.ptr<i32>,
           %s: !tt.ptr<f32, 5>, %ti: tensor<4xi32>, %tf: tensor<4xf32>, %tb: tensor<4xi1>, %tp: tensor<4x!tt.ptr<f32>>,
           %u: tensor<8xf32>, %one: tensor<1xf32>, %t2: tensor<4x4xf32>, %half: tensor<4x4xf16>,
           %te: tensor<4x4xf32, #blocked>, %bp: !tt.ptr<tensor<4x4xf32>>, %d: !tt.tensordesc<tensor<4x4xf32>>,
           %mem: !ttg.memdesc<4x4xf32, #ttg.shared_memory>) {
"""
TAIL = "\n  tt.return\n}\n"


def cases(name: str) -> list[tuple[str, str]]:
    """Pairs of text and expected message from a file beside this one."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    mark = "// expected: "
    return [(text, after.removeprefix(mark)) for text, after in pairwise(lines) if after.startswith(mark)]


@pytest.mark.parametrize(("line", "message"), cases("broken_lines.mlir"))
def test_a_broken_rule_is_named(line: str, message: str) -> None:
    text = f"{HEAD}  {line}{TAIL}"
    module = parse_module(text, "rules.mlir")
    with pytest.raises(VerificationError) as caught:
        verify(module)
    error = caught.value
    assert message in error.message
    assert error.hint is not None and error.hint.startswith("in: ")
    assert error.file == "rules.mlir"
    name = line.split("(")[0].strip('"')
    assert error.line is not None and name in text.split("\n")[error.line - 1]


def test_nothing_else_is_wrong_around_them() -> None:
    verify(parse_module(HEAD + TAIL))


@pytest.mark.parametrize(("text", "message"), cases("broken_functions.mlir"))
def test_functions(text: str, message: str) -> None:
    with pytest.raises(VerificationError) as caught:
        verify(parse_module(text))
    assert message in caught.value.message


def test_there_are_cases_for_every_dialect() -> None:
    dialects = {line.strip('"').partition(".")[0] for line, _ in cases("broken_lines.mlir")}
    assert dialects == {"arith", "math", "scf", "tt", "llvm", "gpu", "ttg", "ttig", "ttng", "tile"}
