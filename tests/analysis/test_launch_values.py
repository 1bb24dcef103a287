"""What scalars are made of, and what of them a launch can know."""

from __future__ import annotations

import pytest

from mltriton.analysis.bounds import Known, evaluate, exactly
from mltriton.analysis.launch_values import LaunchValues
from mltriton.dialects import tt
from mltriton.ir.operation import Value
from mltriton.ir.parser import parse_module

ARGUMENTS = (4096, 96, 40)  # x, n, s

BODY = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i64
    %c32 = arith.constant 32 : i32
    %c1_i32 = arith.constant 1 : i32
    %pid = tt.get_program_id x : i32
    %warp = gpu.subgroup_id : index
    %warp_i32 = arith.index_cast %warp : index to i32
    %four = arith.constant 4 : i32
    %column = arith.remui %warp_i32, %four : i32
    %row = arith.muli %pid, %c32 : i32
    %rows = arith.addi %n, %c32 : i32
    %blocks = arith.divsi %rows, %c32 : i32
    %wide = arith.extsi %n : i32 to i64
    %distance = arith.muli %pid, %s : i32
    %base = tt.addptr %x, %distance : !tt.ptr<f16>, i32
    %inside = arith.cmpi slt, %pid, %n : i32
    %chosen = arith.select %inside, %n, %s : i32
    %found = tt.load %at : !tt.ptr<i32>
    %page = arith.muli %found, %c32 : i32
    %sum = scf.for %k = %c0 to %n step %c32 iter_args(%i = %row) -> (i32) : i32 {
      %twice = arith.addi %k, %k : i32
      %j = arith.addi %i, %s : i32
      scf.yield %j : i32
    }
    tt.return
"""


@pytest.fixture(scope="module")
def kernel() -> tuple[LaunchValues, dict[str, Value]]:
    module = parse_module(f"""
module {{
  tt.func public @kernel(%x: !tt.ptr<f16>, %n: i32, %s: i32, %at: !tt.ptr<i32>) {{{BODY}  }}
}}
""")
    (function,) = (op for op in module.body.block.ops if isinstance(op, tt.Func))
    named = {result.hint: result for op in function.walk() for result in op.results if result.hint}
    for op in function.walk():
        for region in op.regions:
            named |= {argument.hint: argument for argument in region.block.arguments if argument.hint}
    return LaunchValues(function, warps=8), named


@pytest.mark.parametrize(
    ("name", "at_launch"),
    [
        ("blocks", exactly(4)),
        ("wide", exactly(96)),
        ("column", Known(0, 3, 1)),
        ("row", Known(None, None, 32)),  # The product may wrap.
        ("base", Known(None, None, 16)),
        ("chosen", Known(40, 96, 8)),
        ("page", Known(None, None, 32)),
        ("k", Known(0, None, 32)),
        ("twice", Known(None, None, 32)),
        ("i", Known(None, None, 8)),
    ],
)
def test_what_a_launch_knows(kernel: tuple[LaunchValues, dict[str, Value]], name: str, at_launch: Known) -> None:
    values, named = kernel
    traced = values.of(named[name])
    assert evaluate(traced.expression, lambda number: exactly(ARGUMENTS[number])) == at_launch
    assert traced.varies == (name not in ("blocks", "wide"))
    assert bool(traced.opaque) == (name == "page")
