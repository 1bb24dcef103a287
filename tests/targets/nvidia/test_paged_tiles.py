"""Paged attention whose warps share tiles, in the emulator."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mltriton import kernels
from ptx_emulator.launch import install

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


def reference(q: Any, caches: Any, table: Any, lens: Any, slopes: Any, soft_cap: float | None) -> np.ndarray:
    """In float64."""
    kv_heads, dim = caches[0].shape[2:]
    group, out = q.shape[1] // kv_heads, np.zeros(q.shape)
    for i, length in enumerate(lens):
        k, v = (x[table[i]].reshape(-1, kv_heads, dim)[:length].astype(np.float64) for x in caches)
        for head in range(q.shape[1] if length else 0):
            s = k[:, head // group] @ q[i, head].astype(np.float64) * dim**-0.5
            s = s if soft_cap is None else soft_cap * np.tanh(s / soft_cap)
            s = s if slopes is None else s + slopes[head] * (np.arange(length) - (length - 1))
            p = np.exp(s - s.max())
            out[i, head] = p @ v[:, head // group] / p.sum()
    return out


SIZES = [(8, 2, 64), (3, 3, 40)]  # heads, those of keys, and their dimension
SHORT = [(16, 3, SIZES[0], True), (24, 1, SIZES[1], False)]
LONG = [case for case in product([16, 1, 24], [None, 1, 3], SIZES, [False, True]) if case not in SHORT]


@pytest.mark.parametrize(
    ("page", "splits", "sizes", "biased"), [*SHORT, *(pytest.param(*case, marks=pytest.mark.slow) for case in LONG)]
)
def test_tiles(page: int, splits: int | None, sizes: tuple[int, int, int], biased: bool) -> None:
    heads, kv_heads, dim = sizes
    rng = np.random.default_rng(0)
    lens = np.array([131, 0, 64, 1], np.int32)
    width = -(-131 // page)
    q = rng.standard_normal((4, heads, dim)).astype(np.float16)
    caches = [rng.standard_normal((4 * width, page, kv_heads, dim)).astype(np.float16) for _ in range(2)]
    table = rng.permutation(4 * width).astype(np.int32).reshape(4, width)
    slopes, soft_cap = (rng.random(heads, np.float32), 5.0) if biased else (None, None)
    found = kernels.paged_attention(
        q, *caches, table, lens, alibi_slopes=slopes, soft_cap=soft_cap, splits=splits, target="cuda:90"
    )
    np.testing.assert_allclose(found, reference(q, caches, table, lens, slopes, soft_cap), atol=2e-3)
