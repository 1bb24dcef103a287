# pyright: basic
"""schedule-loads: results stay, fewer registers are needed, and loads stay on their side of stores and barriers."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.analysis.registers import RegisterEstimate
from mltriton.dialects import gpu, scf, tt, ttg
from mltriton.executor import run
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.passes.intrinsic.reloads import Reloads
from mltriton.targets.registry import spec_of

from .. import kernels
from ..programs import LIBRARY, Program, flash_attention, matmul, transform

CLEAN = "canonicalize,cse,combine,reorder-broadcast,canonicalize,cse,licm,dce"
PASSES = "assign-layouts,cse,prefetch{distance=1},distribute-to-warps,canonicalize,cse,licm,dce,match-target-size"
INTRINSIC = f"{CLEAN},{PASSES},canonicalize,cse,dce"


def needed(module: Module) -> int:
    (function,) = module.body.block.ops
    return RegisterEstimate(function, spec_of(module)).peak.registers


def registers(program: Program, options: str = "ahead=0") -> tuple[int, int]:
    """What a program needs before and after, its results compared."""
    before = program.transformed(INTRINSIC)
    count = sum(1 for _ in before.walk())
    after = program.check(f"{INTRINSIC},schedule-loads{{{options}}}")
    assert sum(1 for _ in after.walk()) == count, "operations change their place, nothing else"
    return needed(before), needed(after)


@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("name", LIBRARY)
def test_results_stay(name: str, ahead: int) -> None:
    registers(LIBRARY[name].with_warps(2), f"ahead={ahead}")


@pytest.mark.parametrize("causal", [False, True])
def test_attention_needs_fewer_registers(causal: bool) -> None:
    """Keys and values of 64x64: alive one load after the other, not all at once."""
    program = flash_attention(causal, queries=32, keys=64, dim=64, dtype="fp16", BM=32, BN=64).with_warps(2)
    before, one_ahead = registers(program, "ahead=1")
    _, after = registers(program)
    assert after + 32 <= one_ahead and one_ahead + 32 <= before


def test_what_fits_stays_as_it_is() -> None:
    program = matmul(kernels.matmul_block_pointer, BM=32, BN=32).with_warps(4)
    before = str(program.transformed(INTRINSIC))
    assert str(program.transformed(f"{INTRINSIC},schedule-loads")) == before


def test_what_does_not_fit_changes() -> None:
    program = flash_attention(True, queries=32, keys=64, dim=64, dtype="fp16", BM=32, BN=64).with_warps(2)
    module = program.transformed(INTRINSIC)
    before = needed(module)
    after = needed(transform(module, "schedule-loads"))
    assert after <= 256 < before


def test_blocks_that_a_loop_never_changes_are_loaded_in_it() -> None:
    """Queries of 32x64 wait in memory, not in registers."""
    program = flash_attention(True, queries=32, keys=64, dim=64, dtype="fp16", BM=32, BN=64).with_warps(2)
    module = program.check(f"{INTRINSIC},schedule-loads{{ahead=0,reload=true}}")
    assert needed(module) + 15 <= registers(program)[1]


def test_repeated_loads_can_be_taken_back() -> None:
    program = flash_attention(True, queries=32, keys=64, dim=64, dtype="fp16", BM=32, BN=64).with_warps(2)
    module = program.transformed(INTRINSIC)
    before = str(module)
    reloads = Reloads(module.body.block.ops[0])
    assert reloads.repeat() and str(module) != before
    reloads.undo()
    assert str(module) == before


LOOP = """
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "generic"} {
tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %b: tensor<8x16xf32>, %n: i32, %one: i64, %long: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<8x16xf32>
  %at = tt.make_tensor_ptr %p, [%long, %long], [%long, %one], [%c0, %c0] {order = array<i32: 1, 0>} : <tensor<8x8xf32>>
  %to = tt.make_tensor_ptr %TO, [%long, %long], [%long, %one], [%n, %c0] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
  %a = tt.load %at ATTRIBUTES : !tt.ptr<tensor<8x8xf32>>
  BEFORE
  scf.for %i = %c0 to %n step %c1 : i32 {
    %d = tt.dot %a, %b, %zero : tensor<8x8xf32> * tensor<8x16xf32> -> tensor<8x16xf32>
    tt.store %to, %d : !tt.ptr<tensor<8x16xf32>>
  }
  tt.return
}
}
"""


@pytest.mark.parametrize(
    ("written", "attributes", "before", "repeated"),
    [
        ("q", "", "", True),
        ("p", "", "", False),
        ("q", "", "tt.store %at, %a : !tt.ptr<tensor<8x8xf32>>", False),
        ("q", "{isVolatile = true}", "", False),
    ],
)
def test_a_loop_loads_again_only_what_is_never_written(
    written: str, attributes: str, before: str, repeated: bool
) -> None:
    text = LOOP.replace("TO", written).replace("ATTRIBUTES", attributes).replace("BEFORE", before)
    module = transform(parse_module(text, "loop.mlir"), "schedule-loads{ahead=0,reload=true}")
    (load,) = (op for op in module.walk() if isinstance(op, tt.Load))
    assert isinstance(load.parent_op, scf.For) == repeated


FENCES = """
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "generic"} {
tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %x = tt.load %p : !tt.ptr<f32>
  %unused = tt.load %p : !tt.ptr<f32>
  %c2 = arith.constant 2.0 : f32
  FENCE
  %y = tt.load %p : !tt.ptr<f32>
  %s = arith.addf %x, %y : f32
  tt.store %q, %s : !tt.ptr<f32>
  tt.return
}
}
"""


@pytest.mark.parametrize("fence", ["tt.store %p, %c2 : !tt.ptr<f32>", "gpu.barrier"])
def test_loads_stay_before_what_may_write(fence: str) -> None:
    module = transform(parse_module(FENCES.replace("FENCE", fence), "fences.mlir"), "schedule-loads{ahead=0}")
    kinds = [type(op) for op in module.walk() if isinstance(op, tt.Load | tt.Store | gpu.Barrier | ttg.LocalAlloc)]
    assert kinds[:2] == [tt.Load, tt.Load] and kinds[3] is tt.Load


BARRIER = """
module attributes {mltriton.level = "intrinsic", "ttg.num-warps" = 1 : i32, ttg.target = "generic"} {
tt.func public @f(%at: !tt.ptr<tensor<8x8xf32>>, %to: !tt.ptr<tensor<8x16xf32>>, %b: tensor<8x16xf32>) {
  %a = tt.load %at : !tt.ptr<tensor<8x8xf32>>
  gpu.barrier
  %d = tt.dot %a, %b, %b : tensor<8x8xf32> * tensor<8x16xf32> -> tensor<8x16xf32>
  STORE
  tt.return
}
}
"""


@pytest.mark.parametrize(("stored", "crosses"), [(False, True), (True, False)])
def test_only_loads_of_what_is_never_written_cross_barriers(stored: bool, crosses: bool) -> None:
    """Behind a barrier, another warp may write what the program writes at the same places."""
    text = BARRIER.replace("STORE", "tt.store %to, %d : !tt.ptr<tensor<8x16xf32>>" if stored else "")
    module = transform(parse_module(text, "barrier.mlir"), "schedule-loads{ahead=0}")
    kinds = [type(op) for op in module.walk() if isinstance(op, tt.Load | gpu.Barrier)]
    assert (kinds == [gpu.Barrier, tt.Load]) == crosses


def test_the_value_before_a_store_is_loaded() -> None:
    module = parse_module(FENCES.replace("FENCE", "tt.store %p, %c2 : !tt.ptr<f32>"), "fences.mlir")
    p, q = np.array([40], np.float32), np.zeros(1, np.float32)
    run(transform(module, "schedule-loads{ahead=0}"), [p, q], (1,))
    assert (p[0], q[0]) == (2, 42)
