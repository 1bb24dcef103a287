"""inline, combine and reorder-broadcast: their rules, and that programs compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import arith, tt
from mltriton.errors import PassError
from mltriton.ir.location import CallSiteLoc
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module
from mltriton.ir.types import TensorType

from ..programs import LIBRARY, text_program, transform


def only(module: Module, kind: type[Operation]) -> Any:
    (found,) = (op for op in module.walk() if isinstance(op, kind))
    return found


def count(module: Module, kind: type[Operation]) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


@pytest.mark.parametrize("name", LIBRARY)
@pytest.mark.parametrize("pipeline", ["inline,combine", "reorder-broadcast", "canonicalize,combine,reorder-broadcast"])
def test_programs_compute_the_same(name: str, pipeline: str) -> None:
    LIBRARY[name].check(pipeline)


CALLS = """
tt.func private @square(%x: i32) -> i32 {
  %r = arith.muli %x, %x : i32 loc("callee.py":1:2)
  tt.return %r : i32
}
tt.func private @fourth(%x: i32) -> i32 {
  %a = tt.call @square(%x) : (i32) -> i32
  %b = tt.call @square(%a) : (i32) -> i32
  tt.return %b : i32
}
tt.func public @f(%x: i32, %p: !tt.ptr<i32>) {
  %c = arith.cmpi sgt, %x, %x : i32
  %r = scf.if %c -> (i32) {
    scf.yield %x : i32
  } else {
    %a = tt.call @fourth(%x) : (i32) -> i32 loc("caller.py":8:4)
    scf.yield %a : i32
  }
  tt.store %p, %r : !tt.ptr<i32>
  tt.return
}
"""


def test_inline_leaves_one_function_and_says_where_calls_were() -> None:
    module = text_program(CALLS, lambda _: [3, np.zeros(1, np.int32)]).check("inline")
    assert count(module, tt.Func) == 1
    assert count(module, tt.Call) == 0
    products = [op for op in module.walk() if isinstance(op, arith.MulI)]
    assert len(products) == 2
    assert isinstance(products[0].loc, CallSiteLoc)
    assert products[0].loc.innermost is not None
    assert products[0].loc.innermost.file == "callee.py"


def test_inline_rejects_recursion() -> None:
    text = """
    tt.func @f(%x: i32) -> i32 {
      %r = tt.call @f(%x) : (i32) -> i32
      tt.return %r : i32
    }"""
    with pytest.raises(PassError, match="@f calls itself"):
        transform(parse_module(text), "inline")


# %p: pointer to 16 floats, %q: pointer to 16 results, %i: 0 to 15, %x: the 16 floats.
BODY = """
tt.func @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %c: i1) {{
  %i = tt.make_range {{end = 16 : i32, start = 0 : i32}} : tensor<16xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %pi = tt.addptr %ps, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %qi = tt.addptr %qs, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %one = arith.constant dense<1.000000e+00> : tensor<16xf32>
  {text}
  tt.store %qi, %r : tensor<16x!tt.ptr<f32>>
  tt.return
}}
"""


def check_body(text: str, pipeline: str) -> Module:
    def arguments(random: np.random.Generator) -> list[Any]:
        return [random.standard_normal(64).astype(np.float32), np.zeros(16, np.float32), 5, True]

    return text_program(BODY.format(text=text), arguments).check(pipeline)


def test_offsets_of_offsets() -> None:
    module = check_body(
        """%j = arith.addi %i, %i : tensor<16xi32>
        %two = tt.addptr %pi, %j : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
        %r = tt.load %two : tensor<16x!tt.ptr<f32>>""",
        "combine,dce",
    )
    assert count(module, tt.AddPtr) == 2


SELECTED = """
%ns = tt.splat %n : i32 -> tensor<16xi32>
%m = arith.cmpi slt, %i, %ns : tensor<16xi32>
%x = tt.load %pi, %m : tensor<16x!tt.ptr<f32>>
{between}
%r = arith.select %m, %x, %one : tensor<16xi1>, tensor<16xf32>
"""


@pytest.mark.parametrize(("between", "selects"), [("", 0), ("tt.store %pi, %one : tensor<16x!tt.ptr<f32>>", 1)])
def test_a_select_joins_the_load_unless_a_store_is_between(between: str, selects: int) -> None:
    module = check_body(SELECTED.format(between=between), "combine,dce")
    assert count(module, arith.Select) == selects
    assert count(module, tt.Load) == 1


def test_a_scalar_condition_joins_too() -> None:
    module = check_body(
        """%m = tt.splat %c : i1 -> tensor<16xi1>
        %x = tt.load %pi, %m, %one : tensor<16x!tt.ptr<f32>>
        %r = arith.select %c, %x, %one : tensor<16xf32>""",
        "combine",
    )
    assert count(module, arith.Select) == 0


OUTER_PRODUCT = """
%x = tt.load %pi : tensor<16x!tt.ptr<f32>>
%row = tt.expand_dims %x {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
%column = tt.expand_dims %x {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
%a = tt.broadcast %row : tensor<1x16xf32> -> tensor<16x16xf32>
%b = tt.broadcast %column : tensor<16x1xf32> -> tensor<16x16xf32>
"""
SUM_OF_ROWS = """
%r = "tt.reduce"(%d) ({
^bb0(%u: f32, %v: f32):
  %w = arith.addf %u, %v : f32
  tt.reduce.return %w : f32
}) {axis = 1 : i32} : (tensor<16x16xf32>) -> tensor<16xf32>
"""


@pytest.mark.parametrize("operands", ["%s, %b", "%b, %s"])
def test_a_sum_with_a_dot(operands: str) -> None:
    text = f"""{OUTER_PRODUCT}
    %s = tt.dot %a, %b, %zero : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
    %d = arith.addf {operands} : tensor<16x16xf32>
    {SUM_OF_ROWS}"""
    module = check_body(text, "combine,dce")
    assert only(module, tt.Dot).c.hint == "b"
    assert count(module, arith.AddF) == 1


def test_a_summed_product_is_a_dot() -> None:
    text = f"""{OUTER_PRODUCT}
    %a3 = tt.expand_dims %a {{axis = 2 : i32}} : tensor<16x16xf32> -> tensor<16x16x1xf32>
    %b3 = tt.expand_dims %b {{axis = 0 : i32}} : tensor<16x16xf32> -> tensor<1x16x16xf32>
    %ax = tt.broadcast %a3 : tensor<16x16x1xf32> -> tensor<16x16x16xf32>
    %bx = tt.broadcast %b3 : tensor<1x16x16xf32> -> tensor<16x16x16xf32>
    %p3 = arith.mulf %bx, %ax : tensor<16x16x16xf32>
    %d = "tt.reduce"(%p3) ({{
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tt.reduce.return %w : f32
    }}) {{axis = 1 : i32}} : (tensor<16x16x16xf32>) -> tensor<16x16xf32>
    {SUM_OF_ROWS}"""
    module = check_body(text, "combine,dce")
    assert (only(module, tt.Dot).a.hint, only(module, tt.Dot).b.hint) == ("a", "b")


def largest(module: Module, kind: type[Operation]) -> int:
    types = [result.type for op in _of(module, kind) for result in op.results]
    return max(type.size if isinstance(type, TensorType) else 1 for type in types)


def _of(module: Module, kind: type[Operation]) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, kind)]


def test_index_arithmetic_happens_on_small_blocks() -> None:
    text = """
    %e = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %wide = tt.broadcast %e : tensor<16x1xi32> -> tensor<16x4xi32>
    %three = arith.constant dense<3> : tensor<16x4xi32>
    %ns = tt.splat %n : i32 -> tensor<16x4xi32>
    %mul = arith.muli %ns, %three : tensor<16x4xi32>
    %sum = arith.subi %wide, %mul : tensor<16x4xi32>
    %float = arith.sitofp %sum : tensor<16x4xi32> to tensor<16x4xf32>
    %r = "tt.reduce"(%float) ({
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tt.reduce.return %w : f32
    }) {axis = 1 : i32} : (tensor<16x4xf32>) -> tensor<16xf32>"""
    module = check_body(text, "reorder-broadcast")
    assert largest(module, arith.MulI) == 1
    assert largest(module, arith.SubI) == 16
    assert largest(module, arith.SIToFP) == 16


def test_a_uniform_offset_moves_to_the_base() -> None:
    module = check_body(
        """%ns = tt.splat %n : i32 -> tensor<16xi32>
        %moved = tt.addptr %pi, %ns : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
        %r = tt.load %moved : tensor<16x!tt.ptr<f32>>""",
        "reorder-broadcast,dce",
    )
    (base,) = (op for op in _of(module, tt.AddPtr) if not isinstance(op.results[0].type, TensorType))
    assert base.operands[1].hint == "n"


@triton.jit
def equal_to_one(x, number, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values, wanted = tl.load(x + at), tl.load(number)
    tl.store(out + at, tl.where(values == wanted, 1, 0) + tl.where(wanted != values, 2, 0))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
def test_numbers_outside_of_a_narrow_type_equal_none(dtype: type) -> None:
    """One that is equal in its low bits alone is not equal."""
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 2, 7, limits.max, limits.min, 100, 3], dtype)
    for number in (7, 0, int(limits.max), int(limits.min), 7 + (1 << limits.bits), -1, -(1 << limits.bits)):
        out = np.zeros(8, np.int32)
        equal_to_one[1,](x, np.array([number], np.int64), out, BLOCK=8)
        np.testing.assert_array_equal(out, np.where(x.astype(object) == number, 1, 2))
