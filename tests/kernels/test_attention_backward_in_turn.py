"""Gradients of attention by programs that compute blocks in turn, on the PTX emulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mltriton.kernels.attention_backward_blocks import Step, block_launches, steps_on
from mltriton.kernels.attention_backward_persistent import PERSISTENT, persistent_launch
from mltriton.kernels.launch import Launch
from ptx_emulator.launch import install

SCALE = 0.125
STEPS = Step(64, 64, 4, 2), Step(64, 64, 4, 2)


def reference(
    do: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, window: int = 0
) -> list[np.ndarray]:
    """o, the logarithms of sums, dq, dk and dv, in double precision; k and v may have fewer heads."""
    group = q.shape[1] // k.shape[1]
    do, q, k, v = (x.astype(np.float64) for x in (do, q, np.repeat(k, group, 1), np.repeat(v, group, 1)))
    scores = q @ k.swapaxes(-1, -2) * SCALE
    if causal:
        scores[..., ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)] = -np.inf
    if window:
        scores[..., np.tri(q.shape[-2], k.shape[-2], -window, dtype=bool)] = -np.inf
    lse = np.log(np.exp(scores).sum(-1))
    p = np.exp(scores - lse[..., None])
    o = p @ v
    ds = p * (do @ v.swapaxes(-1, -2) - (do * o).sum(-1)[..., None]) * SCALE
    shared = ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do
    sums = (x.reshape(x.shape[0], -1, group, *x.shape[2:]).sum(2) for x in shared)
    return [o, lse, ds @ k, *sums]


def case(
    queries: int, keys: int, kv_heads: int, causal: bool, window: int = 0
) -> tuple[list[Launch], list[np.ndarray], list[np.ndarray]]:
    """Launches for two heads of random numbers, what they fill, and what that must be: dq, dk and dv."""
    rng = np.random.default_rng(0)
    q, do = (rng.normal(size=(1, 2, queries, 64)).astype(np.float16) for _ in range(2))
    k, v = (rng.normal(size=(1, kv_heads, keys, 64)).astype(np.float16) for _ in range(2))
    o, lse, *wanted = reference(do, q, k, v, causal, window)
    given = do, q, k, v, o.astype(np.float16), lse.astype(np.float32)
    found = [np.full_like(x, np.nan) for x in (q, k, v)]
    return block_launches(*given, *found, causal, SCALE, STEPS, "cuda:90", window), found, wanted


@pytest.mark.parametrize(("causal", "queries", "keys", "kv_heads"), [(False, 100, 70, 1), (True, 120, 120, 2)])
def test_blocks_in_turn(
    causal: bool,
    queries: int,
    keys: int,
    kv_heads: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Several blocks of a program, in pairs where they are causal; ends that no block divides, shared heads."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    launches, found, wanted = case(queries, keys, kv_heads, causal)
    for launch in launches:
        in_turn = persistent_launch(launch, 1)
        assert in_turn is not None
        assert in_turn.grid == (1,)
        computes, copies = in_turn.run().asm["ttg"].split("partition num_warps")
        assert "async_tma_copy_global_to_local" in copies
        assert "async_tma_copy_global_to_local" not in computes
    for gradient, exact in zip(found, wanted, strict=True):
        assert np.linalg.norm(gradient - exact) < 2e-3 * np.linalg.norm(exact)


def test_which_gradients_are_computed_in_turn() -> None:
    """Where blocks have few steps, several rounds of programs, and each causal block a partner."""
    for length, causal, window, turns in (
        (2048, False, 0, True), (4096, False, 0, False), (4096, True, 0, True), (8192, True, 0, False),
        (4096, True, 512, False), (1920, True, 0, False),
    ):  # fmt: skip
        q = np.zeros((4, 16, length, 128), np.float16)
        lse = np.zeros(q.shape[:3], np.float32)
        steps = steps_on("cuda:90", q)
        assert steps is not None
        launches = block_launches(q, q, q, q, q, lse, q, q, q, causal, None, steps, "cuda:90", window)
        assert [launch.kernel in PERSISTENT.values() for launch in launches] == [turns] * 2
