"""Programs that take turns: products of pointers, fewer of which run than a launch asks for, on the emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.tools.remarks import kernel_remarks
from ptx_emulator.launch import MULTIPROCESSORS, install


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


@triton.jit
def product(
    a, b, c, bias, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WHO: tl.constexpr
):  # fmt: skip
    """a b + bias, for each number along y its own block of rows of `a`; `WHO`: and the program's number."""
    block, batch = tl.program_id(0), tl.program_id(1)
    columns = tl.cdiv(N, BN)
    m = block // columns * BM + tl.arange(0, BM)
    n = block % columns * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a + batch * M * K + m[:, None] * K + k[None, :]
    b_ptrs = b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        x = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - step * BK), other=0.0)
        y = tl.load(b_ptrs, mask=(k[:, None] < K - step * BK) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    acc += tl.load(bias + n, mask=n < N, other=0.0)[None, :].to(tl.float32)
    if WHO == 1:
        acc += block + 100 * tl.num_programs(0)
    if WHO == 2:
        tl.atomic_add(bias + N, 1.0)
    tl.store(c + batch * M * N + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


SIZES = {"BM": 128, "BN": 64, "BK": 128, "num_warps": 8, "num_stages": 3}
M, N, K = 264, 112, 136


def launched(batches: int = 1, who: int = 0, **options: Any) -> tuple[Any, Any]:
    """Six programs of each batch; the kernel, and the numbers of programs with what all get wrong taken away."""
    numbers = np.random.default_rng(0)
    a = numbers.integers(-2, 3, (batches, M, K)).astype(np.float16)
    b, bias = numbers.integers(-2, 3, (K, N)).astype(np.float16), numbers.integers(-2, 3, N + 1).astype(np.float32)
    c = np.full((batches, M, N), np.nan, np.float32)
    wanted = a.astype(np.float32) @ b.astype(np.float32) + bias[:N]
    kernel = product[(6, batches)](a, b, c, bias, M, N, K, **SIZES, WHO=who, target="cuda:90", **options)
    return kernel, c - wanted


def takes_turns(kernel: Any) -> bool:
    return kernel.binary.metadata["facts"]["takes_turns"]


def test_two_programs_compute_six_blocks() -> None:
    assert MULTIPROCESSORS == 2
    kernel, rest = launched()
    assert takes_turns(kernel)
    assert "partition num_warps" in kernel.asm["ttg"]
    assert not rest.any()
    assert any("compute all blocks in turn" in remark for remark in kernel_remarks(kernel))


def test_programs_know_their_own_number_and_how_many_were_asked_for() -> None:
    kernel, rest = launched(who=1)
    assert takes_turns(kernel)
    blocks = np.arange(M)[:, None] // 128 * 2 + np.arange(N) // 64
    np.testing.assert_array_equal(rest[0], 600 + blocks)


def test_all_run_where_there_are_others_along_y() -> None:
    kernel, rest = launched(batches=2, who=1)
    assert takes_turns(kernel)
    blocks = np.arange(M)[:, None] // 128 * 2 + np.arange(N) // 64
    np.testing.assert_array_equal(rest, np.stack([600 + blocks] * 2))


@pytest.mark.parametrize(("who", "options"), [(2, {}), (0, {"specialize_warps": "none"}), (0, {"debug": True})])
def test_who_does_not(who: int, options: dict[str, Any]) -> None:
    """Programs that may learn of each other, that have no producer, and whose accesses are checked."""
    kernel, rest = launched(who=who, **options)
    assert not takes_turns(kernel)
    assert not rest.any()
