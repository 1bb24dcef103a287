"""Programs as text, of ours and as upstream's front end prints them."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.compiler.text import compile_text
from mltriton.errors import AssemblyError, IRSyntaxError, SignatureError, TargetError
from mltriton.ir.structured_text import without_jumps

X = np.random.default_rng(0).standard_normal(64).astype(np.float32)

# As upstream 3.9 prints it: attributes of the function, locations, parts of a tuple as parameters.
SCALED = """
#loc = loc("kernel.py":3:0)
module {
  tt.func public @scaled(%t.0: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("t.0"(#loc)), %t.1: i32 loc("t.1"(#loc)),
      %o: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("o"(#loc))) attributes {noinline = false} {
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc(#loc1)
    %0 = tt.splat %t.0 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc)
    %1 = tt.addptr %0, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc)
    %2 = tt.load %1 : tensor<64x!tt.ptr<f32>> loc(#loc)
    %3 = arith.sitofp %t.1 : i32 to f32 loc(#loc)
    %4 = tt.splat %3 : f32 -> tensor<64xf32> loc(#loc)
    %5 = arith.mulf %2, %4 : tensor<64xf32> loc(#loc)
    %6 = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc)
    %7 = tt.addptr %6, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc)
    tt.store %7, %5 : tensor<64x!tt.ptr<f32>> loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc("kernel.py":4:4)
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))


def test_a_program_is_compiled_and_launched():
    kernel = compile_text(SCALED, {"num_warps": 2, "enable_fp_fusion": True})
    out = np.zeros_like(X)
    kernel[(1,)](X, 3, out)
    np.testing.assert_array_equal(out, X * 3)
    assert list(kernel.src.signature.items()) == [("t_0_0", "*fp32"), ("t_1_1", "i32"), ("o", "*fp32")]
    assert compile_text(SCALED, {"num_warps": 2}).metadata.from_cache


def program(*lines: str, parameters: str = "") -> str:
    """A program around lines that turn %x, a block of 64 floats from the first array, into %y."""
    body = "\n".join(f"    {line} loc(#loc)" if "^" not in line or "cf." in line else f"  {line}" for line in lines)
    return f"""
#loc = loc("kernel.py":3:0)
module {{
  tt.func public @made(%a: !tt.ptr<f32> loc("a"(#loc)), %o: !tt.ptr<f32> loc("o"(#loc)){parameters}) attributes {{}} {{
    %i = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32> loc(#loc)
    %0 = tt.splat %a : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc)
    %1 = tt.addptr %0, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc)
    %x = tt.load %1 : tensor<64x!tt.ptr<f32>> loc(#loc)
    %2 = tt.splat %o : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc)
    %p = tt.addptr %2, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc)
{body}
    tt.store %p, %y : tensor<64x!tt.ptr<f32>> loc(#loc)
    tt.return loc(#loc)
  }} loc(#loc)
}} loc(#loc)
"""


def launched(text: str, *more: object) -> np.ndarray:
    out = np.zeros_like(X)
    compile_text(text)[(1,)](X, out, *more)
    return out


BRANCHES = (
    "%c3 = arith.constant 3 : i32",
    "%c = arith.cmpi sgt, %n, %c3 : i32",
    "cf.cond_br %c, ^bb1, ^bb2(%n : i32)",
    "^bb1:  // pred: ^bb0",
    "%d = arith.addf %x, %x : tensor<64xf32>",
    "cf.br ^bb3(%d, %c3 : tensor<64xf32>, i32)",
    '^bb2(%m: i32 loc("kernel.py":5:2)):  // pred: ^bb0',
    "%e = arith.mulf %x, %x : tensor<64xf32>",
    "cf.br ^bb3(%e, %m : tensor<64xf32>, i32)",
    '^bb3(%z: tensor<64xf32> loc("kernel.py":6:2), %k: i32 loc("kernel.py":6:2)):  // 2 preds: ^bb1, ^bb2',
    "%f = arith.sitofp %k : i32 to f32",
    "%g = tt.splat %f : f32 -> tensor<64xf32>",
    "%y = arith.addf %z, %g : tensor<64xf32>",
)
EARLY = (
    "%c0 = arith.constant 0 : i32",
    "%c = arith.cmpi eq, %n, %c0 : i32",
    "cf.cond_br %c, ^bb1, ^bb2",
    "^bb1:  // pred: ^bb0",
    "tt.return",
    "^bb2:  // pred: ^bb0",
    "%y = arith.addf %x, %x : tensor<64xf32>",
)


def test_jumps_become_structured():
    text = program(*BRANCHES, parameters=', %n: i32 loc("n"(#loc))')
    assert "cf.br" not in without_jumps(text)
    np.testing.assert_allclose(launched(text, 5), X + X + 3, rtol=1e-6)
    np.testing.assert_allclose(launched(text, 2), X * X + 2, rtol=1e-6)
    early = program(*EARLY, parameters=', %n: i32 loc("n"(#loc))')
    np.testing.assert_array_equal(launched(early, 1), X + X)
    assert not launched(early, 0).any()
    assert without_jumps(SCALED) is SCALED
    with pytest.raises(IRSyntaxError, match="a block jumps back"):
        without_jumps(text.replace("cf.br ^bb3(%d, %c3 : tensor<64xf32>, i32)", "cf.br ^bb1"))


# `tl.map_elementwise` of a function with a loop, and of one that returns early, in a kernel that does, too.
MAPPED = """    %c0 = arith.constant 0 : i32 loc(#loc)
    %f1 = arith.constant 1.0 : f32 loc(#loc)
    %f2 = arith.constant 2.0 : f32 loc(#loc)
    %c = arith.cmpi eq, %n, %c0 : i32 loc(#loc)
    cf.cond_br %c, ^bb1, ^bb2 loc(#loc)
  ^bb1:  // pred: ^bb0
    tt.return loc(#loc)
  ^bb2:  // pred: ^bb0
    %s = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({
    ^bb0(%e: f32 loc(#loc)):
      %w = scf.while (%h = %e) : (f32) -> (f32) {
        %more = arith.cmpf ogt, %h, %f1 : f32 loc(#loc)
        scf.condition(%more) %h : f32 loc(#loc)
      } do {
      ^bb0(%h: f32 loc(#loc)):
        %half = arith.divf %h, %f2 : f32 loc(#loc)
        scf.yield %half : f32 loc(#loc)
      } loc(#loc)
      tt.map_elementwise.return %w : f32 loc(#loc)
    }) : (tensor<64xf32>) -> tensor<64xf32> loc(#loc)
    %y = "tt.map_elementwise"(%s, %x) <{pack = 2 : i32}> ({
    ^bb0(%a0: f32 loc(#loc), %a1: f32 loc(#loc), %b0: f32 loc(#loc), %b1: f32 loc(#loc)):
      %less = arith.cmpf olt, %a0, %a1 : f32 loc(#loc)
      cf.cond_br %less, ^bb1, ^bb2(%b0, %f2 : f32, f32) loc(#loc)
    ^bb1:  // pred: ^bb0
      %both = arith.addf %b0, %b1 : f32 loc(#loc)
      cf.br ^bb2(%both, %a1 : f32, f32) loc(#loc)
    ^bb2(%first: f32 loc(#loc), %second: f32 loc(#loc)):  // 2 preds: ^bb0, ^bb1
      tt.map_elementwise.return %first, %second : f32, f32 loc(#loc)
    }) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32> loc(#loc)"""


def test_a_function_on_every_element():
    text = program("BODY", parameters=', %n: i32 loc("n"(#loc))').replace("    BODY loc(#loc)", MAPPED)
    assert "cf.cond_br" not in without_jumps(text)
    small = np.where(X > 1, X / 2, X)
    while (small > 1).any():
        small = np.where(small > 1, small / 2, small)
    less = small[::2] < small[1::2]
    expected = np.stack([np.where(less, X[::2] + X[1::2], X[::2]), np.where(less, small[1::2], 2)], 1).reshape(-1)
    np.testing.assert_allclose(launched(text, 1), expected, rtol=1e-6)
    assert not launched(text, 0).any()


NV = '{libname = "", libpath = "", pure = true, symbol = "__nv_SYMBOL"} : (tensor<64xf32>) -> tensor<64xf32>'


POISON = [
    "%u = ub.poison : tensor<64xf32>",
    "%t = arith.constant true",
    "%y = arith.select %t, %x, %u : tensor<64xf32>",
]
HISTOGRAM = [
    "%h = tt.histogram %i : tensor<64xi32> -> tensor<64xi32>",
    "%y = arith.sitofp %h : tensor<64xi32> to tensor<64xf32>",
]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([f"%y = tt.extern_elementwise %x {NV.replace('SYMBOL', 'tanhf')}"], np.tanh(X)),
        ([f"%y = tt.extern_elementwise %x {NV.replace('SYMBOL', 'fabsf')}"], np.abs(X)),
        (
            [
                "tt.grid_dependency_wait",
                "tt.grid_dependency_launch_dependents",
                "%y = arith.addf %x, %x : tensor<64xf32>",
            ],
            X + X,
        ),
        (["ttg.barrier all", "%y = tt.approx_divf %x, %x : tensor<64xf32>"], np.ones_like(X)),
        (HISTOGRAM, np.ones_like(X)),
        (POISON, X),
    ],
)
def test_operations_of_upstream_are_made_of_ours(lines, expected):
    np.testing.assert_allclose(launched(program(*lines)), expected, rtol=1e-5, atol=1e-6)


def test_what_there_is_not_is_said_at_its_place():
    assembly = '%y = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<64xf32> -> tensor<64xf32>'  # noqa: E501
    with pytest.raises(AssemblyError, match=r"kernel\.py:3:1: AssemblyError: this is no assembly"):
        compile_text(program(assembly))
    with pytest.raises(TargetError, match="there is no __nv_nothing here"):
        compile_text(program(f"%y = tt.extern_elementwise %x {NV.replace('SYMBOL', 'nothing')}"))


def test_mistakes():
    with pytest.raises(IRSyntaxError, match=r"unknown operation `tt\.nothing`"):
        compile_text(SCALED.replace("tt.splat %3", "tt.nothing %3"))
    with pytest.raises(SignatureError, match="a program has one public function"):
        compile_text("module {}")
    with pytest.raises(SignatureError, match=r"no launch gives the parameter t\.1 a value"):
        compile_text(
            SCALED.replace("%t.1: i32", "%t.1: index").replace("arith.sitofp %t.1 : i32", "arith.uitofp %t.1 : index")
        )


@pytest.mark.parametrize(("target", "different"), [("generic", 3), ("cpu", 2)])
def test_options_are_part_of_the_key_where_they_make_a_difference(target: str, different: int) -> None:
    ways = ({}, {"num_warps": 2}, {"sanitize": True}, {"num_stages": 1})
    assert len({compile_text(SCALED, how, target).hash for how in ways}) == different
