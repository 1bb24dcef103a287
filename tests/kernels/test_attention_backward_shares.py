"""Gradients of attention's keys by programs that share blocks: right on the PTX emulator, and where they are chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mltriton.kernels.attention_backward_blocks import block_launches, steps_on
from mltriton.kernels.attention_backward_shares import choose_shares, in_shares, shared_launches
from ptx_emulator.launch import install
from test_attention_backward_in_turn import case


@pytest.mark.parametrize(
    ("causal", "window", "queries", "keys", "shares"),
    [
        (False, 0, 200, 130, 2),
        (False, 0, 70, 64, 8),  # more shares than steps of a head
        (True, 40, 150, 150, 3),
    ],
)
def test_programs_share_blocks(
    causal: bool,
    window: int,
    queries: int,
    keys: int,
    shares: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Two heads that share keys, whose queries the programs of a block share as well; ends that no block divides."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    (of_queries, of_keys), found, wanted = case(queries, keys, 1, causal, window)
    of_queries.run()
    made = [launch.run() for launch in shared_launches(of_keys, shares)]
    assert "async_tma_copy_global_to_local" in made[0].asm["ttg"]
    for gradient, exact in zip(found, wanted, strict=True):
        assert np.linalg.norm(gradient - exact) < 2e-3 * np.linalg.norm(exact)


def test_a_producer_copies_for_programs_that_share_blocks() -> None:
    """As for those that have one each: what a program computes is never behind the arrays' beginnings."""
    q, k = np.zeros((1, 8, 4000, 128), np.float16), np.zeros((1, 2, 4000, 128), np.float16)
    lse, steps = np.zeros(q.shape[:3], np.float32), steps_on("cuda:90", q)
    assert steps is not None
    for causal in (False, True):
        of_keys = block_launches(q, q, k, k, q, lse, q, k, k, causal, None, steps, "cuda:90")[1]
        sums, add = in_shares(of_keys)
        assert add.kernel.__name__ == "add_shares_kernel"
        computes, copies = sums.compiled().asm["ttg"].split("partition num_warps")
        assert copies.count("async_tma_copy_global_to_local") >= 4
        assert "async_tma_copy_global_to_local" not in computes


# Heads, heads of keys, queries and keys, whether causal, and the best of 1, 2, 4 and 8 measured (H200).
MEASURED = [
    (8, 2, 4000, False, 2),
    (8, 2, 4000, True, 4),
    (32, 8, 4096, False, 1),
    (32, 8, 4096, True, 4),
    (8, 1, 4096, False, 4),
    (8, 1, 4096, True, 8),
    (8, 8, 1024, False, 2),
    (8, 8, 1024, True, 2),
    (8, 4, 2048, False, 2),
    (8, 4, 2048, True, 4),
]


@pytest.mark.parametrize(("heads", "kv_heads", "rows", "causal", "best"), MEASURED)
def test_as_many_programs_share_a_block_as_is_fastest(
    heads: int, kv_heads: int, rows: int, causal: bool, best: int
) -> None:
    q, k = np.empty((1, heads, rows, 128), np.float16), np.empty((1, kv_heads, rows, 128), np.float16)
    lse, steps = np.empty(q.shape[:3], np.float32), steps_on("cuda:90", q)
    assert steps is not None
    made = in_shares(block_launches(q, q, k, k, q, lse, q, k, k, causal, None, steps, "cuda:90")[1])
    assert made[0].grid[0] == best if len(made) == 2 else best == 1


@pytest.mark.parametrize(
    ("steps", "sequences", "wanted"),
    [
        ((4,) * 66, 1, 1),  # what sharing costs is more than it gains
        ((250,) * 66, 1, 2),
        ((250,) * 66, 2, 1),  # a full round
        ((250,) * 16, 1, 8),
        (tuple(range(256, 0, -4)), 16, 1),  # more rounds than were measured
    ],
)
def test_how_many_programs_share_a_block(steps: tuple[int, ...], sequences: int, wanted: int) -> None:
    assert choose_shares(steps, sequences, 132) == wanted


def test_a_window_bounds_the_steps_of_a_block() -> None:
    """The same blocks, of 32 steps where all queries see them and of four behind a window."""
    q, lse = np.empty((1, 4, 2048, 128), np.float16), np.empty((1, 4, 2048), np.float32)
    steps = steps_on("cuda:90", q)
    assert steps is not None
    shares = [
        len(in_shares(block_launches(q, q, q, q, q, lse, q, q, q, True, None, steps, "cuda:90", window)[1]))
        for window in (0, 64)
    ]
    assert shares == [2, 1]
