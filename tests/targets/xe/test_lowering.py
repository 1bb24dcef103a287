"""LLVM IR for Xe: what an operation becomes, what is refused, and what Intel's compiler makes of a matrix product."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import BackendError
from mltriton.ir.parser import parse_module
from mltriton.kernels.attention_backward import BackwardBlocks, backward_launches
from mltriton.targets.xe import isa
from mltriton.targets.xe.devices import Device, device
from mltriton.targets.xe.llvm.emit.kernel import emit_kernel
from spirv_validation import validate

from .block_pointer_kernels import multiply

PVC = device("pvc")
LAYOUTS = """
#pairs = #ttg.linear<{register = [[1], [32]], lane = [[2], [4], [8], [16]], warp = [], block = []}>
#turned = #ttg.linear<{register = [[32], [1]], lane = [[2], [4], [8], [16]], warp = [], block = []}>
#apart = #ttg.linear<{register = [[16], [32]], lane = [[1], [2], [4], [8]], warp = [], block = []}>
"""
POINTERS = "tensor<64x!tt.ptr<f32>, #{0}>"


def lowered(
    body: str,
    parameters: str = "%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32",
    warps: int = 1,
    device: Device = PVC,
) -> str:
    module = f"""{LAYOUTS}
module attributes {{"ttg.num-warps" = {warps} : i32, ttg.target = "xe:pvc", mltriton.level = "intrinsic"}} {{
  tt.func public @kernel({parameters}) {{
{body}
    tt.return
  }}
}}
"""
    return emit_kernel(parse_module(module), device).text


def copy(layout: str, mask: str = "") -> str:
    """Stores 1 to `a`, element by element."""
    masked = ", %mask" if mask else ""
    return f"""
    %range = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #{layout}>
    %base = tt.splat %a : !tt.ptr<f32> -> {POINTERS.format(layout)}
    %at = tt.addptr %base, %range : {POINTERS.format(layout)}, tensor<64xi32, #{layout}>
    %one = arith.constant dense<1.0> : tensor<64xf32, #{layout}>
    {mask}
    tt.store %at, %one{masked} : {POINTERS.format(layout)}
"""


def test_a_kernel_says_its_lanes_and_its_program() -> None:
    text = lowered("", warps=4)
    assert "define spir_kernel void @kernel(ptr addrspace(1) %arg0, i32 %arg1) #0 !intel_reqd_sub_group_size" in text
    assert "!opencl.enable.FP_CONTRACT = !{}" in text
    assert "!{i32 64, i32 1, i32 1}" in text


def test_neighbours_in_memory_are_accessed_together() -> None:
    text = lowered(copy("pairs"))
    assert text.count("store <2 x float>") == 2
    assert ", align 8" in text


def test_neighbours_in_any_order_of_registers_are_accessed_together() -> None:
    text = lowered(copy("turned"))
    assert text.count("store <2 x float>") == 2
    assert "store float" not in text


def test_what_lies_apart_is_accessed_alone() -> None:
    text = lowered(copy("apart"))
    assert text.count("store float") == 4
    assert "store <" not in text


def test_a_mask_within_vectors_is_asked_once() -> None:
    mask = """%bound = tt.splat %n : i32 -> tensor<64xi32, #pairs>
    %mask = arith.cmpi slt, %range, %bound : tensor<64xi32, #pairs>"""
    text = lowered(copy("pairs", mask))
    assert text.count("sub_group_all") == 2  # declared and called
    assert text.count("store <2 x float>") == 2
    assert text.count("__spirv_PredicatedStoreINTEL") == 5
    assert text.count("label") == 4  # of the choice between both


def test_a_device_without_predicates_branches() -> None:
    mask = """%bound = tt.splat %n : i32 -> tensor<64xi32, #apart>
    %mask = arith.cmpi slt, %range, %bound : tensor<64xi32, #apart>"""
    text = lowered(copy("apart", mask), device=replace(PVC, predicated=False))
    assert "Predicated" not in text
    assert text.count("store float") == 4
    assert text.count("br i1") == 4
    assert "br i1" not in lowered(copy("apart", mask))


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n, other=1.0) + 1.0, mask=i < n)


@pytest.mark.usefixtures("needs_ocloc", "needs_validator")
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "i8", "fp64"])
def test_lanes_do_not_branch_for_their_masks(dtype: str) -> None:
    """Every access is sent under its lanes' masks; what all lanes agree on may be a jump."""
    compiled = triton.compile(add, f"*{dtype}, *{dtype}, i32, 512", target="xe:pvc")
    assert validate(compiled.image("spirv"))
    operations = isa.count(compiled.asm["isa"]).operations
    assert not operations.keys() & {"goto", "join", "if", "endif"}


def test_renamed_registers_cost_nothing() -> None:
    """The registers of a matrix product's result are those of the next one's left operand."""
    dpas = """#ttig.dpas<{repeatCount = 8, systolicDepth = 8, executionSize = 16, opsPerChan = 2, threadsPerWarp = 16,
      warpsPerCTA = [1, 1], repCluster = [1, 1]}>"""
    operand = f"#ttg.dot_op<{{opIdx = 0, parent = {dpas}}}>"
    text = lowered(f"""
    %x = arith.constant dense<1.0> : tensor<8x16xf16, {dpas}>
    %y = ttg.convert_layout %x : tensor<8x16xf16, {dpas}> -> tensor<8x16xf16, {operand}>
""")
    assert "shuffle" not in text
    assert "select" not in text


def test_an_operation_without_a_lowering_is_refused_at_its_line() -> None:
    with pytest.raises(BackendError, match=r"ttg\.async_wait has no lowering for pvc"):
        lowered("    %w = ttg.async_wait {num = 0 : i32}")


def test_a_block_without_an_encoding_is_refused() -> None:
    with pytest.raises(BackendError, match="no encoding"):
        lowered("    %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>")


@pytest.mark.usefixtures("needs_ocloc")
@pytest.mark.parametrize(("target", "most"), [("xe:pvc", 79), ("xe:bmg", 70)])
def test_the_loop_of_a_matrix_product(target: str, most: int) -> None:
    """32 matrix instructions, one load for a and two for b, all values in registers."""
    signature = "*fp16:16, *fp16:16, *fp32:16, i32, i32:16, i32:16, 256, 256, 32"
    kernel = triton.compile(multiply, signature, target=target, num_warps=32)
    text = kernel.asm["asm"]
    assert kernel.n_spills == 0
    lines = text.splitlines()
    bodies = [isa.count("\n".join(lines[loop.first : loop.last + 1])) for loop in isa.innermost_loops(text)]
    [fast] = [body for body in bodies if body.messages["load_block2d"]]
    assert fast.operations["dpas"] == 32
    assert fast.messages["load_block2d"] == 3
    assert sum(fast.operations.values()) <= most


def test_halves_of_a_transposed_block_that_no_product_takes_are_taken_one_by_one() -> None:
    """Keys that are loaded transposed and go to other warps: their registers are no vectors."""
    do, q, k, v, o, dq, dk, dv = (np.zeros((1, 1, 64, 64), np.float16) for _ in range(8))
    lse = np.zeros((1, 1, 64), np.float32)
    blocks = BackwardBlocks(queries=16, keys=64, splits=1)
    launch = backward_launches(do, q, k, v, o, lse, dq, dk, dv, causal=True, blocks=blocks)[1]
    kernel = launch.kernel.warmup(*launch.arguments, **launch.constants, target="xe:pvc", num_warps=8)
    assert "Subgroup2DBlockLoadTranspose" in kernel.asm["llvm"]
