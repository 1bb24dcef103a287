"""Programs as text, of ours and as upstream's front end prints them."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.compiler_text import compile_text
from mltriton.errors import IRSyntaxError, SignatureError

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


def test_mistakes():
    with pytest.raises(IRSyntaxError, match=r"unknown operation `tt\.nothing`"):
        compile_text(SCALED.replace("tt.splat %3", "tt.nothing %3"))
    with pytest.raises(SignatureError, match="a program has one public function"):
        compile_text("module {}")
    with pytest.raises(SignatureError, match=r"no launch gives the parameter t\.1 a value"):
        compile_text(
            SCALED.replace("%t.1: i32", "%t.1: index").replace("arith.sitofp %t.1 : i32", "arith.uitofp %t.1 : index")
        )
