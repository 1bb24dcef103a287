"""Rows that loops read twice or three times: what fits is kept in shared memory, and nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.tools.verify import verify_kernel
from ptx_emulator.launch import install


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    """Of a row, whose elements are read twice."""
    largest = -float("inf")
    total = 0.0
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=-float("inf"))
        new = tl.maximum(largest, tl.max(v, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(v - new), axis=0)
        largest = new
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n)
        tl.store(out + at, tl.exp(v - largest) / total, mask=at < n)


@triton.jit
def standardized(x, y, out, n, BLOCK: tl.constexpr):
    """A row read three times, to mean 0 and variance 1; elements outside of it are asked for as something else."""
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=7.0).to(tl.float32) - mean
        squares += tl.where(at < n, v * v, (v + mean - 7.0) * 1e6)
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / n)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n).to(tl.float32)
        tl.store(out + at, (v - mean) * scale + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def overwritten(x, n, BLOCK: tl.constexpr):
    """What is read again was written in between."""
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < n, other=0.0)
        total += v
        tl.store(x + at, v * 2, mask=at < n)
    whole = tl.sum(total, axis=0)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < n) + whole, mask=at < n)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


BLOCK, SLOTS = 512, 14  # of f32: what programs of four warps keep
SIZES = [1, 500, BLOCK, 3 * BLOCK + 17, SLOTS * BLOCK, SLOTS * BLOCK + 1, 17 * BLOCK - 3]


def kept(kernel: Any, signature: str) -> int:
    """How many loops read shared memory."""
    return triton.compile(kernel, signature, target="cuda:90", num_stages=1).asm["ttg"].count("ttg.local_load")


def test_what_is_kept() -> None:
    assert kept(softmax, f"*fp32:16, *fp32:16, i32:16, {BLOCK}") == 2
    assert kept(standardized, f"*fp32:16, *fp32:16, *fp32:16, i32:16, {BLOCK}") == 3
    assert kept(overwritten, f"*fp32:16, i32:16, {BLOCK}") == 0
    assert (
        f"memdesc<{SLOTS}x{BLOCK}xf32"
        in (triton.compile(softmax, f"*fp32:16, *fp32:16, i32:16, {BLOCK}", target="cuda:90").asm["ttg"])
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("in_place", [False, True])
def test_softmax(n: int, in_place: bool, emulated: None) -> None:
    room = -(-n // 16) * 16  # as in a matrix whose rows begin at multiples of 16
    x = np.random.default_rng(n).standard_normal(room).astype(np.float32)
    expected = np.exp(x[:n].astype(np.float64)) / np.exp(x[:n].astype(np.float64)).sum()
    out = x if in_place else np.full_like(x, 5)
    after = out[n:].copy()
    softmax[1,](x, out, n, BLOCK=BLOCK, target="cuda:90", num_stages=1)
    np.testing.assert_allclose(out[:n], expected, rtol=3e-6)
    np.testing.assert_array_equal(out[n:], after)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("n", [16, 1040, 4000, 5008])
def test_three_loops(n: int, stages: int, emulated: None) -> None:
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    out, wide = np.zeros_like(x), x.astype(np.float64)
    standardized[1,](x, y, out, n, BLOCK=BLOCK, target="cuda:90", num_stages=stages)
    np.testing.assert_allclose(out, (wide - wide.mean()) / wide.std() + y, rtol=1e-5, atol=1e-5)


def test_writes_between(emulated: None) -> None:
    x = np.random.default_rng(0).standard_normal(1600).astype(np.float32)
    expected = 2 * x + x.astype(np.float64).sum()
    overwritten[1,](x, 1600, BLOCK=BLOCK, target="cuda:90")
    np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "arrays"),
    [(softmax, 2), (standardized, 3), (overwritten, 1)],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_every_level(kernel: Any, arrays: int) -> None:
    """In the executor, which finds what nobody has written and waited for."""
    arguments = [f"{name}=9000:fp32" for name in kernel.arg_names[:arrays]]
    values = [*arguments, "n=8000", f"BLOCK={BLOCK}"]
    result = verify_kernel(kernel, args=values, grid=(1,), target="cuda:90", uninitialised=True)
    assert result.ok, str(result)
