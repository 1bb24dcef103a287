"""`flash_attention_varlen` against numpy in float64, sequence by sequence: CPU and emulated GPU; mistakes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from combinations import each_value
from mltriton.errors import ArgumentError
from mltriton.kernels import flash_attention_varlen
from mltriton.kernels.attention_varlen import varlen_launch
from ptx_emulator.launch import install

RNG = np.random.default_rng(3)


def reference(q: Any, k: Any, v: Any, causal: bool, window: int | None) -> np.ndarray:
    """Of one sequence, [queries, heads, dim]."""
    q, k, v = (x.astype(np.float64).swapaxes(0, 1) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[0] // k.shape[0], 0) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if causal:
        scores[..., ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)] = -np.inf
    if window is not None:
        scores[..., np.tri(q.shape[-2], k.shape[-2], -window, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(0, 1)


def check(lengths: list[int], dim: int, causal: bool, window: int | None = None, target: str | None = None) -> None:
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    dtype = np.float32 if target is None else np.float16
    q, k, v = (RNG.standard_normal((starts[-1], heads, dim)).astype(dtype) for heads in (4, 2, 2))
    o = flash_attention_varlen(q, k, v, starts, starts, max(lengths), causal, window=window, target=target)
    for first, last in pairwise(starts):
        if first < last:
            own = slice(first, last)
            wanted = reference(q[own], k[own], v[own], causal, window)
            np.testing.assert_allclose(o[own], wanted, atol=2e-6 if target is None else 3e-3)


@each_value(("causal, window", [(False, None), (True, None), (True, 33)]), ("dim", [24, 64]))
def test_lengths(dim: int, causal: bool, window: int | None) -> None:
    check([70, 1, 0, 300, 64], dim, causal, window)


@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 33)])
def test_on_an_emulated_gpu(causal: bool, window: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    check([70, 1, 0, 190], 64, causal, window, "cuda:90")


@pytest.mark.parametrize(
    ("queries", "dim", "causal"), [(1024, 64, True), (1025, 64, True), (9, 64, False), (9, 128, True)]
)
def test_who_copies_keys(queries: int, dim: int, causal: bool) -> None:
    """Lanes those of few dimensions of which short sequences see a part."""
    x, starts = np.zeros((queries, 2, dim), np.float16), np.array([0, queries], np.int32)
    launch = varlen_launch("cuda:90", x, x, x, x, starts, starts, queries, causal)
    assert ("BOX" in launch.constants) == (queries != 1024)


@pytest.mark.parametrize(("dim", "causal"), [(64, False), (128, True)])
def test_keys_by_the_engine(dim: int, causal: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sequences of other numbers of queries than of keys; what lies behind one is no number, and the next one's."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    queries, keys = np.array([0, 40, 41, 41, 140], np.int32), np.array([0, 30, 70, 77, 180], np.int32)
    q = RNG.standard_normal((140, 4, dim)).astype(np.float16)
    k, v = (RNG.standard_normal((181, 2, dim)).astype(np.float16) for _ in range(2))
    for sequence in (0, 3):
        own, there = slice(*queries[sequence : sequence + 2]), slice(*keys[sequence : sequence + 2])
        alone = [np.full_like(x, np.nan) for x in (k, v)]
        for x, given in zip(alone, (k, v), strict=True):
            x[there] = given[there]
        o, lse = np.full_like(q, np.nan), np.full((4, 140), np.nan, np.float32)
        arrays = q, *alone, o, queries, keys
        launch = varlen_launch("cuda:90", *arrays, 99, causal, lse=lse)
        assert launch.constants["BOX"]
        launch.run()
        wanted = reference(q[own], k[there], v[there], causal, None)
        np.testing.assert_allclose(o[own], wanted, atol=3e-3)
        assert np.isfinite(lse[:, own]).all()


QKV, STARTS = np.ones((8, 4, 16), np.float32), np.array([0, 3, 8], np.int32)


@pytest.mark.parametrize(
    ("q", "starts", "message"),
    [
        (QKV[0], STARTS, "wrong rank"),
        (QKV[..., :8], STARTS, "the shapes do not fit"),
        (QKV, STARTS.astype(np.int64), "wrong query_starts"),
        (QKV, STARTS[None], "wrong query_starts"),
        (QKV, STARTS[:2], "wrong key_starts"),
    ],
)
def test_mistakes(q: Any, starts: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        flash_attention_varlen(q, QKV, QKV, starts, STARTS, 5)


def test_windows_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match="the window does not fit"):
        flash_attention_varlen(QKV, QKV, QKV, STARTS, STARTS, 5, window=3)
