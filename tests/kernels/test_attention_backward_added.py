"""Gradients of attention of which dq is added up in memory: right on the PTX emulator, and where they are chosen."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mltriton.kernels import attention_backward
from mltriton.kernels.attention_backward_added import added_launches, is_added
from mltriton.kernels.attention_backward_blocks import steps_on
from ptx_emulator.launch import install
from test_attention_backward import assert_gradients, probabilities


def test_dq_is_added_up_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two programs add to the same sums, of two heads that share keys; queries that no block divides."""
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)
    rng = np.random.default_rng(0)
    do, q = (rng.normal(size=(1, 2, 40, 128)).astype(np.float16) for _ in range(2))
    k, v = (rng.normal(size=(1, 1, 256, 128)).astype(np.float16) for _ in range(2))
    p, lse = probabilities(*(x.astype(np.float64) for x in (q, k)), False, 128**-0.5)
    o = (p @ v.astype(np.float64)).astype(np.float16)
    found = [np.full_like(x, np.nan) for x in (q, k, v)]
    steps = steps_on("cuda:90", q)
    assert steps is not None
    launches = added_launches(do, q, k, v, o, lse.astype(np.float32), *found, None, steps[0], "cuda:90")
    made = [launch.run() for launch in launches]
    assert "red." in made[1].asm["ptx"] and "warp_specialize default" in made[1].asm["ttg"]
    assert_gradients(found, do, q, k, v, False, None)


@pytest.mark.parametrize(
    ("heads", "keys", "dim", "causal", "window", "wanted"),
    [
        (1, 4096, 128, False, 0, True),
        (1, 8192, 96, False, 0, True),
        (1, 2048, 128, False, 0, False),
        (1, 4100, 128, False, 0, False),
        (1, 4096, 64, False, 0, False),
        (1, 4096, 128, True, 0, False),
        (1, 4096, 128, True, 512, False),
        (4, 4096, 128, False, 0, False),
    ],
)
def test_where_it_is_faster(heads: int, keys: int, dim: int, causal: bool, window: int, wanted: bool) -> None:
    """Of long sequences whose queries see all keys, which each head has of its own."""
    q = np.empty((4, heads, 64, dim), np.float16)
    steps = steps_on("cuda:90", q)
    assert steps is not None
    assert is_added(q, np.empty((4, 1, keys, dim), np.float16), causal, window, steps[0]) == wanted
    assert not is_added(q[:1], np.empty((1, 1, keys, dim), np.float16), causal, window, steps[0])  # 32 or 64 programs


@pytest.mark.parametrize(
    ("asked", "on_torch", "by_torch", "wanted"),
    [
        (None, False, False, True),
        (False, False, False, False),
        (None, True, False, False),
        (None, True, True, True),
        (True, True, False, True),
        (False, True, True, False),
    ],
)
def test_who_says_that_results_are_the_same_each_time(
    asked: bool | None, on_torch: bool, by_torch: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The argument, else torch for its tensors; arrays of numpy's always are."""
    torch = SimpleNamespace(are_deterministic_algorithms_enabled=lambda: by_torch)
    monkeypatch.setitem(attention_backward.sys.modules, "torch", torch)
    monkeypatch.setattr(attention_backward, "is_torch", lambda _: on_torch)
    assert attention_backward._is_deterministic(np.empty(1), asked) == wanted


def test_only_where_it_may_be() -> None:
    x = np.zeros((1, 4, 4096, 128), np.float16)
    lse = np.zeros((1, 4, 4096), np.float32)
    for deterministic in (False, True):
        found = attention_backward._launches(
            x, x, x, x, x, lse, x, x, x, False, None, "cuda:90", 0, deterministic=deterministic
        )
        names = [launch.kernel.__name__ for launch in found]
        assert ("attention_backward_added_kernel" in names) == (not deterministic)
