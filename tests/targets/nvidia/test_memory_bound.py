"""Kernels that memory bounds: how they access it, seen in their PTX, and that they are right in the emulator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import mltriton as triton
from ptx_emulator.launch import install

from . import kernels


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


def ptx_of(kernel: triton.JITFunction, signature: str) -> str:
    return triton.compile(kernel, signature, target="cuda:90").asm["ptx"]


@pytest.mark.parametrize(("element", "shared"), [("fp32", "v4.b32"), ("bf16", "v4.b16"), ("i8", "")])
def test_both_sides_of_a_transpose_are_accessed_by_16_bytes(element: str, shared: str, needs_ptxas: None) -> None:
    ptx = ptx_of(kernels.transposed, f"*{element}:16, *{element}:16, i32:16, i32:16, 64")
    accesses = set(re.findall(r"(?:ld|st)\.global[.\w]*", ptx))
    assert accesses == {"ld.global.v4.b32", "st.global.v4.b32"}
    assert "shfl" not in ptx and f"ld.shared.{shared}" in ptx


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
