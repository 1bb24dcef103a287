"""Kernels that memory bounds: how they access it, seen in their PTX, and that they are right in the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from ptx_emulator.launch import install

from . import kernels


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


def ptx_of(kernel: triton.JITFunction, signature: str) -> str:
    return triton.compile(kernel, signature, target="cuda:90").asm["ptx"]


@pytest.mark.parametrize(("element", "shared"), [("fp32", "v4.b32"), ("bf16", "v2.b32"), ("i8", "")])
def test_both_sides_of_a_transpose_are_accessed_by_16_bytes(element: str, shared: str, needs_ptxas: None) -> None:
    ptx = ptx_of(kernels.transposed, f"*{element}:16, *{element}:16, i32:16, i32:16, 64")
    accesses = set(re.findall(r"(?:ld|st)\.global[.\w]*", ptx))
    assert accesses == {"ld.global.v4.b32", "st.global.v4.b32"}
    assert "shfl.sync.bfly" not in ptx and f"ld.shared.{shared}" in ptx


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
def test_transposes(dtype: type, emulated: None) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, (80, 144)).astype(dtype)
    out = np.zeros((144, 80), dtype)
    kernels.transposed[3, 2](x, out, *x.shape, BLOCK=64, target="cuda:90")
    np.testing.assert_array_equal(out, x.T)


def test_a_row_that_scales_all_is_loaded_by_each_warp(needs_ptxas: None) -> None:
    ptx = ptx_of(kernels.scaled_columns, "*fp32:16, *fp32:16, *fp32:16, i32, 16, 64")
    assert "shared" not in ptx and "bar.sync" not in ptx
    assert "div.full" in ptx and "div.rn" not in ptx


def test_scaled_columns(emulated: None) -> None:
    rng = np.random.default_rng(0)
    x, factors = rng.standard_normal((37, 64), np.float32), rng.standard_normal(64, np.float32)
    out = np.zeros_like(x)
    kernels.scaled_columns[3,](x, factors, out, 37, ROWS=16, COLUMNS=64, target="cuda:90")
    np.testing.assert_allclose(out, x * np.exp(factors) / 3, rtol=1e-6)


def is_ahead(kernel: triton.JITFunction, signature: str) -> bool:
    return "cp.async.cg.shared.global" in ptx_of(kernel, signature)


def test_which_loops_load_ahead(needs_ptxas: None) -> None:
    assert is_ahead(kernels.logits_of_rows, "*fp32:16, *i64:16, *fp32:16, *fp32:16, i32:16, i32:16, 1024")
    assert is_ahead(kernels.centred_rows, "*bf16:16, *fp32:16, *bf16:16, *fp32:16, i32:16, i32:16, 1024")
    assert not is_ahead(kernels.steps_in_place, "*fp32:16, *fp32:16, i32, 1024")
    assert not is_ahead(kernels.running_in_place, "*fp32:16, i32, 1024")


def test_lanes_do_not_wait_for_what_is_their_own(needs_ptxas: None) -> None:
    ptx = ptx_of(kernels.centred_rows, "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, 1024")
    assert ptx.count("bar.sync") == ptx.count("barrier.sync") or ptx.count("bar.sync") <= 2  # those of the sum


@pytest.mark.parametrize("n", [0, 16, 512, 1200])
@pytest.mark.parametrize("in_place", [False, True])
def test_rows_that_are_read_twice(n: int, in_place: bool, emulated: None) -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((3, 1280), np.float32), rng.integers(0, max(n, 1), 3)
    out, loss = x if in_place else np.full_like(x, 7), np.zeros(3, np.float32)
    rows, kept = x[:, :n].astype(np.float64), x.copy()
    kernels.logits_of_rows[3,](x, labels, loss, out, 1280, n, BLOCK=512, target="cuda:90")
    if n:
        sums = np.exp(rows).sum(1)
        wanted = np.exp(rows) / sums[:, None]
        wanted[range(3), labels] -= 1
        np.testing.assert_allclose(out[:, :n], wanted, atol=1e-6)
        np.testing.assert_allclose(loss, np.log(sums) - rows[range(3), labels], atol=1e-5)
    assert (out[:, n:] == (kept[:, n:] if in_place else 7)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("columns", [1000, 1024])
@pytest.mark.parametrize("in_place", [False, True])
def test_rows_in_turn(dtype: type, columns: int, in_place: bool, emulated: None) -> None:
    rng = np.random.default_rng(0)
    x, scales = rng.standard_normal((11, columns)).astype(dtype), rng.standard_normal(11, np.float32)
    rows = x.astype(np.float64)
    out, sums = x if in_place else np.zeros_like(x), np.zeros((3, columns), np.float32)
    kernels.centred_rows[3,](x, scales, out, sums, 11, columns, BLOCK=1024, target="cuda:90")
    wanted = (rows - rows.mean(1, keepdims=True)) * scales[:, None]
    np.testing.assert_allclose(out, wanted, atol=1e-5 if dtype is np.float32 else 4e-3)
    np.testing.assert_allclose(sums, [rows[first::3].sum(0) for first in range(3)], atol=1e-5)


@triton.jit
def scaled_rows(x, scales, shifts, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of tiles in turn; what belongs to a row is a block of few elements."""
    at = tl.arange(0, BLOCK)[None, :]
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        inside = (row < rows) & (at < columns)
        tile = tl.load(x + row * columns + at, mask=inside, other=0.0)
        scale = tl.load(scales + row, mask=row < rows, other=5.0)
        shift = tl.load(shifts + row, mask=row < rows, other=0.0)
        tl.store(out + row * columns + at, tile * scale + shift + tl.sum(tile, 1)[:, None], mask=inside)


@pytest.mark.parametrize(("rows", "at_once"), [(1, 1), (11, 1), (11, 4), (24, 8)])
def test_few_elements_are_carried(rows: int, at_once: int, emulated: None) -> None:
    rng = np.random.default_rng(0)
    x, out = rng.standard_normal((rows, 512), np.float32), np.zeros((rows, 512), np.float32)
    scales, shifts = rng.standard_normal((2, rows), np.float32)
    scaled_rows[2,](x, scales, shifts, out, rows, 512, ROWS=at_once, BLOCK=512, target="cuda:90")
    np.testing.assert_allclose(out, x * scales[:, None] + shifts[:, None] + x.sum(1, keepdims=True), atol=1e-4)


@pytest.mark.parametrize(("at_once", "carried"), [(1, 2), (8, 2), (16, 0)])
def test_which_blocks_are_carried(at_once: int, carried: int, needs_ptxas: None) -> None:
    signature = f"*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, {at_once}, 512"
    text = triton.compile(scaled_rows, signature, target="cuda:90").asm["ttg"]
    loop = text[text.index("scf.for") :].split("scf.yield")[0]
    carries = loop.splitlines()[0].count(f"tensor<{at_once}x1xf32")
    assert "async_copy" in loop and (carries >= carried if carried else not carries)


def test_what_an_iteration_stores_the_next_one_loads(emulated: None) -> None:
    x = np.arange(256, dtype=np.float32)
    kernels.steps_in_place[1,](x, x, 3, BLOCK=256, target="cuda:90")
    wanted = np.arange(256, dtype=np.float32)
    for _ in range(3):
        wanted += wanted.max()
    np.testing.assert_array_equal(x, wanted)
    x = np.ones((4, 256), np.float32)
    kernels.running_in_place[1,](x, 4, BLOCK=256, target="cuda:90")
    np.testing.assert_array_equal(x, np.array([1, 2, 4, 8], np.float32)[:, None] * np.ones(256))


def test_registers_are_left_to_other_programs(needs_ptxas: None) -> None:
    """Memory waits for no single program: ptxas is not told that one on a multiprocessor is enough."""
    made = triton.compile(kernels.scaled_columns, "*fp32:16, *fp32:16, *fp32:16, i32, 16, 64", target="cuda:90")
    assert ".maxntid 128" in made.asm["ptx"] and "minnctapersm" not in made.asm["ptx"]


def test_sums_for_which_there_are_no_registers(needs_ptxas: None) -> None:
    """Four sums of 64 registers a lane and the row itself: what the 255 do not hold lies in shared memory."""
    signature = "*fp32:16, *fp32:16, i32, i32:16, "
    made = triton.compile(kernels.moments, signature + "2048", target="cuda:90", num_warps=1)
    assert "ttg.local_store" in made.asm["intrinsic"] and made.metadata.shared >= 8192
    assert "gpu.barrier" not in made.asm["intrinsic"]
    fits = triton.compile(kernels.moments, signature + "1024", target="cuda:90", num_warps=1)
    assert "ttg.local_store" not in fits.asm["intrinsic"]


@pytest.mark.parametrize("num_warps", [1, 2])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_moments(num_warps: int, rows: int, emulated: None) -> None:
    columns, block = 4000 * num_warps // 2, 2048 * num_warps
    x = np.random.default_rng(0).standard_normal((rows, columns), np.float32)
    sums = np.full((2, 4, columns), 7, np.float32)
    kernels.moments[2,](x, sums, rows, columns, BLOCK=block, num_warps=num_warps, target="cuda:90")
    wide = x.astype(np.float64)
    powers = np.stack([wide**power * wide.mean(1, keepdims=True) for power in range(1, 5)])
    for program in range(2):
        np.testing.assert_allclose(sums[program], powers[:, program::2].sum(1), rtol=1e-4, atol=1e-5)
