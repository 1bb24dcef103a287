"""What Intel's vector compiler makes of warps' programs: registers, spills, and the instructions of their loops.

The block of the GEMM is that of ML-Triton's figures: 256 x 256 x 32 for 32 warps, as in `test_library_isa.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention import Blocks, attention_launch
from mltriton.kernels.attention_backward import backward_launches, choose_warp_blocks
from mltriton.kernels.gemm import matmul_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.launch import Launch
from mltriton.targets.xe import isa
from mltriton.targets.xe.spirv.words import read

from .test_library_isa import grouped, tf32_product, tf32_product_of_columns

pytestmark = pytest.mark.usefixtures("needs_ocloc")


def loops(launch: Launch, name: str, warps: int) -> list[isa.Instructions]:
    """The loops that multiply; nothing spills."""
    kernel = launch.kernel.warmup(
        *launch.arguments, **launch.constants, target=f"xe:{name}", codegen="simd", num_warps=warps
    )
    assert (kernel.n_regs, kernel.n_spills) == (256, 0)
    found = [loop.instructions for loop in isa.innermost_loops(kernel.asm["isa"])]
    return [loop for loop in found if loop.operations["dpas"]]


@pytest.mark.parametrize(("name", "most"), [("pvc", 70), ("bmg", 60)])
def test_loop_of_a_gemm(name: str, most: int) -> None:
    """Fewer instructions than the published 100 and 85."""
    a, b, c = (np.zeros((1, 1024, 1024), np.float16) for _ in range(3))
    [loop] = loops(matmul_launch(a, b, c, tile=Tile(256, 256, 32, 4)), name, 32)
    assert loop.operations["dpas"] == 32
    assert loop.messages == {"load_block2d": 3, "prefetch": 2, "signal": 1}
    assert loop.total <= most


@pytest.mark.parametrize(("name", "most"), [("pvc", 112), ("bmg", 101)])
def test_loop_of_a_gemm_in_tf32(name: str, most: int) -> None:
    """Operands are read as parts of what was loaded: nothing is copied."""
    a, b, c = (np.zeros((1024, 1024), np.float32) for _ in range(3))
    blocks = {"BM": 256, "BN": 256, "BK": 32}
    [loop] = loops(Launch(tf32_product, (4, 4), (a, b, c, 1024, 1024, 1024), blocks), name, 32)
    assert loop.operations["dpas"] == 64
    assert loop.messages == {"load_block2d": 6, "prefetch": 2, "signal": 1}
    assert loop.total <= most


@pytest.mark.parametrize(("name", "most"), [("pvc", 142), ("bmg", 120)])
def test_loop_of_a_gemm_in_tf32_with_a_transposed_left_operand(name: str, most: int) -> None:
    """On PVC the description of each of the 20 messages is a variable of its own."""
    a, b, c = (np.zeros((1024, 1024), np.float32) for _ in range(3))
    blocks = {"BM": 256, "BN": 256, "BK": 32}
    [loop] = loops(Launch(tf32_product_of_columns, (4, 4), (a, b, c, 1024, 1024, 1024), blocks), name, 32)
    assert loop.messages == {"load_block2d": 20, "prefetch": 2, "signal": 1}
    assert loop.total <= most


@pytest.mark.parametrize(("name", "most"), [("pvc", 425), ("bmg", 400)])
def test_loops_of_attention(name: str, most: int) -> None:
    q, k, v, o = (np.zeros((1, 4, 1024, 128), np.float16) for _ in range(4))
    fast, *_ = loops(attention_launch(q, k, v, o, causal=True, blocks=Blocks(128, 64)), name, 16)
    assert fast.operations["dpas"] == 64
    assert set(fast.messages) <= {"load_block2d", "prefetch"}
    assert fast.total <= most


def test_a_slow_path_beside_the_loop_keeps_to_the_registers() -> None:
    """Operands that are loaded register by register stay in registers beside 128 of sums."""
    [loop] = loops(grouped(), "pvc", 32)
    assert loop.messages == {"load_block2d": 3, "prefetch": 2, "signal": 1}
    assert loop.total <= 75


@pytest.mark.parametrize(("dim", "products", "most"), [(64, 40, 860), (128, 28, 580)])
def test_loops_of_the_gradient_of_attention(dim: int, products: int, most: int) -> None:
    """What warps exchange is read by rows of 64 words; other messages share their addresses."""
    do, q, k, v, o, dq, dk, dv = (np.zeros((1, 4, 1024, dim), np.float16) for _ in range(8))
    blocks = choose_warp_blocks(1024, 4, dim, q.itemsize)
    assert blocks.warps is not None
    lse = np.zeros((1, 4, 1024), np.float32)
    launch = backward_launches(do, q, k, v, o, lse, dq, dk, dv, causal=True, blocks=blocks)[1]
    masked, unmasked = loops(launch, "pvc", blocks.warps)
    for loop in (masked, unmasked):
        assert loop.operations["dpas"] == products
        assert loop.messages["load"] <= 8
        assert loop.total <= most


@triton.jit
def functions(x, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.log(tl.load(x + at)))
    tl.store(z + at, tl.erf(tl.load(x + at)))
    tl.store(y + N + at, tl.sin(tl.load(x + at)))


def test_functions_are_short() -> None:
    """Of OpenCL's own it makes 24000 instructions for so many logarithms, 18000 for erf, 10800 for sines."""
    x = np.zeros(512, np.float32)
    kernel = functions.warmup(x, x, x, 512, target="xe:pvc", codegen="simd", num_warps=1)
    assert kernel.n_spills == 0
    assert kernel.asm["isa"].count("\n") <= 6800


@triton.jit
def hinted(x, y, z, N):
    source = tl.make_tensor_descriptor(x, [16, N], [N, 1], [16, 16])
    block = tl.load_tensor_descriptor(source, [0, 16], cache_modifier=".cg")
    tl.store(tl.make_block_ptr(y, (16, 16), (16, 1), (0, 0), (16, 16), (1, 0)), block, eviction_policy="evict_first")
    lane = tl.arange(0, 16)
    tl.store(z + lane, tl.load(x + lane, cache_modifier=".cs"), cache_modifier=".wt")


def test_messages_say_how_they_are_cached() -> None:
    arrays = (np.zeros((16, 64), np.float32), np.zeros((16, 16), np.float32), np.zeros(16, np.float32))
    kernel = hinted.warmup(*arrays, 64, target="xe:bmg", codegen="simd", num_warps=1)
    found = {line.rpartition("; ")[2].split()[0] for line in kernel.asm["isa"].splitlines() if ".ugm" in line}
    assert "load_block2d.ugm.d32.a64.uc.ca" in found
    assert "store_block2d.ugm.d32.a64.st.wb" in found
    assert {"load.ugm.d32.a64.st.ca", "store.ugm.d32.a64.wt.uc"} <= found


def test_the_module_says_that_a_work_item_is_a_warp() -> None:
    a = np.zeros((1, 64, 64), np.float16)
    launch = matmul_launch(a, a, a, tile=Tile(64, 64, 32, 1))
    kernel = launch.kernel.warmup(*launch.arguments, **launch.constants, target="xe:pvc", codegen="simd", num_warps=4)
    module = read(kernel.image("spirv"))
    assert module.kernels == ["matmul_descriptor_kernel"]
    assert module.extensions == ["SPV_INTEL_vector_compute"]
    assert all(name.startswith("llvm.genx.") for name in module.imports)
