"""split-barriers, and barriers in two halves: results stay, no memory access is ordered, bad pairs are refused."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.dialects import scf, ttig
from mltriton.errors import VerificationError
from mltriton.executor import Options, run
from mltriton.executor.faults import DataRace
from mltriton.ir.parser import parse_module
from mltriton.ir.verifier import verify
from mltriton.passes.levels import verify_level

from .. import kernels
from ..programs import Program, flash_attention, matmul

WARP = "canonicalize,cse,combine,reorder-broadcast,canonicalize,cse,licm,dce,assign-layouts,cse,distribute-to-warps"
INTRINSIC = "canonicalize,cse,licm,dce,match-target-size,canonicalize,cse,dce"


def halves(program: Program, options: str) -> list[ttig.BarrierArrive | ttig.BarrierWait]:
    """The halves of barriers in a program at level intrinsic, after its results were compared."""
    module = program.check(f"{WARP},split-barriers{{{options}}},{INTRINSIC}", options=Options(order="shuffled"))
    return [op for op in module.walk() if isinstance(op, ttig.BarrierArrive | ttig.BarrierWait)]


@pytest.mark.parametrize("kernel", [kernels.matmul_block_pointer, kernels.matmul_descriptor])
def test_a_product_keeps_its_warps_together(kernel: object) -> None:
    arrive, wait = halves(matmul(kernel, BM=32, BN=32).with_warps(4), "warps=4")
    assert isinstance(arrive.parent_op, scf.For) and arrive.parent_op is wait.parent_op


def test_attention_is_asked_for() -> None:
    program = flash_attention(True, BM=32, BN=32).with_warps(4)
    assert not halves(program, "warps=4")
    assert len(halves(program, "warps=4,chained=true")) == 2
    assert not halves(program, "warps=8,chained=true")


def test_one_warp_waits_for_nobody() -> None:
    assert not halves(matmul(kernels.matmul_descriptor).with_warps(1), "warps=1")


ARRIVE, WAIT = "ttig.barrier_arrive", "ttig.barrier_wait"
BUFFER, ELEMENT = (f"!ttg.memdesc<{size}xi32, #ttg.shared_memory, mutable>" for size in (2, 1))
EXCHANGE = f"""
module attributes {{mltriton.level = "intrinsic", mltriton.warp_level = true, "ttg.num-warps" = 2 : i32}} {{
tt.func public @exchange(%p: !tt.ptr<i32>) {{
  %c1 = arith.constant 1 : i32
  %id = gpu.subgroup_id : index
  %warp = arith.index_cast %id : index to i32
  %other = arith.subi %c1, %warp : i32
  %shared = ttg.local_alloc : () -> {BUFFER}
  %mine = ttg.memdesc_subview %shared[%warp] : {BUFFER} -> {ELEMENT}
  %theirs = ttg.memdesc_subview %shared[%other] : {BUFFER} -> {ELEMENT}
  %value = tt.splat %warp : i32 -> tensor<1xi32>
  ttg.local_store %value, %mine : tensor<1xi32> -> {ELEMENT}
  BARRIER
  %found = ttg.local_load %theirs : {ELEMENT} -> tensor<1xi32>
  %scalar = tt.unsplat %found : tensor<1xi32>
  %q = tt.addptr %p, %warp : !tt.ptr<i32>, i32
  tt.store %q, %scalar : !tt.ptr<i32>
  tt.return
}}
}}
"""


def test_it_orders_no_memory_accesses() -> None:
    """What one warp stores before a whole barrier another may load after it; not so with two halves."""
    out = np.zeros(2, np.int32)
    run(parse_module(EXCHANGE.replace("BARRIER", "gpu.barrier"), "x.mlir"), [out], (1,))
    assert out.tolist() == [1, 0]
    module = parse_module(EXCHANGE.replace("BARRIER", f"{ARRIVE}\n{WAIT}"), "x.mlir")
    with pytest.raises(DataRace):
        run(module, [out], (1,))


LOOP = "scf.for %i = %c0 to %c0 step %c0 : i32 {{\n{}\n}}"
BAD = {
    "no wait": (ARRIVE, "the next barrier must be its wait", "the end of the block"),
    "no arrive": (WAIT, "waits for what has not arrived", "the start of the block"),
    "arrives twice": (f"{ARRIVE}\n{ARRIVE}\n{WAIT}", "the next barrier must be its wait", "ttig.barrier_arrive"),
    "waits twice": (f"{ARRIVE}\n{WAIT}\n{WAIT}", "waits for what has not arrived", "ttig.barrier_wait"),
    "a barrier between": (f"{ARRIVE}\ngpu.barrier\n{WAIT}", "the next barrier must be its wait", "gpu.barrier"),
    "a barrier in a loop between": (
        f"{ARRIVE}\n{LOOP.format('gpu.barrier')}\n{WAIT}",
        "the next barrier must be its wait",
        "scf.for",
    ),
    "waits in another block": (f"{ARRIVE}\n{LOOP.format(WAIT)}", "the next barrier must be its wait", "scf.for"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_pairs(case: str) -> None:
    text, message, found = BAD[case]
    body = f"tt.func @f() {{\n%c0 = arith.constant 0 : i32\n{text}\ntt.return\n}}"
    whole = f'module attributes {{mltriton.level = "warp"}} {{\n{body}\n}}'
    with pytest.raises(VerificationError, match=message) as error:
        module = parse_module(whole, "bad.mlir")
        verify(module)
        verify_level(module)
    report = error.value.render()
    assert report.startswith("bad.mlir:") and f"found {found}" in report
