"""What Intel's compiler makes of the library's kernels: registers, spills, and the instructions of their loops.

The block of a GEMM is the one of ML-Triton's figures: 256 x 256 x 32 for 32 warps. Sizes are divisible by 16, which is
what the compiler may know of the strides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention import attention_launch
from mltriton.kernels.attention_backward import backward_launches, choose_warp_blocks
from mltriton.kernels.attention_blocks import Blocks, choose_blocks_of_warps
from mltriton.kernels.attention_paged import Form, paged_attention_launches
from mltriton.kernels.epilogues import Epilogue, make_epilogue
from mltriton.kernels.fused_gemm import fused_matmul_launch
from mltriton.kernels.gemm import _launches, matmul_descriptor_kernel, matmul_launch
from mltriton.kernels.gemm_grouped import grouped_gemm_launch
from mltriton.kernels.gemm_tiles import Tile, choose_warp_tiles, multiplied_bytes
from mltriton.kernels.launch import Launch
from mltriton.kernels.normalization import layer_norm_launch, softmax_launch
from mltriton.kernels.products import product_of
from mltriton.kernels.stream_k import stream_k_launches
from mltriton.runtime.jit import JITFunction
from mltriton.targets.xe import isa

from .test_batches import batched, heads
from .test_transposed_stores import WAYS
from .test_transposed_stores import product as stored_product

pytestmark = pytest.mark.usefixtures("needs_ocloc")


class Info(NamedTuple):
    """What a kernel uses: registers of a warp, bytes spilled."""

    registers: int
    spilled: int


class Compiled(NamedTuple):
    """What a kernel uses, and its innermost loops that multiply, those of the fast path first."""

    info: Info
    loops: list[isa.Instructions]


def compiled(launch: Launch, name: str, warps: int, **options: bool) -> Compiled:
    target = f"xe:{name}"
    kernel = launch.kernel.warmup(*launch.arguments, **launch.constants, target=target, num_warps=warps, **options)
    text = kernel.asm["isa"]  # with the registers that the compiler asks for
    info = Info(*map(int, re.findall(r"\d+", text.splitlines()[0])))
    loops = [loop.instructions for loop in isa.innermost_loops(text) if loop.instructions.operations["dpas"]]
    return Compiled(info, sorted(loops, key=lambda loop: -loop.messages["load_block2d"]))


def gemm(dtype: type, result: type, *, left_turned: bool = False, right_turned: bool = False) -> Launch:
    a, b, c = (np.zeros((1, 1024, 1024), kind) for kind in (dtype, dtype, result))
    a, b = (x.swapaxes(1, 2) if turned else x for x, turned in ((a, left_turned), (b, right_turned)))
    return matmul_launch(a, b, c, tile=Tile(256, 256, 32, 4))


@pytest.mark.parametrize(
    ("dtype", "result", "name", "products", "most"),
    [
        (np.float16, np.float16, "pvc", 32, 79),
        (np.float16, np.float16, "bmg", 32, 70),
        (np.int8, np.int32, "pvc", 16, 56),
    ],
)
def test_loop_of_a_gemm(dtype: type, result: type, name: str, products: int, most: int) -> None:
    """Nothing but products, block loads, prefetches and the barrier's halves, with few instructions around them."""
    info, loops = compiled(gemm(dtype, result), name, 32)
    fast = loops[0]
    assert info.spilled == 0
    assert fast.operations["dpas"] == products
    assert fast.messages["load_block2d"] == (3 if dtype is np.float16 else 2)
    assert fast.messages["prefetch"] == 2
    assert fast.total <= most


@pytest.mark.parametrize(("name", "most"), [("pvc", 60), ("bmg", 53)])
def test_loop_of_a_gemm_with_address_payloads(name: str, most: int) -> None:
    """An iteration writes one coordinate of each access."""
    info, loops = compiled(gemm(np.float16, np.float16), name, 32, address_payloads=True)
    assert info.spilled == 0
    assert loops[0].operations["dpas"] == 32
    assert (loops[0].messages["load_block2d"], loops[0].messages["prefetch"]) == (3, 2)
    assert loops[0].total <= most


@pytest.mark.parametrize(("name", "most"), [("pvc", 79), ("bmg", 70)])
@pytest.mark.parametrize(("function", "batch", "tile", "warps"), [(heads, 1, 256, 32), (batched, 2, 128, 16)])
def test_loop_of_batches(function: Any, batch: int, tile: int, warps: int, name: str, most: int) -> None:
    """Blocks of rank 3 and 5 cost no more than matrices, and the kernel asks nothing of a batch."""
    x = np.zeros((8, 1024, 1024), np.float16)
    sizes = {"BB": batch, "BM": tile, "BN": tile, "BK": 32}
    info, loops = compiled(Launch(function, (4, 4, 8), (x, x, x, 8, 1024, 1024, 1024), sizes), name, warps)
    assert info.spilled == 0
    assert len(loops) == 1
    assert loops[0].operations["dpas"] == 32
    assert (loops[0].messages["load_block2d"], loops[0].messages["prefetch"]) == (3, 2)
    assert loops[0].total <= most


@pytest.mark.parametrize("how", WAYS)
def test_results_stored_by_columns(how: str) -> None:
    """A store takes 8 rows of 16 columns, as one of rows does."""
    x = np.zeros((1024, 1024), np.float16)
    arguments = (x, x, x, 1024, 1024, 32, 0, how, 256, 256)
    text = stored_product.warmup(*arguments, target="xe:pvc", num_warps=32).asm["isa"]
    counted = isa.count(text)
    assert "// 256 registers, 0 bytes spilled" in text
    assert counted.messages["store"] == 16
    assert counted.total < 700


@pytest.mark.parametrize(
    ("dtype", "name", "most"),
    [("float8_e5m2", "pvc", 180), ("float8_e4m3fn", "pvc", 470), ("float8_e4m3fn", "bmg", 460)],
)
def test_loop_of_a_gemm_of_small_floats(dtype: str, name: str, most: int) -> None:
    """A step's operands become f16 where they are, one instruction for 32 elements or half a dozen."""
    torch = pytest.importorskip("torch")
    a, b = (torch.zeros((1, 4096, 4096), dtype=getattr(torch, dtype)) for _ in range(2))
    tile, warps = choose_warp_tiles(4096, 4096, multiplied_bytes(a))
    c = torch.zeros((1, 4096, 4096))
    info, loops = compiled(matmul_launch(a, b, c, tile=tile), name, warps)
    assert (info.spilled, loops[0].operations["dpas"]) == (0, 32)
    assert (loops[0].messages["load_block2d"], loops[0].messages["prefetch"]) == (2, 2)
    assert loops[0].total <= most


@triton.jit
def tf32_product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    there = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([row, k]), right.load([k, column]), total, input_precision="tf32")
    there.store([row, column], total)


@pytest.mark.parametrize(("name", "most"), [("pvc", 118), ("bmg", 110)])
def test_loop_of_a_gemm_in_tf32(name: str, most: int) -> None:
    """The matrix engine takes f32 as it was loaded."""
    a, b, c = (np.zeros((1024, 1024), np.float32) for _ in range(3))
    blocks = {"BM": 256, "BN": 256, "BK": 32}
    info, loops = compiled(Launch(tf32_product, (4, 4), (a, b, c, 1024, 1024, 1024), blocks), name, 32)
    assert info.spilled == 0
    assert loops[0].operations["dpas"] == 64
    assert loops[0].messages["load_block2d"] == 6
    assert loops[0].total <= most


@triton.jit
def tf32_product_of_columns(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    left = tl.make_tensor_descriptor(a, [K, M], [M, 1], [BK, BM])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    there = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([k, row]).T, right.load([k, column]), total, input_precision="tf32")
    there.store([row, column], total)


@pytest.mark.parametrize(
    ("name", "payloads", "most"), [("pvc", False, 148), ("pvc", True, 140), ("bmg", False, 124), ("bmg", True, 130)]
)
def test_loop_of_a_gemm_in_tf32_with_a_transposed_left_operand(name: str, payloads: bool, most: int) -> None:
    """On PVC each of the 20 loads has an address of its own, of which an iteration writes one coordinate."""
    a, b, c = (np.zeros((1024, 1024), np.float32) for _ in range(3))
    blocks = {"BM": 256, "BN": 256, "BK": 32}
    launch = Launch(tf32_product_of_columns, (4, 4), (a, b, c, 1024, 1024, 1024), blocks)
    info, loops = compiled(launch, name, 32, address_payloads=payloads)
    assert info.spilled == 0
    assert loops[0].operations["dpas"] == 64
    assert (loops[0].messages["load_block2d"], loops[0].messages["prefetch"]) == (20, 2)
    assert loops[0].total <= most


@pytest.mark.parametrize(("name", "most"), [("pvc", 90), ("bmg", 82)])
def test_loop_of_a_gemm_with_a_transposed_right_operand(name: str, most: int) -> None:
    """Transposing loads bring what the products take: more messages, at most 1.5 times the instructions."""
    info, loops = compiled(gemm(np.float16, np.float16, right_turned=True), name, 32)
    assert info.spilled == 0
    assert loops[0].operations["dpas"] == 32
    assert (loops[0].messages["load_block2d"], loops[0].messages["prefetch"]) == (9, 2)
    assert loops[0].total <= most


@pytest.mark.parametrize(
    ("dtype", "result", "name", "products", "loads", "most"),
    [
        (np.float16, np.float16, "pvc", 32, 6, 114),
        (np.float16, np.float16, "bmg", 32, 6, 105),
        (np.int8, np.int32, "pvc", 16, 2, 88),
        (np.int8, np.int32, "bmg", 16, 2, 81),
    ],
)
def test_loop_of_a_gemm_with_a_transposed_left_operand(
    dtype: type, result: type, name: str, products: int, loads: int, most: int
) -> None:
    """Transposing loads bring words of several rows; 32 moves of regions make rows of them."""
    info, loops = compiled(gemm(dtype, result, left_turned=True), name, 32)
    assert info.spilled == 0
    assert loops[0].operations["dpas"] == products
    assert (loops[0].messages["load_block2d"], loops[0].messages["prefetch"]) == (loads, 2)
    assert loops[0].total <= most


# Of every form of attention forward one; all of them are slow together.
QUICK = {("bmg", 128, 16, True), ("pvc", 64, 8, True), ("pvc", 64, 16, False)}
FORMS = [
    pytest.param(*form, marks=[] if form in QUICK else pytest.mark.slow)
    for form in product(("pvc", "bmg"), (64, 128), (8, 16), (False, True))
    if form[1:3] != (128, 8)
]


@pytest.mark.parametrize(("name", "head", "warps", "causal"), FORMS)
def test_loops_of_attention(name: str, head: int, warps: int, causal: bool) -> None:
    """Between the two products of a step nothing goes through memory, with a mask or without, and nothing spills."""
    q, k, v, o = (np.zeros((1, 4, 1024, head), np.float16) for _ in range(4))
    launch = attention_launch(q, k, v, o, causal=causal, blocks=Blocks(128, 64))
    info, loops = compiled(launch, name, warps)
    assert (info.registers, info.spilled) == (256, 0)
    assert len(loops) == 2
    products = head * 64 * 128 * 2 // (16 * 8 * 16) // warps
    for loop in loops:
        assert loop.operations["dpas"] == products
        assert set(loop.messages) <= {"load_block2d", "prefetch"}
        # At least so many instructions of a hundred multiply, fewer where a mask is applied.
        assert 100 * products >= 4 * loop.total
    assert 100 * products >= 7 * min(loop.total for loop in loops)


def stream_k() -> Launch:
    a, b, c = (np.zeros((1, *shape), np.float16) for shape in ((1024, 4096), (4096, 1024), (1024, 1024)))
    return stream_k_launches(a, b, c, Epilogue("float16"), 20, None, Tile(256, 256, 32, 4))[0]


def grouped() -> Launch:
    a, b, c = ([np.zeros(shape, np.float16)] * 4 for shape in ((512, 1024), (1024, 512), (512, 512)))
    return grouped_gemm_launch(a, b, c, Epilogue("float16"), 20, Tile(256, 256, 32, 4))


@pytest.mark.parametrize(("launch", "loops"), [(stream_k, 1), (grouped, 2)])
def test_products_whose_matrices_the_program_finds_have_the_loop_of_a_gemm(
    launch: Callable[[], Launch], loops: int
) -> None:
    """What a launch can ask is asked there; what a program loads is asked outside of the loop over K, which then stands
    twice.
    """
    info, found = compiled(launch(), "pvc", 32)
    assert info.spilled == 0
    assert len(found) == loops
    assert (found[0].messages["load_block2d"], found[0].messages["prefetch"]) == (3, 2)
    assert found[0].total <= 79


@pytest.mark.parametrize(
    ("dtype", "products", "most"), [(np.float32, 48, 300), (np.float16, 32, 79), (np.int8, 32, 79)]
)
def test_blocks_that_are_chosen_stay_in_registers(dtype: type, products: int, most: int) -> None:
    a, b = (np.zeros((1, 4096, 4096), dtype) for _ in range(2))
    (tile, warps) = choose_warp_tiles(4096, 4096, a.itemsize)
    c = np.zeros((1, 4096, 4096), np.int32 if dtype is np.int8 else dtype)
    info, loops = compiled(matmul_launch(a, b, c, tile=tile), "pvc", warps)
    assert info.spilled == 0
    assert loops[0].operations["dpas"] == products
    assert loops[0].total <= most


@pytest.mark.parametrize(
    ("warp_level", "block", "products", "loads", "others", "most"),
    [
        (True, 64, 64, 40, 1, 520),
        (True, 16, 64, 48, 4, 980),
        (True, 8, 64, 32, 64 + 4 + 8, 1250),
        (True, 1, 64, 0, 64 + 4 + 64, 2080),
        (False, 64, 40, 34, 1, 490),
        (False, 8, 40, 8, 64 + 4 + 8, 920),
    ],
)
def test_loops_of_paged_attention(
    warp_level: bool, block: int, products: int, loads: int, others: int, most: int
) -> None:
    """A page is read by block loads, its number by one load of a scalar. Keys in small pages are loaded 16 bytes in
    each lane, a lane for each key, values that are not in pairs a row by all lanes; nothing else is loaded.
    """
    q, o = (np.zeros((4, 32, 128), np.float16) for _ in range(2))
    k, v = (np.zeros((64, block, 8, 128), np.float16) for _ in range(2))
    table, lengths = np.zeros((4, 16), np.int32), np.zeros(4, np.int32)
    form = Form(warp_level, heads=4, keys=64, block=block)
    (launch,) = paged_attention_launches(q, k, v, table, lengths, o, form=form)
    info, found = compiled(launch, "pvc", launch.constants.pop("num_warps"))
    fast = max(found, key=lambda loop: loop.operations["dpas"])
    assert info.spilled == 0
    assert fast.operations["dpas"] == products
    assert fast.messages == {name: count for name, count in (("load_block2d", loads), ("load", others)) if count}
    assert fast.total <= most


@triton.jit
def masked_product(a, b, c, n, B: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [B, B], [B, 1], [B, B])
    right = tl.make_tensor_descriptor(b, [n, B], [B, 1], [B, B])
    x, total = left.load([0, 0]), tl.zeros((B, B), tl.float32)
    for row in range(0, n, B):
        y = tl.where((row + tl.arange(0, B) < n - 3)[:, None], right.load([row, 0]), 0.0) * 2.0
        total = tl.dot(x, y.to(tl.float16).T, total)
    tl.make_tensor_descriptor(c, [B, B], [B, 1], [B, B]).store([0, 0], total)


@triton.jit
def gathered_product(a, b, table, c, n, B: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [B, B], [B, 1], [B, B])
    x, total = left.load([0, 0]), tl.zeros((B, B), tl.float32)
    for row in range(0, n, B):
        places = row + tl.arange(0, B)
        rows = tl.load(table + places, places < n, 0)
        y = tl.load(b + rows[:, None] * B + tl.arange(0, B)[None, :], (places < n)[:, None], 0.0)
        total = tl.dot(x, y.T, total)
    tl.make_tensor_descriptor(c, [B, B], [B, 1], [B, B]).store([0, 0], total)


@pytest.mark.parametrize(
    ("kernel", "messages", "most"),
    [(masked_product, {"load_block2d": 8, "prefetch": 1}, 700), (gathered_product, {"load": 18}, 180)],
)
def test_loops_with_rows_that_are_transposed(kernel: JITFunction, messages: dict[str, int], most: int) -> None:
    """A mask between load and transpose, and rows with an address each: nothing moves between lanes."""
    a, b, c = (np.zeros((1024, 64), dtype) for dtype in (np.float16, np.float16, np.float32))
    tables = () if kernel is masked_product else (np.zeros(1024, np.int32),)
    info, (loop,) = compiled(Launch(kernel, (1,), (a, b, *tables, c, 1024), {"B": 64}), "pvc", 4)
    assert info.spilled == 0
    assert loop.messages == messages
    assert loop.total <= most


@pytest.mark.parametrize(
    ("name", "activation", "added"), [("pvc", "silu", True), ("bmg", "silu", True), ("pvc", "gelu", False)]
)
def test_an_epilogue_stays_in_registers(name: str, activation: str, added: bool) -> None:
    """What is added to 128 registers of sums is loaded next to its sum; functions of them have no branches."""
    a, b, c, add = (np.zeros((1, 1024, 1024), np.float16) for _ in range(4))
    addends = (np.zeros(1024, np.float16), add) if added else (None, None)
    epilogue = make_epilogue(a, (1, 1024, 1024), *addends, activation)
    info, loops = compiled(fused_matmul_launch(a, b, c, epilogue, tile=Tile(256, 256, 32, 4)), name, 32)
    assert info.spilled == 0
    assert loops[0].messages["load_block2d"] == 3
    assert loops[0].total <= 79


@pytest.mark.parametrize(
    ("name", "dim"),
    [
        ("pvc", 128),
        pytest.param("bmg", 128, marks=pytest.mark.slow),
        pytest.param("pvc", 256, marks=pytest.mark.slow),
        pytest.param("bmg", 256, marks=pytest.mark.slow),
    ],
)
def test_attention_in_f32_stays_in_registers(name: str, dim: int) -> None:
    """Queries would take 256 registers with dimension 256, in the two parts of TF32: each step loads them again."""
    q, k, v, o = (np.zeros((1, 4, 1024, dim), np.float32) for _ in range(4))
    blocks = choose_blocks_of_warps(1024, dim, 4)
    assert blocks.warps is not None
    info, _ = compiled(attention_launch(q, k, v, o, causal=True, blocks=blocks), name, blocks.warps)
    assert (info.registers, info.spilled) == (256, 0)


def gradient(dim: int, dtype: type[np.float16] | type[np.float32]) -> tuple[Launch, int]:
    """The launch that sums gradients, and its warps."""
    do, q, k, v, o, dq, dk, dv = (np.zeros((1, 4, 1024, dim), dtype) for _ in range(8))
    blocks = choose_warp_blocks(1024, 4, dim, q.itemsize)
    assert blocks.warps is not None
    lse = np.zeros((1, 4, 1024), np.float32)
    return backward_launches(do, q, k, v, o, lse, dq, dk, dv, causal=True, blocks=blocks)[1], blocks.warps


@pytest.mark.parametrize(
    ("name", "dim", "products", "loads", "most"),
    [("pvc", 64, 40, 36, 1000), ("bmg", 64, 40, 36, 700), ("pvc", 128, 28, 34, 660), ("pvc", 256, 44, 34, 760)],
)
def test_loops_of_the_gradient_of_attention(name: str, dim: int, products: int, loads: int, most: int) -> None:
    """Scores with keys in rows: only the gradients of scores go through shared memory, to the warps that sum dq."""
    launch, warps = gradient(dim, np.float16)
    info, (masked, unmasked) = compiled(launch, name, warps)
    assert info.spilled == 0
    for loop in (masked, unmasked):
        assert loop.operations["dpas"] == products
        assert loop.messages["load"] == loads
        assert loop.total <= most


@pytest.mark.parametrize("name", ["pvc", pytest.param("bmg", marks=pytest.mark.slow)])
def test_the_gradient_in_f32_stays_in_registers(name: str) -> None:
    """Loops over parts of the dimension multiply; addresses of all these loads at once would take registers, too."""
    launch, warps = gradient(64, np.float32)
    info, loops = compiled(launch, name, warps)
    assert info.spilled == 0
    assert all(loop.operations["dpas"] == 12 for loop in loops)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_prologue_is_computed_once(dtype: type) -> None:
    """By a launch of its own, in registers: the product's loop is that of one without."""
    a, b = (np.zeros((1024, 1024), dtype) for _ in range(2))
    first, second = _launches(product_of(a, b, prologue="gelu_tanh"), "auto", None, "xe:pvc")
    own = {name: value for name, value in first.constants.items() if name not in ("target", "num_warps")}
    info, loops = compiled(first._replace(constants=own), "pvc", first.constants["num_warps"])
    assert (info.spilled, loops) == (0, [])
    assert second.kernel is matmul_descriptor_kernel
    assert second.arguments[0].ctypes.data == first.arguments[1].ctypes.data


def _softmax() -> Launch:
    x, y = (np.zeros((64, 1000), np.float32) for _ in range(2))
    return softmax_launch(x, y)


def _layer_norm() -> Launch:
    x, y = (np.zeros((64, 1000), np.float32) for _ in range(2))
    return layer_norm_launch(x, x[0], x[1], y, 1e-5)


@pytest.mark.parametrize("launch", [_softmax, _layer_norm])
def test_rows_stay_in_registers(launch: Callable[[], Launch]) -> None:
    info, _ = compiled(launch(), "pvc", 4)
    assert (info.registers, info.spilled) == (128, 0)
