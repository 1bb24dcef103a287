"""Attention by programs that compute blocks of queries in turn, on the PTX emulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mltriton.kernels.attention import attention_launch
from mltriton.kernels.attention_blocks import Blocks, blocks_on, warps_on
from mltriton.kernels.attention_persistent import persistent_launch
from ptx_emulator.launch import install

SCALE = 0.125


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, window: int | None = None) -> np.ndarray:
    k, v = (np.repeat(x.astype(np.float64), q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * SCALE
    if causal:
        scores[..., ~np.tri(q.shape[-2], k.shape[-2], dtype=bool)] = -np.inf
    if window is not None:
        scores[..., np.tri(q.shape[-2], k.shape[-2], -window, dtype=bool)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


@pytest.mark.parametrize(
    ("causal", "queries", "keys"), [(False, 200, 130), (False, 128, 40), (True, 250, 250), (True, 150, 150)]
)
def test_blocks_in_turn(causal: bool, queries: int, keys: int) -> None:
    """Several blocks of a program, ends that no block divides, one block of keys for a block of queries, an odd number
    of blocks.
    """
    rng = np.random.default_rng(0)
    q = rng.normal(size=(1, 4, queries, 64)).astype(np.float16)
    k, v = (rng.normal(size=(1, 2, keys, 64)).astype(np.float16) for _ in range(2))
    o, lse = np.full_like(q, np.nan), np.full(q.shape[:3], np.nan, np.float32)
    launch = persistent_launch(attention_launch(q, k, v, o, causal, SCALE, Blocks(64, 64, 4), lse), 3)
    assert launch is not None and launch.grid == (3,)
    made = launch.on("cuda:90", 4, 2).run()
    assert np.abs(o - reference(q, k, v, causal)).max() < 2e-3
    assert np.isfinite(lse).all()
    assert "mbarrier" in made.asm["ptx"]
    assert "ttg.warp_specialize" in made.asm["ttg"]


@pytest.mark.parametrize(("window", "length"), [(1, 100), (40, 250), (64, 192), (129, 300)])
def test_sliding_windows(window: int, length: int) -> None:
    """Less than a block, blocks that some queries see nothing of, all three loops; an item is one block."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, length, 64)).astype(np.float16) for _ in range(3))
    o, lse = np.full_like(q, np.nan), np.full(q.shape[:3], np.nan, np.float32)
    launch = persistent_launch(attention_launch(q, k, v, o, True, SCALE, Blocks(64, 64, 4), lse, window), 3)
    assert launch is not None
    made = launch.on("cuda:90", 4, 2).run()
    assert np.abs(o - reference(q, k, v, True, window)).max() < 2e-3
    assert np.isfinite(lse).all()
    assert "ttg.warp_specialize" in made.asm["ttg"]


@pytest.mark.parametrize("dim", [64, 128])
def test_windows_have_a_producer_at_the_blocks_of_the_gpu(dim: int) -> None:
    """Three loops' keys and values take each other's place."""
    q, k, v = (np.zeros((4, 32, 1024, dim), np.float16) for _ in range(3))
    blocks = blocks_on("cuda:90", q)
    launch = attention_launch(q, k, v, np.zeros_like(q), True, blocks=blocks, window=300)
    launch = persistent_launch(launch.on("cuda:90", *warps_on("cuda:90", q, blocks)), 132)
    assert launch is not None
    assert "ttg.warp_specialize default" in launch.compiled().asm["ttg"]


def test_an_output_that_is_the_queries() -> None:
    """No copy of later queries may overtake a store of earlier results: lanes copy."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, 128, 64)).astype(np.float16) for _ in range(3))
    wanted = reference(q, k, v, causal=False)
    launch = persistent_launch(attention_launch(q, k, v, q, False, SCALE, Blocks(64, 64, 4)), 2)
    assert launch is not None
    made = launch.on("cuda:90", 4, 2).run()
    assert "apart" in made.asm["ttg"]
    assert np.abs(q - wanted).max() < 2e-3


def test_one_round_takes_a_program_for_each_block() -> None:
    q, k, v = (np.zeros((1, 2, 192, 64), np.float16) for _ in range(3))
    for causal, programs, has in ((False, 6, False), (False, 5, True), (True, 4, False), (True, 3, True)):
        launch = attention_launch(q, k, v, q, causal, SCALE, Blocks(64, 64, 4))
        assert (persistent_launch(launch, programs) is not None) == has
