"""Gradients of packed sequences against numpy in float64, sequence by sequence: the CPU, an emulated GPU by programs of
all sequences, torch's autograd; mistakes.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mltriton.errors import ArgumentError
from mltriton.kernels import (
    flash_attention_varlen,
    flash_attention_varlen_backward,
    flash_attention_varlen_with_lse,
)
from mltriton.kernels.attention_backward_blocks import Step
from mltriton.kernels.attention_varlen_backward import varlen_backward_launches
from ptx_emulator.launch import install

RNG = np.random.default_rng(5)


def reference(do: Any, q: Any, k: Any, v: Any, causal: bool, window: int | None) -> list[np.ndarray]:
    """dq, dk, dv of one sequence, [positions, heads, dim]."""
    do, q, k, v = (x.astype(np.float64).swapaxes(0, 1) for x in (do, q, k, v))
    group, scale = q.shape[0] // k.shape[0], q.shape[-1] ** -0.5
    wide_k, wide_v = (np.repeat(x, group, 0) for x in (k, v))
    scores = q @ wide_k.swapaxes(-1, -2) * scale
    if causal:
        scores[..., ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)] = -np.inf
    if window is not None:
        scores[..., np.tri(q.shape[-2], k.shape[-2], -window, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    dp = do @ wide_v.swapaxes(-1, -2)
    ds = weights * (dp - (weights * dp).sum(-1, keepdims=True)) * scale
    dk, dv = (x.swapaxes(-1, -2) @ y for x, y in ((ds, q), (weights, do)))
    dk, dv = (x.reshape(k.shape[0], group, *x.shape[1:]).sum(1) for x in (dk, dv))
    return [x.swapaxes(0, 1) for x in (ds @ wide_k, dk, dv)]


def arrays(
    of_queries: list[int], of_keys: list[int], dim: int, dtype: Any, before: int = 0, kv_heads: int = 2
) -> tuple[Any, ...]:
    """do, q, k, v and where sequences begin, `before` positions after the first."""
    starts = [np.cumsum([before, *lengths]).astype(np.int32) for lengths in (of_queries, of_keys)]
    sizes = [*[(starts[0][-1] + before, 2 * kv_heads)] * 2, *[(starts[1][-1] + before, kv_heads)] * 2]
    return *(RNG.standard_normal((*size, dim)).astype(dtype) for size in sizes), *starts


def compare(found: Any, given: tuple[Any, ...], causal: bool, window: int | None, bound: float) -> None:
    do, q, k, v, *starts = given
    outside = [np.ones(len(x), bool) for x in (q, k, v)]
    for (first, last), (first_key, last_key) in zip(*map(pairwise, starts), strict=True):
        own, keys = slice(first, last), slice(first_key, last_key)
        if first == last:
            continue
        wanted = reference(do[own], q[own], k[keys], v[keys], causal, window)
        for left, part, made, of in zip(outside, (own, keys, keys), found, wanted, strict=True):
            left[part] = False
            np.testing.assert_allclose(made[part], of, atol=bound, rtol=bound)
    for left, made in zip(outside, found, strict=True):
        assert not np.asarray(made)[left].any()


MASKS = [(False, None), (True, None), (True, 33)]


@pytest.mark.parametrize(("causal", "window"), MASKS)
def test_sequences(causal: bool, window: int | None) -> None:
    lengths = [70, 1, 0, 130]
    given = arrays(lengths, lengths if window else [64, 3, 0, 150], 24, np.float32, before=3)
    do, q, k, v, *starts = given
    o, lse = flash_attention_varlen_with_lse(q, k, v, *starts, 130, causal, window=window)
    np.testing.assert_array_equal(o[3:-3], flash_attention_varlen(q, k, v, *starts, 130, causal, window=window)[3:-3])
    found = flash_attention_varlen_backward(do, q, k, v, o, lse, *starts, 130, causal, window=window)
    compare(found, given, causal, window, 1e-5)


@pytest.mark.parametrize(("causal", "window"), MASKS)
def test_by_programs_of_all_sequences(causal: bool, window: int | None) -> None:
    """The kernels of large blocks, on the CPU."""
    given = arrays([40, 1, 0, 70], [40, 1, 0, 70] if window else [33, 5, 0, 90], 24, np.float32)
    do, q, k, v, *starts = given
    o, lse = flash_attention_varlen_with_lse(q, k, v, *starts, 70, causal, window=window)
    made = [np.zeros((x.shape[1], x.shape[0], x.shape[2]), x.dtype) for x in (q, k, v)]
    steps = Step(16, 32), Step(32, 16)
    for launch in varlen_backward_launches(
        do, q, k, v, o, lse, *made, *starts, 70, 90, causal, None, window or 0, steps, None
    ):
        launch.run()
    compare([x.swapaxes(0, 1) for x in made], given, causal, window, 1e-5)


def test_on_an_emulated_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    given = arrays([40, 0, 9], [40, 0, 9], 64, np.float16, kv_heads=1)
    do, q, k, v, *starts = given
    o, lse = flash_attention_varlen_with_lse(q, k, v, *starts, 40, True, window=33, target="cuda:90")
    found = flash_attention_varlen_backward(
        do, q, k, v, o, lse, *starts, 40, True, window=33, longest_keys=40, target="cuda:90"
    )
    compare(found, given, True, 33, 8e-3)


def test_torch_differentiates_packed_sequences() -> None:
    torch = pytest.importorskip("torch")
    given = arrays([40, 7, 0, 61], [40, 7, 0, 61], 16, np.float32)
    do, q, k, v, starts = map(torch.from_numpy, given[:5])
    leaves = [x.requires_grad_() for x in (q, k, v)]
    o = flash_attention_varlen(*leaves, starts, starts, 61, True)
    found = torch.autograd.grad(o, leaves, do)
    compare([x.numpy() for x in found], given, True, None, 1e-5)


def test_mistakes() -> None:
    do, q, k, v, *starts = arrays([4, 3], [4, 3], 16, np.float32)
    o, lse = flash_attention_varlen_with_lse(q, k, v, *starts, 4)
    with pytest.raises(ArgumentError, match="the shapes do not fit"):
        flash_attention_varlen_backward(do, q, k, v, o, lse[:, :5], *starts, 4)
    with pytest.raises(ArgumentError, match="wrong key_starts"):
        flash_attention_varlen_backward(do, q, k, v, o, lse, starts[0], starts[1][:2], 4)
