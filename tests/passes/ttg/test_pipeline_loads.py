"""Copies ahead of dots: every level gives the same numbers; what cannot be copied stays a load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
import mma_target
from levels import check_levels
from mltriton.dialects import gpu, scf, tt, ttg
from mltriton.executor import run
from mltriton.executor.faults import DataRace, Unfinished
from mltriton.ir.parser import parse_module
from mltriton.ir.types import MemDescType
from mltriton.layouts.shared import NvmmaSharedEncoding, SwizzledSharedEncoding


@pytest.fixture(autouse=True)
def mma(monkeypatch: pytest.MonkeyPatch) -> None:
    mma_target.register(monkeypatch)


@triton.jit
def multiply(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = k + start
        left = tl.load(a + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0)
        right = tl.load(b + at[:, None] * N + n[None, :], mask=(at[:, None] < K) & (n[None, :] < N), other=0)
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def advance(a, b, c, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEPS: tl.constexpr):
    """Pointers move on; the left operand is scaled, the right one transposed in memory; two loops in a row."""
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    left, right = a + m[:, None] * K + k[None, :], b + n[None, :] * K + k[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for part in range(2):
        for _ in range(0, K // 2, BK):
            x = (tl.load(left) * scale).to(tl.float16)
            total = tl.dot(x, tl.load(right), total)
            left += BK
            right += BK
        total = total * (part + 1)
    tl.store(c + m[:, None] * BN + n[None, :], total)


@triton.jit
def gathered(a, b, table, c, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STEPS: tl.constexpr):
    """The rows of b are found through a table, which another load reads."""
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(STEPS):
        row = tl.load(table + step)
        left = tl.load(a + m[:, None] * (BK * STEPS) + (step * BK + k)[None, :])
        total = tl.dot(left, tl.load(b + (row + k)[:, None] * N + n[None, :]), total)
    tl.store(c + m[:, None] * BN + n[None, :], total)


@triton.jit
def grow(a, b, c, out, N: tl.constexpr, STEPS: tl.constexpr):
    """Each product is the right operand of the next one, through memory."""
    at, k = tl.arange(0, N), tl.arange(0, N)
    for step in range(STEPS):
        left = tl.load(a + at[:, None] * N + k[None, :])
        right = tl.load(b + (step * N + at)[:, None] * N + k[None, :])
        result = tl.dot(left, right)
        tl.store(b + ((step + 1) * N + at)[:, None] * N + k[None, :], result.to(tl.float16))
        tl.debug_barrier()
    tl.store(out + at[:, None] * N + k[None, :], tl.load(b + (STEPS * N + at)[:, None] * N + k[None, :]))


def test_what_the_loop_writes_is_loaded_when_it_is_there() -> None:
    arrays = {"a": "32x32:fp16", "b": "160x32:fp16", "c": "32x32:fp16", "out": "32x32:fp16", "N": 32, "STEPS": 3}
    check_levels(grow, arrays, (1,), target="mma:ahead", num_warps=4)
    text = triton.compile(grow, signature="*fp16:16,*fp16:16,*fp16:16,*fp16:16,32,3", target="mma:ahead").asm["ttg"]
    assert copies(text) == 0


@triton.jit(warp_level=True)
def rows_of_warps(a, b, c, K, N: tl.constexpr, BK: tl.constexpr):
    """Each warp multiplies rows of its own."""
    m, n, k = tl.warp_id() * 16 + tl.arange(0, 16), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((16, N), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        total = tl.dot(left, tl.load(b + (start + k)[:, None] * N + n[None, :]), total)
    tl.store(c + m[:, None] * N + n[None, :], total)


def test_warps_that_have_loops_of_their_own() -> None:
    arrays = {"a": "64x64:fp16", "b": "64x32:fp16", "c": "64x32:fp32", "K": 64, "N": 32, "BK": 16}
    check_levels(rows_of_warps, arrays, (1,), target="mma:ahead", num_warps=4)


def product(m: int, n: int, k: int) -> dict[str, Any]:
    return {"a": f"{m}x{k}:fp16", "b": f"{k}x{n}:fp16", "c": f"{m}x{n}:fp32", "M": m, "N": n, "K": k}


BLOCKS = {"BM": 64, "BN": 32, "BK": 32}


@pytest.mark.parametrize("target", ["mma:ahead", "mma:grouped"])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_products(target: str, stages: int) -> None:
    check_levels(multiply, product(80, 48, 96) | BLOCKS, (2, 2), target=target, num_warps=4, num_stages=stages)


@pytest.mark.parametrize("k", [16, 32, 48, 80])
def test_fewer_iterations_than_stages(k: int) -> None:
    check_levels(multiply, product(64, 32, k) | BLOCKS, (1, 1), target="mma:ahead", num_warps=4, num_stages=4)


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_numbers_of_warps(warps: int) -> None:
    check_levels(multiply, product(64, 32, 64) | BLOCKS, (1, 1), target="mma:ahead", num_warps=warps)


def test_more_warps_than_lines() -> None:
    """Some warps have nothing to copy."""
    blocks = {"BM": 16, "BN": 16, "BK": 16}
    check_levels(multiply, product(16, 16, 48) | blocks, (1, 1), target="mma:ahead", num_warps=32)


def test_pointers_that_move_on() -> None:
    arrays = {"a": "64x128:fp16", "b": "32x128:fp16", "c": "64x32:fp32", "K": 128, "scale": 0.5, "STEPS": 2}
    check_levels(advance, arrays | BLOCKS, (1,), target="mma:ahead", num_warps=4)


def test_a_place_that_memory_says_is_looked_up_when_its_copy_starts() -> None:
    table = np.array([64, 0, 96, 32], np.int32)
    arrays = {"a": "64x128:fp16", "b": "128x32:fp16", "table": table, "c": "64x32:fp32", "N": 32, "STEPS": 4}
    check_levels(gathered, arrays | BLOCKS, (1,), target="mma:ahead", num_warps=4)
    text = triton.compile(
        gathered, signature="*fp16:16,*fp16:16,*i32,*fp32:16,i32:16,64,32,32,4", target="mma:ahead"
    ).asm["ttg"]
    kinds = [type(op) for op in parse_module(text).walk()]
    assert kinds.count(ttg.AsyncCopyGlobalToLocal) == 6  # of each operand: two in front of the loop, one inside
    assert kinds.count(tt.Load) == 3  # of the table


SIGNATURE = "*fp16:16,*fp16:16,*fp32:16,i32:{0},i32:{0},i32:{0},64,32,32"


def compiled(target: str, level: str, divisibility: int = 16, **options: Any) -> str:
    signature = SIGNATURE.format(divisibility).replace(":1,", ",")
    return triton.compile(multiply, signature=signature, target=target, **options).asm[level]


def copies(text: str) -> int:
    return sum(isinstance(op, ttg.AsyncCopyGlobalToLocal) for op in parse_module(text).walk())


def test_what_is_not_copied() -> None:
    assert copies(compiled("mma:ahead", "ttg", num_stages=2)) == 4
    assert copies(compiled("mma:ahead", "ttg", num_stages=1)) == 0
    assert copies(compiled("mma", "ttg", num_stages=4)) == 0
    assert copies(compiled("mma:ahead", "ttg", 1)) == 0  # a lane has two bytes in a row


def test_buffers_are_laid_out_as_the_instruction_reads_them() -> None:
    def layouts(target: str, buffers: int) -> list[object]:
        found = [
            op.result.type for op in parse_module(compiled(target, "ttg")).walk() if isinstance(op, ttg.LocalAlloc)
        ]
        assert all(isinstance(type, MemDescType) and type.shape[0] == buffers for type in found)
        return [type.encoding for type in found]  # type: ignore[attr-defined]

    assert layouts("mma:ahead", 3) == [SwizzledSharedEncoding(8, 2, 4, (1, 0))] * 2
    assert layouts("mma:grouped", 4)[1] is NvmmaSharedEncoding(64, False, 16)


def test_the_order_of_a_body() -> None:
    """Wait for this iteration's copies, start those of a later one, multiply what has arrived."""
    module = parse_module(compiled("mma:ahead", "ttg", num_stages=3))
    [loop] = [op for op in module.walk() if isinstance(op, scf.For)]
    kinds = (ttg.AsyncWait, ttg.AsyncCopyGlobalToLocal, ttg.AsyncCommitGroup, ttg.LocalLoad, tt.Dot, tt.Load)
    names = [op.name.partition(".")[2] for op in loop.body.block.ops if isinstance(op, kinds)]
    assert names == [
        "async_wait",
        *["async_copy_global_to_local"] * 2,
        "async_commit_group",
        *["local_load"] * 2,
        "dot",
    ]
    waits = [op.num for op in module.walk() if isinstance(op, ttg.AsyncWait)]
    assert waits == [1, 0]


def arguments() -> list[Any]:
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(np.float16) for shape in ((64, 96), (96, 32)))
    return [a, b, np.zeros((64, 32), np.float32), 64, 32, 96]


@pytest.mark.parametrize("level", ["ttg", "warp", "intrinsic"])
def test_a_missing_wait_is_found(level: str) -> None:
    module = parse_module(compiled("mma:ahead", level))
    waits = [op for op in module.walk() if isinstance(op, ttg.AsyncWait)]
    waits[0].erase()
    with pytest.raises(Unfinished, match="nobody has waited for the copy"):
        run(module, arguments(), (1, 1))


@pytest.mark.parametrize("level", ["warp", "intrinsic"])
def test_a_missing_barrier_is_found(level: str) -> None:
    module = parse_module(compiled("mma:ahead", level))
    next(op for op in module.walk() if isinstance(op, gpu.Barrier)).erase()
    with pytest.raises((DataRace, Unfinished)):
        run(module, arguments(), (1, 1))
