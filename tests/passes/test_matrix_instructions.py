"""Programs for a target of `mma.sync`: every level gives the same numbers, dots end as pieces of the instruction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mltriton as triton
import mltriton.language as tl
import mma_target
from fuzz.check import failure
from fuzz.programs import program
from levels import check_levels
from mltriton.dialects import tt
from mltriton.ir.parser import parse_module
from mltriton.ir.types import TensorType
from mltriton.layouts.encodings import DotOperandEncoding, SliceEncoding
from mltriton.layouts.nvidia import NvidiaMmaEncoding


@pytest.fixture(autouse=True)
def mma(monkeypatch: pytest.MonkeyPatch) -> None:
    mma_target.register(monkeypatch)


@triton.jit
def multiply(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), c.dtype.element_ty)
    for start in range(0, K, BK):
        at = k + start
        left = tl.load(a + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0)
        right = tl.load(b + at[:, None] * N + n[None, :], mask=(at[:, None] < K) & (n[None, :] < N), other=0)
        total = tl.dot(left, right, total, input_precision="tf32")
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(q, k, v, out, keys, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    row, column, at = tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    x = tl.load(q + row[:, None] * D + column[None, :])
    largest, total = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, keys, BN):
        there = (start + at)[None, :] * D + column[:, None]
        scores = tl.dot(x, tl.load(k + there)) * 0.125
        new = tl.maximum(largest, tl.max(scores, 1))
        weights, scale = tl.exp(scores - new[:, None]), tl.exp(largest - new)
        total = total * scale + tl.sum(weights, 1)
        values = tl.load(v + (start + at)[:, None] * D + column[None, :])
        result = tl.dot(weights.to(tl.float16), values, result * scale[:, None])
        largest = new
    tl.store(out + row[:, None] * D + column[None, :], result / total[:, None])


def product(element: str, result: str, m: int, n: int, k: int, bm: int, bn: int, bk: int) -> dict[str, Any]:
    arrays = {"a": f"{m}x{k}:{element}", "b": f"{k}x{n}:{element}", "c": f"{m}x{n}:{result}"}
    return {**arrays, "M": m, "N": n, "K": k, "BM": bm, "BN": bn, "BK": bk}


PRODUCTS = {
    "halves": (product("fp16", "fp32", 64, 64, 64, 64, 64, 32), 4),
    "odd sizes": (product("fp16", "fp32", 37, 53, 41, 32, 64, 32), 2),
    "tf32": (product("fp32", "fp32", 33, 32, 24, 32, 32, 16), 4),
    "bytes": (product("i8", "i32", 32, 40, 70, 32, 32, 64), 4),
    "bf16": (product("bf16", "fp32", 128, 32, 32, 128, 32, 16), 8),
    "few rows": (product("fp16", "fp32", 5, 64, 32, 8, 64, 32), 4),
    "one warp": (product("fp16", "fp32", 16, 16, 16, 16, 16, 16), 1),
    "more warps than instructions": (product("fp16", "fp32", 16, 16, 32, 16, 16, 16), 8),
    "a short sum": (product("fp16", "fp32", 32, 32, 20, 32, 32, 8), 4),
}


@pytest.mark.parametrize(("arguments", "warps"), PRODUCTS.values(), ids=PRODUCTS)
def test_products(arguments: dict[str, Any], warps: int) -> None:
    grid = (-(-arguments["M"] // arguments["BM"]), -(-arguments["N"] // arguments["BN"]))
    check_levels(multiply, arguments, grid, target="mma", num_warps=warps)


@pytest.mark.parametrize("target", ["mma", "mma:ahead", "mma:grouped"])
@pytest.mark.parametrize("warps", [2, 4, 8])
def test_attention(target: str, warps: int) -> None:
    arrays = {"q": "64x64:fp16", "k": "96x64:fp16", "v": "96x64:fp16", "out": "64x64:fp32"}
    check_levels(attention, {**arrays, "keys": 96, "D": 64, "BM": 64, "BN": 32}, (1,), target=target, num_warps=warps)


# Blocks and warps, and the version of the instruction: four warps of wgmma have 64, 128 or 256 rows.
VERSIONS = [
    ((64, 64), 4, 3),
    ((128, 64), 8, 3),
    ((64, 64), 8, 3),
    ((128, 64), 4, 3),
    ((128, 32), 8, 3),
    ((256, 64), 4, 3),
    ((256, 32), 8, 3),
    ((32, 64), 4, 2),
    ((64, 64), 2, 2),
]


@pytest.mark.parametrize(("block", "warps", "version"), VERSIONS)
def test_what_fits_no_group_of_warps_is_multiplied_otherwise(block: tuple[int, int], warps: int, version: int) -> None:
    rows = max(128, block[0])
    arguments = product("fp16", "fp32", rows, 64, 48, *block, 16)
    check_levels(multiply, arguments, (rows // block[0], 64 // block[1]), target="mma:grouped", num_warps=warps)
    signature = f"*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,{block[0]},{block[1]},16"
    compiled = triton.compile(multiply, signature=signature, target="mma:grouped", num_warps=warps)
    for level in ("ttg", "warp", "intrinsic"):
        found = {dot.result.type.encoding.version for dot in dots(compiled.asm[level])}  # type: ignore[attr-defined]
        assert found == {version}


@pytest.mark.parametrize(
    "kernel",
    [
        "gemm:matmul_block_pointer_kernel",
        "stream_k:stream_k_kernel",
        "attention_backward:attention_backward_kernel",
        "attention_paged_kernels:paged_attention_kernel",
        "attention_paged_kernels:paged_attention_warps_kernel",
        "normalization:layer_norm_kernel",
    ],
)
def test_the_library(kernel: str) -> None:
    check_levels(f"mltriton.kernels.{kernel}", target="mma:ahead")


@pytest.mark.parametrize("target", ["mma", "mma:ahead", "mma:grouped"])
def test_random_programs_with_dots(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))
    programs = [program(seed, "dots") for seed in range(40, 44)]
    found = [failure(random, f"{target}/levels", tmp_path) for random in programs]
    assert not any(found), "\n".join(text for text in found if text)


SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,64,64,32"


def dots(text: str) -> list[tt.Dot]:
    found = [op for op in parse_module(text).walk() if isinstance(op, tt.Dot)]
    assert found
    return found


def blocks(dot: tt.Dot) -> list[TensorType]:
    found = [value.type for value in (dot.a, dot.b, dot.c)]
    assert all(isinstance(type, TensorType) for type in found)
    return found  # type: ignore[return-value]


def test_encodings_of_dots() -> None:
    compiled = triton.compile(multiply, signature=SIGNATURE, target="mma", num_warps=4)
    [whole] = dots(compiled.asm["ttg"])
    a, b, c = blocks(whole)
    assert isinstance(c.encoding, NvidiaMmaEncoding)
    assert (c.encoding.warps_per_cta, c.encoding.cluster) == ((2, 2), (2, 4))
    assert a.encoding is DotOperandEncoding(0, c.encoding, 2)
    assert b.encoding is DotOperandEncoding(1, c.encoding, 2)
    pieces = [tuple(block.shape for block in blocks(dot)) for dot in dots(compiled.asm["intrinsic"])]
    assert pieces == [((16, 16), (16, 8), (16, 8))] * 16
    assert blocks(dots(compiled.asm["intrinsic"])[0])[2].encoding is NvidiaMmaEncoding(2, (1, 1), (16, 8))


def test_slices_follow_the_matrix_instruction() -> None:
    signature = "*fp16:16,*fp16:16,*fp16:16,*fp32:16,i32:16,64,64,32"
    text = triton.compile(attention, signature=signature, target="mma", num_warps=4).asm["ttg"]
    [first, second] = dots(text)
    rows = [op for op in parse_module(text).walk() if isinstance(op, tt.Reduce)]
    assert {op.results[0].type.encoding.parent for op in rows} == {first.result.type.encoding}  # type: ignore[attr-defined]
    assert all(isinstance(op.results[0].type.encoding, SliceEncoding) for op in rows)  # type: ignore[attr-defined]
    assert second.a.type.encoding.k_width == 2  # type: ignore[attr-defined]
