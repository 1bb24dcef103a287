"""assign-layouts and distribute-to-warps: which encodings programs get, and what crosses warps."""

from __future__ import annotations

from typing import Any

import pytest

from mltriton.dialects import gpu, scf, tt, ttg
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.parser import parse_module
from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, SliceEncoding

from .. import kernels
from ..programs import MATMULS, Program, flash_attention, kernel, matmul, transform

CLEAN = "canonicalize,cse,combine,reorder-broadcast,canonicalize,cse,licm,dce"


def epilogue(kind: str, **transposed: bool) -> Program:
    meta = {"A_T": False, "B_T": False, **transposed}
    signature = "*fp16:16, *fp16:16, *fp32:16, *fp32:16, *fp32:16, i32"
    return kernel(kernels.gemm_epilogue, signature, lambda _: [], BM=256, BN=256, BK=32, KIND=kind, **meta)


def all_of(module: Module, kind: type[Operation]) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, kind)]


@pytest.mark.parametrize("kind", ["none", "bias", "gelu", "matrix"])
@pytest.mark.parametrize("transposed", [{}, {"A_T": True}, {"B_T": True}])
def test_a_gemm_with_an_epilogue_needs_no_conversion(kind: str, transposed: dict[str, bool]) -> None:
    module = epilogue(kind, **transposed).with_warps(32).transformed(f"{CLEAN},assign-layouts")
    (dot,) = all_of(module, tt.Dot)
    root = BlockedEncoding((32, 64), (8, 4), (1, 0))
    assert dot.result.type.encoding is root
    assert dot.a.type.encoding is DotOperandEncoding(0, root)
    assert dot.b.type.encoding is DotOperandEncoding(1, root)
    assert not all_of(module, ttg.ConvertLayout)
    (store,) = all_of(module, tt.Store)
    assert store.value.type.encoding is root
    if kind == "bias":
        (bias,) = (load for load in all_of(module, tt.Load) if load.result.type.rank == 1)
        assert bias.result.type.encoding is SliceEncoding(0, root)


@pytest.mark.parametrize(
    ("warps", "size", "count"),
    [
        (1, (256, 256), (1, 1)),
        (4, (128, 128), (2, 2)),
        (8, (64, 128), (4, 2)),
        (16, (64, 64), (4, 4)),
        (64, (32, 32), (8, 8)),
    ],
)
def test_square_parts(warps: int, size: tuple[int, int], count: tuple[int, int]) -> None:
    module = epilogue("none").with_warps(warps).transformed(f"{CLEAN},assign-layouts")
    (dot,) = all_of(module, tt.Dot)
    assert dot.result.type.encoding is BlockedEncoding(size, count, (1, 0))


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_stays_within_warps(causal: bool, warps: int) -> None:
    program = flash_attention(causal, dim=64, BM=128, BN=64, dtype="fp16").with_warps(warps)
    module = program.transformed(f"{CLEAN},assign-layouts,distribute-to-warps")
    assert not all_of(module, ttg.LocalAlloc)
    assert not all_of(module, gpu.Barrier)
    assert {dot.result.type.shape for dot in all_of(module, tt.Dot)} == {(128 // warps, 64)}


@pytest.mark.parametrize("name", MATMULS)
def test_a_gemm_stays_within_warps(name: str) -> None:
    module = (
        matmul(MATMULS[name], BM=64, BN=64).with_warps(8).transformed(f"{CLEAN},assign-layouts,distribute-to-warps")
    )
    assert not all_of(module, gpu.Barrier)


HINT = """
module attributes {{"ttg.num-warps" = 8 : i32, ttg.target = "generic"}} {{
tt.func @f(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>) {{
  %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c0 = arith.constant 0 : i32
  %n = arith.constant 128 : i64
  %one = arith.constant 1 : i64
  %ap = tt.make_tensor_ptr %a, [%n, %n], [%n, %one], [%c0, %c0] {{order = array<i32: 1, 0>}} : <tensor<128x128xf16>>
  %bp = tt.make_tensor_ptr %b, [%n, %n], [%n, %one], [%c0, %c0] {{order = array<i32: 1, 0>}} : <tensor<128x128xf16>>
  %cp = tt.make_tensor_ptr %c, [%n, %n], [%n, %one], [%c0, %c0] {{order = array<i32: 1, 0>}} : <tensor<128x128xf32>>
  %x = tt.load %ap : !tt.ptr<tensor<128x128xf16>>
  %y = tt.load %bp : !tt.ptr<tensor<128x128xf16>>
  %d = tt.dot %x, %y, %zero tiling = {tiling} : tensor<128x128xf16> * tensor<128x128xf16> -> tensor<128x128xf32>
  tt.store %cp, %d : !tt.ptr<tensor<128x128xf32>>
  tt.return
}}
}}
"""


@pytest.mark.parametrize(
    ("tiling", "size", "count"),
    [("horizontal", (16, 128), (8, 1)), ("vertical", (128, 16), (1, 8)), ("square", (32, 64), (4, 2))],
)
def test_the_hint_decides(tiling: str, size: tuple[int, int], count: tuple[int, int]) -> None:
    module = transform(parse_module(HINT.format(tiling=tiling)), "assign-layouts")
    (dot,) = all_of(module, tt.Dot)
    assert dot.result.type.encoding is BlockedEncoding(size, count, (1, 0))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_reduction_keeps_its_axis_in_one_warp_where_others_go_round(axis: int) -> None:
    program = kernel(kernels.reductions, "*fp32, *fp32", lambda _: [], B=8, M=8, N=8, AXIS=axis).with_warps(8)
    module = program.transformed(f"{CLEAN},assign-layouts")
    first = next(op for op in all_of(module, tt.Reduce) if op.sources[0].type.rank == 3)
    cut = first.sources[0].type.encoding.cut((8, 8, 8))[axis]
    assert cut.parts(8) == 1


CARRIED_OPERAND = """
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "generic"} {
tt.func @f(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %pp = tt.splat %p : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %v = tt.load %pp : tensor<32x32x!tt.ptr<f32>>
  %w = tt.load %pp : tensor<32x32x!tt.ptr<f32>>
  %x = tt.load %pp : tensor<32x32x!tt.ptr<f32>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<32x32xf32>) : i32 {
    %d = tt.dot %a, %w, %v : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
    tt.store %pp, %d : tensor<32x32x!tt.ptr<f32>>
    %b = arith.addf %a, %a : tensor<32x32xf32>
    scf.yield %b : tensor<32x32xf32>
  }
  %s = arith.addf %v, %r : tensor<32x32xf32>
  tt.store %pp, %s : tensor<32x32x!tt.ptr<f32>>
  tt.return
}
}
"""


def test_what_a_loop_carries_has_one_encoding_wherever_it_is_reached_from() -> None:
    module = transform(parse_module(CARRIED_OPERAND), "assign-layouts")
    (loop,) = all_of(module, scf.For)
    assert loop.carried[0].type is loop.results[0].type is loop.inits[0].type
