"""Axis info: upstream's examples, and that what is said of random index expressions is true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.regularity import AxisInfo
from mltriton.dialects import tt
from mltriton.executor import run
from mltriton.ir.parser import parse_module

Array = np.ndarray[Any, Any]


def check(values: Array, info: AxisInfo) -> None:
    """What `info` says must hold of the values."""
    for dim in range(values.ndim):
        line = np.moveaxis(values, dim, -1).reshape(-1, values.shape[dim])
        size = values.shape[dim]
        run_length, constancy = min(info.contiguity[dim], size), min(info.constancy[dim], size)
        runs = line.reshape(line.shape[0], -1, run_length)
        assert (np.diff(runs, axis=-1) == 1).all(), "contiguity"
        assert (runs[..., 0] % info.divisibility[dim] == 0).all(), "divisibility"
        assert (np.diff(line.reshape(line.shape[0], -1, constancy), axis=-1) == 0).all(), "constancy"
    if info.number is not None:
        assert (values == info.number).all()


def infos_of(text: str) -> dict[str, AxisInfo]:
    """The infos of the values of the only function, by their names."""
    function = next(op for op in parse_module(text).walk() if isinstance(op, tt.Func))
    analysis = AxisInfoAnalysis(function)
    return {r.hint: analysis.of(r) for op in function.walk() for r in op.results if r.hint is not None}


# A block of 32 elements from up to 12 operations on earlier ones; operation, operands.
BINARY = ["addi", "subi", "muli", "divsi", "remsi", "divui", "remui", "maxsi", "minsi", "shli"]
steps = st.lists(
    st.tuples(st.sampled_from([*BINARY, "select", "constant", "range"]), st.integers(0, 40), st.integers(0, 40)),
    min_size=1,
    max_size=12,
)


def program(choices: list[tuple[str, int, int]], factor: int) -> tuple[str, int]:
    lines = [
        "%v0 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>",
        "%v1 = tt.splat %n : i32 -> tensor<32xi32>",
        f"%v2 = arith.constant dense<{factor}> : tensor<32xi32>",
    ]
    count = 3
    for name, i, j in choices:
        a, b = f"%v{i % count}", f"%v{j % count}"
        if name == "constant":
            lines.append(f"%v{count} = arith.constant dense<{(i - 8) * 4}> : tensor<32xi32>")
        elif name == "range":
            lines.append(f"%v{count} = tt.make_range {{end = {i + 32} : i32, start = {i} : i32}} : tensor<32xi32>")
        elif name == "select":
            lines.append(f"%c{count} = arith.cmpi slt, {a}, {b} : tensor<32xi32>")
            lines.append(f"%v{count} = arith.select %c{count}, {a}, {b} : tensor<32xi1>, tensor<32xi32>")
        else:
            divisor = name[:3] in ("div", "rem")
            lines.append(f"%v{count} = arith.{name} {a}, {'%v2' if divisor or name == 'shli' else b} : tensor<32xi32>")
        count += 1
    for k in range(count):
        lines.append(f"%q{k} = tt.addptr %p, %o{k} : !tt.ptr<i32>, i32")
        lines.append(f"%s{k} = tt.splat %q{k} : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>")
        lines.append(f"%t{k} = tt.addptr %s{k}, %v0 : tensor<32x!tt.ptr<i32>>, tensor<32xi32>")
        lines.append(f"tt.store %t{k}, %v{k} : tensor<32x!tt.ptr<i32>>")
    constants = [f"%o{k} = arith.constant {32 * k} : i32" for k in range(count)]
    body = "\n  ".join([*constants, *lines])
    header = "%p: !tt.ptr<i32>, %n: i32 {tt.divisibility = 16 : i32}"
    return f"tt.func @f({header}) {{\n  {body}\n  tt.return\n}}", count


@settings(max_examples=150, deadline=None)
@given(steps, st.sampled_from([1, 2, 3, 4, 8]), st.integers(0, 20))
def test_what_is_said_is_true(choices: list[tuple[str, int, int]], factor: int, n: int) -> None:
    text, count = program(choices, factor)
    out = np.zeros((count, 32), np.int32)
    run(parse_module(text), [out, n * 16], (1,))
    infos = infos_of(text)
    for k in range(count):
        if np.abs(out[k].astype(np.int64)).max() < 1 << 28:  # index arithmetic does not wrap
            check(out[k].astype(np.int64), infos[f"v{k}"])


BLOCK = """
tt.func @f(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %m: i32, %c: i1) {
  %c32 = arith.constant 32 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c32 : i32
  %line = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %s = tt.splat %first : i32 -> tensor<32xi32>
  %index = arith.addi %s, %line : tensor<32xi32>
  %bound = tt.splat %n : i32 -> tensor<32xi32>
  %odd = tt.splat %m : i32 -> tensor<32xi32>
  %mask = arith.cmpi slt, %index, %bound : tensor<32xi32>
  %any = arith.cmpi slt, %index, %odd : tensor<32xi32>
  %rows = tt.expand_dims %index {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tt.expand_dims %index {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %stride = tt.splat %n : i32 -> tensor<32x1xi32>
  %scaled = arith.muli %rows, %stride : tensor<32x1xi32>
  %wide = tt.broadcast %scaled : tensor<32x1xi32> -> tensor<32x32xi32>
  %tall = tt.broadcast %columns : tensor<1x32xi32> -> tensor<32x32xi32>
  %offsets = arith.addi %wide, %tall : tensor<32x32xi32>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %pointers = tt.addptr %base, %offsets : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %turned = tt.trans %pointers {order = array<i32: 1, 0>} : tensor<32x32x!tt.ptr<f32>> -> tensor<32x32x!tt.ptr<f32>>
  %rounded = arith.select %c, %offsets, %offsets {tt.divisibility = dense<64> : tensor<2xi32>} : tensor<32x32xi32>
  %promised = arith.addi %odd, %line {tt.divisibility = dense<8> : tensor<1xi32>} : tensor<32xi32>
  tt.return
}
"""


@pytest.mark.parametrize(
    ("name", "contiguity", "divisibility", "constancy"),
    [
        ("index", (32,), (32,), (1,)),
        ("bound", (1,), (16,), (32,)),
        ("mask", (1,), (1,), (16,)),
        ("any", (1,), (1,), (1,)),
        ("offsets", (1, 32), (1, 16), (1, 1)),
        ("pointers", (1, 32), (4, 16), (1, 1)),
        ("turned", (32, 1), (16, 4), (1, 1)),
        ("rounded", (1, 32), (1, 64), (1, 1)),  # of groups along columns: their neighbours are odd
        ("promised", (32,), (8,), (1,)),
    ],
)
def test_a_block_in_memory(name: str, contiguity: Any, divisibility: Any, constancy: Any) -> None:
    info = infos_of(BLOCK)[name]
    assert (info.contiguity, info.divisibility, info.constancy) == (contiguity, divisibility, constancy)


LOOP = """
tt.func @f(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c12 = arith.constant 12 : i32
  %line = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %start = tt.addptr %base, %line : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %twelve = tt.splat %c12 : i32 -> tensor<16xi32>
  %r:2 = scf.for %i = %c0 to %n step %c8 iter_args(%x = %start, %k = %c0) -> (tensor<16x!tt.ptr<f32>>, i32) : i32 {
    %counter = arith.addi %i, %c0 : i32
    %carried = arith.addi %k, %c0 : i32
    %moved = tt.addptr %x, %twelve : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %grown = arith.addi %k, %c12 : i32
    scf.yield %moved, %grown : tensor<16x!tt.ptr<f32>>, i32
  }
  %after = arith.addi %r#1, %c0 : i32
  %c4 = arith.constant 4 : i32
  scf.for %i = %c4 to %n step %c8 : i32 {
    %later = arith.addi %i, %c0 : i32
  }
  tt.return
}
"""


def test_loops() -> None:
    infos = infos_of(LOOP)
    assert infos["counter"].divisibility == (8,)
    assert infos["carried"].divisibility == (4,)
    assert infos["after"].divisibility == (4,)
    assert infos["later"].divisibility == (4,)
    assert (infos["moved"].contiguity, infos["moved"].divisibility) == ((16,), (16,))
