"""form-nests and pack-operands mean what stood there, and match-target-size takes nests as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mltriton.compiler import Job, options_of
from mltriton.dialects import tile
from mltriton.errors import TargetError
from mltriton.executor import run
from mltriton.frontend.signature import parse_signature
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.targets.target import find_target
from mltriton.tools.aot import load_kernel

from ...fuzz.check import POINTERS
from ...fuzz.programs import STYLES, program
from ..programs import transform

HEAD = """
#b = #ttg.blocked<{sizePerWarp = [16, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
#r = #ttg.slice<{dim = 1, parent = #b}>
module attributes {mltriton.level = "warp", "ttg.num-warps" = 1 : i32, ttg.target = "cpu:avx512"} {
tt.func public @f(%p: !tt.ptr<f32>, %n: f32) {
  %j = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %row = tt.expand_dims %j {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x16xi32, #b>
  %along = tt.broadcast %row : tensor<1x16xi32, #b> -> tensor<16x16xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #b>
  %at = tt.addptr %ps, %along : tensor<16x16x!tt.ptr<f32>, #b>, tensor<16x16xi32, #b>
  %x = tt.splat %n : f32 -> tensor<16x16xf32, #b>
"""
SUM = """%sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
^bb0(%a: f32, %b: f32):
  %c = arith.addf %a, %b : f32
  tt.reduce.return %c : f32
}) : (tensor<16x16xf32, #b>) -> tensor<16xf32, #r>
%wide = tt.expand_dims %sum {axis = 1 : i32} : tensor<16xf32, #r> -> tensor<16x1xf32, #b>
%sums = tt.broadcast %wide : tensor<16x1xf32, #b> -> tensor<16x16xf32, #b>
"""
STORE = "tt.store %at, %sums : tensor<16x16x!tt.ptr<f32>, #b>"
KEPT = "tile.fill %x {row = array<i32: 0, 2>} : tensor<16x16xf32, #b>\n"
TURNED = """%t = tt.trans %sums {order = array<i32: 1, 0>} : tensor<16x16xf32, #b> -> tensor<16x16xf32, #b>
tt.store %at, %t : tensor<16x16x!tt.ptr<f32>, #b>"""


def parsed(body: str) -> Module:
    return parse_module(f"{HEAD}{body}\ntt.return\n}}\n}}")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("style", sorted(STYLES))
def test_nests_mean_what_stood_there(style: str, seed: int, tmp_path: Path) -> None:
    made = program(seed, style)
    path = tmp_path / "kernel.py"
    path.write_text(made.source, encoding="utf-8")
    types = [f"*{POINTERS[made.dtypes[k]]}" if isinstance(v, np.ndarray) else "i32" for k, v in made.args.items()]
    entries = parse_signature(", ".join(types), list(made.args))
    job = Job(load_kernel(f"{path}:kernel"), entries, find_target("cpu:avx512"), options_of(num_warps=made.num_warps))
    module = next(module for level, module in job.modules() if level == "warp")

    def results() -> list[Any]:
        arguments = [value.copy() if isinstance(value, np.ndarray) else value for value in made.args.values()]
        with np.errstate(all="ignore"):
            run(module, arguments, made.grid)
        return arguments

    before = results()
    module = transform(module, "form-nests,pack-operands")
    assert any(isinstance(op, tile.Nest) for op in module.walk())
    for expected, found in zip(before, results(), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (SUM, "tt.reduce stands in no loop nest: form-nests comes before match-target-size"),
        (f"tile.nest loops(0, 0) {{ {SUM} }}", "says of each of its members in which loop of a row it runs"),
        (
            f"tile.nest loops(0, 0) {{ {SUM}{STORE} }}",
            "runs too early: in loop 0 of a row, not in loop 1",
        ),
        (f"tile.nest loops(0) {{ {SUM} }} {{along = 0 : i32}}", "along a dimension of a block that a loop nest stores"),
        (f"tile.nest loops(0, 1) {{ {SUM}{TURNED} }}", "members of a loop nest do not share their rows"),
        (
            f"tile.nest loops(0, 0, 1) {{ {SUM}{KEPT}{STORE} }}",
            "what is kept for a row follows the loops of the members before it",
        ),
        ("tile.nest loops(0) { tile.fill %x {start = true} : tensor<16x16xf32, #b> }", "no dot of the block adds to"),
    ],
)
def test_a_nest_that_cannot_be_is_refused(body: str, message: str) -> None:
    with pytest.raises(TargetError) as caught:
        transform(parsed(body), "match-target-size")
    assert message in caught.value.message


def test_a_nest_that_can_be_is_taken() -> None:
    module = transform(parsed(f"tile.nest loops(0, 1) {{ {SUM}{STORE} }}"), "match-target-size")
    assert not any(isinstance(op, tile.Nest) for op in module.walk())
