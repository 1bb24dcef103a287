"""Several stores of one program to the same elements, of which the engine does one at least: the last one stays. The
emulator lets the engine write as late as it may, the last copy first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from ptx_emulator.launch import install

STORE, WHOLE_WAIT = "cp.async.bulk.tensor.2d.global", "cp.async.bulk.wait_group 0"
ALL: dict[str, Any] = {"target": "cuda:90", "tensor_maps": "all"}


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


@triton.jit
def repeated(x, y, n, HOW: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [128, 64], [64, 1], [32, 64])
    target = tl.make_tensor_descriptor(y, [128, 64], [64, 1], [32, 64])
    block = source.load([0, 0])
    if HOW == "twice":
        target.store([0, 0], block)
        target.store([0, 0], block + 1)
    elif HOW == "loop":
        for i in range(n):
            target.store([0, 0], block + i)
    elif HOW == "pairs":
        for i in range(n):
            target.store([i // 2 * 32, 0], block + i)
    elif HOW == "rows":
        for i in range(n):
            target.store([i * 32, 0], block + i)
    elif HOW == "halves":
        for i in range(0, n, 2):
            target.store([i * 32, 0], block + i)
            target.store([i * 32 + 32, 0], block + i + 1)
    elif HOW == "overlap":
        for i in range(n):
            target.store([i * 16, 0], block + i)
            tl.debug_barrier()
    elif HOW == "branch":
        for i in range(n):
            if i % 2 == 0:
                target.store([0, 0], block + i)
            else:
                target.store([16, 0], block + i)
            tl.debug_barrier()
    elif HOW == "sizes" or HOW == "inside":
        less = tl.make_tensor_descriptor(y, [128, 64], [64, 1], [16, 64])
        target.store([0, 0], block)
        less.store([32 if HOW == "sizes" else 16, 0], tl.full((16, 64), 7, tl.float32))
    elif HOW == "while":
        i = 0
        while i < n:
            target.store([i // 2 * 32, 0], block + i)
            i += 1


def _expected(x: np.ndarray[Any, Any], how: str, n: int) -> np.ndarray[Any, Any]:
    y, block = np.zeros_like(x), x[:32]
    if how in ("sizes", "inside"):
        y[:32] = block
        start = 32 if how == "sizes" else 16
        y[start : start + 16] = 7
        return y
    starts = {
        "twice": [0, 0],
        "loop": [0] * n,
        "pairs": [i // 2 * 32 for i in range(n)],
        "while": [i // 2 * 32 for i in range(n)],
        "rows": [i * 32 for i in range(n)],
        "halves": [i * 32 for i in range(n)],
        "overlap": [i * 16 for i in range(n)],
        "branch": [i % 2 * 16 for i in range(n)],
    }[how]
    for i, start in enumerate(starts):
        y[start : start + 32] = block + i
    return y


HOWS = ("twice", "loop", "pairs", "while", "rows", "halves", "overlap", "branch", "sizes", "inside")


@pytest.mark.parametrize("how", HOWS)
def test_the_last_store_stays(how: str) -> None:
    """The engine is waited for only where blocks may meet."""
    x = np.random.default_rng(0).integers(0, 99, (128, 64)).astype(np.float32)
    y = np.zeros_like(x)
    kernel = repeated[(1,)](x, y, 4, how, **ALL)
    np.testing.assert_array_equal(y, _expected(x, how, 4))
    ptx = kernel.asm["ptx"]
    assert STORE in ptx
    assert (WHOLE_WAIT in ptx) == (how not in ("rows", "halves", "sizes"))


@triton.jit
def to_two(x, y, z, SHIFT: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [32, 64])
    first = tl.make_tensor_descriptor(y, [64, 64], [64, 1], [32, 64])
    second = tl.make_tensor_descriptor(z, [64, 64], [64, 1], [32, 64])
    block = source.load([0, 0])
    first.store([0, 0], block)
    second.store([0, 0], block + 1)


def test_one_array_for_two_parameters() -> None:
    """The launch compares them, and does without the engine."""
    x = np.random.default_rng(0).integers(0, 99, (64, 64)).astype(np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    kernel = to_two[(1,)](x, y, z, 0, **ALL)
    assert (y[:32] == x[:32]).all()
    assert (z[:32] == x[:32] + 1).all()
    assert STORE in kernel.asm["ptx"] and WHOLE_WAIT not in kernel.asm["ptx"]
    y[:] = 0
    to_two[(1,)](x, y, y, 0, **ALL)
    assert (y[:32] == x[:32] + 1).all()


@triton.jit
def with_lanes(x, y, LANES_FIRST: tl.constexpr):
    rows, columns = tl.arange(0, 32), tl.arange(0, 64)
    source = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [32, 64])
    target = tl.make_tensor_descriptor(y, [64, 64], [64, 1], [32, 64])
    block = source.load([0, 0])
    odd = y + (rows[:, None] * 64 + (columns ^ 1)[None, :])
    if LANES_FIRST:
        tl.store(odd, block - 1)
        tl.debug_barrier()
    target.store([0, 0], block)
    if not LANES_FIRST:
        tl.debug_barrier()
        tl.store(odd, block - 1)


@pytest.mark.parametrize("lanes_first", [False, True])
def test_stores_by_lanes(lanes_first: bool) -> None:
    """Lanes store all then."""
    x = np.random.default_rng(0).integers(0, 99, (64, 64)).astype(np.float32)
    y = np.zeros_like(x)
    kernel = with_lanes[(1,)](x, y, lanes_first, **ALL)
    turned = x[:32].reshape(32, 32, 2)[:, :, ::-1].reshape(32, 64)
    assert (y[:32] == (x[:32] if lanes_first else turned - 1)).all()
    assert STORE not in kernel.asm["ptx"]


@triton.jit
def in_place(x, y):
    rows, columns = tl.arange(0, 32), tl.arange(0, 64)
    target = tl.make_tensor_descriptor(y, [32, 64], [64, 1], [32, 64])
    block = tl.load(y + (rows[:, None] * 64 + (columns ^ 1)[None, :]))
    target.store([0, 0], block + tl.load(x))


def test_what_lanes_have_read_is_stored_by_the_engine() -> None:
    """Behind a fence for global memory, too."""
    x = np.full(1, 3, np.float32)
    y = np.random.default_rng(0).integers(0, 99, (32, 64)).astype(np.float32)
    wanted = y.reshape(32, 32, 2)[:, :, ::-1].reshape(32, 64) + 3
    ptx = in_place[(1,)](x, y, **ALL).asm["ptx"]
    assert (y == wanted).all()
    assert STORE in ptx and "fence.proxy.async;" in ptx
