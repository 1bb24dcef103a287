"""Merging reductions: what it costs grows as the program does, whether they merge or not."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.passes.ttg.merge_reductions import MergeReductions

SUM = """  %{result} = "tt.reduce"(%{source}) <{{axis = 0 : i32}}> ({{
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    tt.reduce.return %sum : f32
  }}) : (tensor<128xf32, #warps>) -> f32
"""
STORED = "  tt.store %p, %s{0} : !tt.ptr<f32>\n"
ADDED = "  %t{1} = arith.addf %t{0}, %s{0} : f32\n"
TAKEN = """  %u{0} = tt.splat %s{0} : f32 -> tensor<128xf32, #warps>
  %x{1} = arith.subf %x{0}, %u{0} : tensor<128xf32, #warps>
"""
USES = {"stored": (STORED, "x0"), "added up": (ADDED, "x0"), "taken by the next": (TAKEN, "x{0}")}


def program(kind: str, count: int) -> Module:
    """As many sums, each followed by a use."""
    use, source = USES[kind]
    body = "".join(
        SUM.format(result=f"s{number}", source=source.format(number)) + use.format(number, number + 1)
        for number in range(count)
    )
    return parse_module(
        "#warps = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>\n"
        'module attributes {mltriton.level = "ttg", "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {\n'
        "tt.func public @k(%x0: tensor<128xf32, #warps>, %t0: f32, %p: !tt.ptr<f32>) {\n"
        f"{body}  tt.return\n}}\n}}\n"
    )


def steps_to_merge(kind: str, count: int) -> int:
    """How many functions are called, and lines run, while the pass runs."""
    module, counted = program(kind, count), 0

    def count_steps(frame: Any, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event in ("call", "line")
        return count_steps

    sys.settrace(count_steps)
    try:
        MergeReductions().run(module)
    finally:
        sys.settrace(None)
    return counted


@pytest.mark.parametrize("kind", USES)
def test_twice_the_reductions_take_twice_the_steps(kind: str) -> None:
    assert steps_to_merge(kind, 100) < 2.4 * steps_to_merge(kind, 50)


def test_sums_that_are_added_up_are_one() -> None:
    text = str(MergeReductions().run(program("added up", 5)))
    assert text.count("tt.reduce") == 1 + 1  # and its terminator
