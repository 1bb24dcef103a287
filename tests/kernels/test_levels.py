"""Every kernel of the library at every level, and as machine code: all must agree with level tt."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mltriton as triton
from accuracy import random
from combinations import each_value
from levels import check_levels
from mltriton.errors import TargetError
from mltriton.kernels.attention import attention_launch, flash_attention_with_lse
from mltriton.kernels.attention_backward import BackwardBlocks, backward_launches
from mltriton.kernels.attention_blocks import Blocks
from mltriton.kernels.attention_paged import Form, paged_attention_launches
from mltriton.kernels.epilogues import make_epilogue
from mltriton.kernels.fused_gemm import fused_matmul_launch
from mltriton.kernels.gemm import Tile, matmul_launch
from mltriton.kernels.launch import Launch
from mltriton.kernels.losses import cross_entropy_launch, of_long_rows
from mltriton.kernels.normalization import layer_norm_launch, softmax_launch
from mltriton.kernels.normalization_backward import BackwardRows, norm_backward_launches
from processors import NARROWER

KERNELS = [
    "gemm:matmul_pointer_kernel",
    "gemm:matmul_block_pointer_kernel",
    "gemm:matmul_descriptor_kernel",
    "gemm_resident:matmul_resident_kernel",
    "gemm_persistent:matmul_persistent_kernel",
    "gemm_few_groups:few_groups_kernel",
    "fused_gemm:fused_matmul_kernel",
    "fused_gemm:transform_kernel",
    "split_k:split_k_kernel",
    "split_k:split_k_reduce_kernel",
    "stream_k:stream_k_kernel",
    "stream_k:stream_k_fix_kernel",
    "gemm_grouped:grouped_gemm_kernel",
    "attention:attention_kernel",
    "attention_rows:attention_rows_kernel",
    "attention_persistent:attention_persistent_kernel",
    "attention_varlen:attention_varlen_kernel",
    "attention_varlen_backward:varlen_backward_keys_kernel",
    "attention_varlen_backward:varlen_backward_queries_kernel",
    "attention_backward:prepare_backward_kernel",
    "attention_backward:attention_backward_kernel",
    "attention_backward:sum_splits_kernel",
    "attention_backward_blocks:attention_backward_keys_kernel",
    "attention_backward_blocks:attention_backward_queries_kernel",
    "attention_backward_added:prepare_added_kernel",
    "attention_backward_added:attention_backward_added_kernel",
    "attention_backward_shares:attention_backward_keys_shared_kernel",
    "attention_backward_shares:add_shares_kernel",
    "attention_backward_added:finish_added_kernel",
    "attention_backward_persistent:attention_backward_keys_persistent_kernel",
    "attention_backward_persistent:attention_backward_queries_persistent_kernel",
    "attention_paged_kernels:paged_attention_kernel",
    "attention_paged_kernels:paged_attention_warps_kernel",
    "attention_paged_kernels:combine_splits_kernel",
    "attention_paged_tiles:paged_attention_tiles_kernel",
    "attention_paged_varlen_kernel:paged_attention_varlen_kernel",
    "normalization:softmax_kernel",
    "normalization:softmax_long_kernel",
    "normalization:layer_norm_kernel",
    "normalization:layer_norm_long_kernel",
    "normalization_backward:softmax_backward_kernel",
    "normalization_backward:norm_backward_kernel",
    "normalization_backward:norm_backward_long_kernel",
    "normalization_backward:sum_parts_kernel",
    "losses:cross_entropy_kernel",
    "losses:cross_entropy_long_kernel",
    "rotary:rope_kernel",
]
RNG = np.random.default_rng(4)


@pytest.mark.parametrize("target", ["generic", "cpu"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_its_own_example(kernel: str, target: str) -> None:
    check_levels(f"mltriton.kernels.{kernel}", target=target)


@each_value(
    (
        "kernel",
        [
            "gemm:matmul_descriptor_kernel",
            "fused_gemm:fused_matmul_kernel",
            "stream_k:stream_k_kernel",
            "gemm_grouped:grouped_gemm_kernel",
            "attention:attention_kernel",
            "attention_persistent:attention_persistent_kernel",
            "attention_backward:attention_backward_kernel",
            "attention_paged_kernels:paged_attention_kernel",
            "attention_paged_kernels:paged_attention_warps_kernel",
            "attention_paged_varlen_kernel:paged_attention_varlen_kernel",
            "normalization:softmax_kernel",
            "normalization:layer_norm_long_kernel",
        ],
    ),
    ("target", NARROWER),
)
def test_other_instruction_sets(kernel: str, target: str) -> None:
    check_levels(f"mltriton.kernels.{kernel}", target=target)


def gemm(dtype: str, out: str, transposed: bool = False, of_b: str | None = None) -> Launch:
    a, b = random(RNG, (1, 40, 70), dtype), random(RNG, (1, 70, 50), of_b or dtype)
    b = b.swapaxes(1, 2) * 1 if transposed else b
    b = b.swapaxes(1, 2) if transposed else b
    return matmul_launch(a, b, random(RNG, (1, 40, 50), out), tile=Tile(32, 32, 64, 4))


def short_steps() -> Launch:
    """Of two bytes along K, which no micro-kernel takes."""
    a, b = random(RNG, (1, 20, 7), "int8"), random(RNG, (1, 7, 18), "uint8")
    return matmul_launch(a, b, np.zeros((1, 20, 18), np.int32), "pointer", Tile(16, 16, 2, 4))


def attention(dtype: str, causal: bool) -> Launch:
    q, k, v = (random(RNG, (1, 1, length, 20), dtype) for length in (40, 70, 70))
    return attention_launch(q, k, v, q * 0, causal, blocks=Blocks(32, 32))


def backward(dtype: str, causal: bool) -> Launch:
    do, q, k, v = (random(RNG, (1, heads, length, 20), dtype) for heads, length in ((2, 40), (2, 40), (1, 70), (1, 70)))
    o, lse = flash_attention_with_lse(q, k, v, causal)
    blocks = BackwardBlocks(16, 32, 1)
    prepare, main, *_ = backward_launches(do, q, k, v, o, lse, q * 0, k * 0, v * 0, causal, blocks=blocks)
    prepare.run()
    return main


def paged(dtype: str, warp_level: bool) -> Launch:
    q, table = random(RNG, (2, 6, 20), dtype), np.array([[4, 0, 2], [1, 4, 3]], np.int32)
    k_cache, v_cache = (random(RNG, (5, 32, 2, 20), dtype) for _ in range(2))
    lens, slopes = np.array([70, 33], np.int32), np.linspace(0.1, 0.6, 6, dtype=np.float32)
    if dtype == "bfloat16":
        torch = pytest.importorskip("torch")
        table, lens, slopes = map(torch.from_numpy, (table, lens, slopes))
    form = Form(warp_level, heads=1, keys=16)
    launches = paged_attention_launches(q, k_cache, v_cache, table, lens, q * 0, 0.3, slopes, 5.0, form)
    return launches[0]


def rows(dtype: str, is_centred: bool = True) -> Launch:
    x = random(RNG, (4, 300), dtype)
    return layer_norm_launch(x, x[0], x[1] if is_centred else None, x * 0, 1e-5)


def losses_by_lanes() -> Launch:
    logits, labels = random(RNG, (4, 300), "float16"), np.array([3, 299, -1, 200])
    launch = cross_entropy_launch(logits, labels, np.zeros(4, np.float32), logits * 0, None, -1)
    return of_long_rows(launch, 16, 4, 2)


def rows_backward(dtype: str, sums: int, block: int) -> Launch:
    x, dy, dx = (random(RNG, (5, 300), dtype) for _ in range(3))
    parts = random(RNG, (sums, 2, 300), "float64" if dtype == "float64" else "float32")
    return norm_backward_launches(dx, dy, x[:sums] * 0, parts, x, x[0], 1e-5, BackwardRows(1, block, 2))[0]


def fused(dtype: str, out: str, activation: str) -> Launch:
    a, b, add = (random(RNG, (1, *shape), dtype) for shape in ((40, 70), (70, 50), (40, 50)))
    epilogue = make_epilogue(a, (1, 40, 50), add[0, 0], add, activation, out)
    c = random(RNG, (1, 40, 50), out)
    return fused_matmul_launch(a, b, c, epilogue, None, Tile(32, 32, 64, 4))


LAUNCHES: dict[str, Callable[[], Launch]] = {
    "gemm, bf16": lambda: gemm("bfloat16", "bfloat16"),
    "gemm, f64": lambda: gemm("float64", "float64"),
    "gemm, int8": lambda: gemm("int8", "int8"),
    "gemm, uint8": lambda: gemm("uint8", "int32"),
    "gemm, uint8 by int8, b transposed": lambda: gemm("uint8", "int32", transposed=True, of_b="int8"),
    "gemm, int8 by uint8, short steps": short_steps,
    "gemm, f16, b transposed": lambda: gemm("float16", "float16", transposed=True),
    "fused gemm, bf16": lambda: fused("bfloat16", "bfloat16", "gelu"),
    "fused gemm, int8 to f16": lambda: fused("int8", "float16", "gelu_tanh"),
    "attention, f32, more keys than queries": lambda: attention("float32", causal=False),
    "causal attention, bf16": lambda: attention("bfloat16", causal=True),
    "attention backward, f32, more keys than queries": lambda: backward("float32", causal=False),
    "causal attention backward, bf16": lambda: backward("bfloat16", causal=True),
    "paged attention, bf16": lambda: paged("bfloat16", warp_level=False),
    "paged attention by warps, f16": lambda: paged("float16", warp_level=True),
    "paged attention by warps, bf16": lambda: paged("bfloat16", warp_level=True),
    "softmax, f16": lambda: softmax_launch(random(RNG, (4, 100), "float16"), random(RNG, (4, 100), "float16")),
    "layer norm, f64": lambda: rows("float64"),
    "layer norm, bf16": lambda: rows("bfloat16"),
    "cross entropy by lanes, f16": losses_by_lanes,
    "rms norm, f16": lambda: rows("float16", is_centred=False),
    "rms norm backward, f32": lambda: rows_backward("float32", 1, 512),
    "rms norm backward in pieces, f64": lambda: rows_backward("float64", 1, 128),
    "layer norm backward, f16": lambda: rows_backward("float16", 2, 512),
}


@each_value(("case", LAUNCHES), ("target", ["generic", "cpu"]))
def test_dtypes_and_shapes(case: str, target: str) -> None:
    if (case, target) == ("gemm, f64", "generic"):
        pytest.skip("the target has no dot of f64")
    launch = LAUNCHES[case]()
    arguments, grid, options = launch.example()
    check_levels(launch.kernel, arguments, grid, target=target, **options)


def test_a_dot_that_the_target_has_not() -> None:
    launch = LAUNCHES["gemm, f64"]()
    constants = {name: value for name, value in launch.named().items() if not isinstance(value, np.ndarray)}
    with pytest.raises(TargetError, match="the target generic has no dot of f64 elements") as error:
        triton.compile(launch.kernel, {"a_ptr": "*fp64", "b_ptr": "*fp64", "c_ptr": "*fp64"}, constants, "generic")
    assert "tl.dot(" in error.value.render()
