"""How many registers a program needs: small programs by hand, and products against what Intel's compiler takes."""

from __future__ import annotations

import pytest

from mltriton.analysis.registers import RESERVED, Peak, RegisterEstimate, choose_mode
from mltriton.dialects import tt
from mltriton.ir.parser import parse_module
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.targets.base import RegisterMode
from mltriton.targets.registry import spec

GENERIC = spec("generic")


def peak(body: str, parameters: str = "", header: str = "") -> Peak:
    """The fullest point of a function at level intrinsic; blocks of 8x16xf32 take 8 registers."""
    text = f"{header}\ntt.func @f({parameters}) {{\n{body}\ntt.return\n}}"
    (function,) = parse_module(text, "f.mlir").body.block.ops
    return RegisterEstimate(function, GENERIC).peak


def blocks(registers: int, more: int = 1) -> int:
    """With scalars, which take `more` registers together."""
    return registers + more + RESERVED


T = "tensor<8x16xf32>"
P = f"!tt.ptr<{T}>"
LOADS = "\n".join(f"%x{i} = tt.load %p : {P}" for i in range(3))


def test_what_is_used_later_is_alive() -> None:
    sums = f"%s = arith.addf %x0, %x1 : {T}\n%t = arith.addf %s, %x2 : {T}\ntt.store %p, %t : {P}"
    assert peak(f"{LOADS}\n{sums}", f"%p: {P}").registers == blocks(24)


def test_a_result_takes_over_what_dies() -> None:
    """Two operands that live on leave no place for the sum; nobody uses the third block."""
    body = f"%s = arith.addf %x0, %x1 : {T}\ntt.store %p, %s : {P}\ntt.store %p, %x0 : {P}\ntt.store %p, %x1 : {P}"
    assert peak("\n".join([*LOADS.splitlines()[:2], body]), f"%p: {P}").registers == blocks(24)


def test_parts_are_their_whole() -> None:
    body = (
        "%x = tt.load %q : !tt.ptr<tensor<32x32xf16>>\n"
        + "\n".join(f"%p{i} = ttig.extract %x[{i}] : tensor<32x32xf16> -> tensor<8x16xf16>" for i in range(8))
        + "\n%g = ttig.glue "
        + ", ".join(f"%p{i}" for i in range(8))
        + " : ("
        + ", ".join(["tensor<8x16xf16>"] * 8)
        + ") -> tensor<32x32xf16>\ntt.store %q, %g : !tt.ptr<tensor<32x32xf16>>"
    )
    assert peak(body, "%q: !tt.ptr<tensor<32x32xf16>>").registers == blocks(32)


def test_an_accumulator_stays_and_what_a_loop_uses_is_alive_all_the_while() -> None:
    body = f"""
    %zero = arith.constant dense<0.0> : {T}
    %b = tt.load %pb : !tt.ptr<tensor<16x16xf16>>
    %r = scf.for %i = %n to %n step %n iter_args(%acc = %zero) -> ({T}) : i32 {{
      %a = tt.load %pa : !tt.ptr<tensor<8x16xf16>>
      %d = tt.dot %a, %b, %acc : tensor<8x16xf16> * tensor<16x16xf16> -> {T}
      scf.yield %d : {T}
    }}
    tt.store %p, %r : {P}"""
    parameters = f"%p: {P}, %pa: !tt.ptr<tensor<8x16xf16>>, %pb: !tt.ptr<tensor<16x16xf16>>, %n: i32"
    found = peak(body, parameters)
    assert found.registers == blocks(8 + 8 + 4)
    assert isinstance(found.op, tt.Dot | tt.Load)
    assert [count for _, count in found.values][:3] == [8, 8, 4]


def test_lanes_that_hold_the_same_count() -> None:
    """A row of 8 sums, which 16 lanes hold each: 8 registers, not half of one."""
    header = """
#dpas = #ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, threadsPerWarp = 16, \
warpsPerCTA = [1, 1], repCluster = [1, 1]}>
#rows = #ttg.slice<{dim = 1, parent = #dpas}>"""
    body = "%a = arith.addf %x, %y : tensor<8xf32, #rows>\n%b = arith.addf %a, %y : tensor<8xf32, #rows>"
    parameters = "%x: tensor<8xf32, #rows>, %y: tensor<8xf32, #rows>"
    assert peak(body, parameters, header).registers == blocks(16, 0)
    assert peak(body.replace(", #rows", ""), parameters.replace(", #rows", "")).registers == blocks(2, 0)


GEMM = """
module attributes {{"ttg.num-warps" = 32 : i32, ttg.target = "{target}", "ttg.num-stages" = 3 : i32}} {{
tt.func public @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %y: i32, %x: i32, %n: i64, %end: i32) {{
  %cst = arith.constant dense<0.0> : tensor<256x{columns}xf32>
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c1 = arith.constant 1 : i64
  %da = tt.make_tensor_descriptor %a, [%end, %end], [%n, %c1] : <f16>, <tensor<256x32xf16>>
  %db = tt.make_tensor_descriptor %b, [%end, %end], [%n, %c1] : <f16>, <tensor<32x{columns}xf16>>
  %dc = tt.make_tensor_descriptor %c, [%end, %end], [%n, %c1] : <f32>, <tensor<256x{columns}xf32>>
  %r = scf.for %k = %c0 to %end step %c32 iter_args(%acc = %cst) -> (tensor<256x{columns}xf32>) : i32 {{
    %va = tt.descriptor_load %da[%y, %k] : !tt.tensordesc<tensor<256x32xf16>> -> tensor<256x32xf16>
    %vb = tt.descriptor_load %db[%k, %x] : !tt.tensordesc<tensor<32x{columns}xf16>> -> tensor<32x{columns}xf16>
    %d = tt.dot %va, %vb, %acc : tensor<256x32xf16> * tensor<32x{columns}xf16> -> tensor<256x{columns}xf32>
    scf.yield %d : tensor<256x{columns}xf32>
  }}
  tt.descriptor_store %dc[%y, %x], %r : !tt.tensordesc<tensor<256x{columns}xf32>>, tensor<256x{columns}xf32>
  tt.return
}}
}}
"""


# What IGC takes for the same products written by hand, and the registers that their blocks have.
@pytest.mark.parametrize("target", ["generic", "xe:pvc", "xe:bmg"])
@pytest.mark.parametrize(("columns", "measured", "data"), [(256, 237, 224), (128, 152, 128)])
def test_products(columns: int, measured: int, data: int, target: str) -> None:
    device = spec(target)
    module = parse_module(GEMM.format(target=target, columns=columns), "gemm.mlir")
    module = PassManager(parse_pipeline(",".join(device.pipeline[1:]))).run(module)
    (function,) = module.body.block.ops
    found = RegisterEstimate(function, device).peak
    assert data < found.registers <= measured + 4
    assert choose_mode(device, found.registers, 32) == RegisterMode(256, 32)


def test_modes() -> None:
    assert choose_mode(GENERIC, 100, 64) == RegisterMode(128, 64)
    assert choose_mode(GENERIC, 200, 64) == RegisterMode(128, 64), "more warps than may have more registers"
    assert choose_mode(GENERIC, 200, 16) == RegisterMode(256, 32)
    assert choose_mode(GENERIC, 400, 16) == RegisterMode(256, 32)
    assert choose_mode(spec("cpu"), 100, 1) is None
