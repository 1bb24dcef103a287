"""Reductions whose combination takes one of equal elements as they come: which one, lanes may not disagree about."""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl


@triton.jit
def either(value, place, other, elsewhere):
    chosen = value >= other
    return tl.where(chosen, value, other), tl.where(chosen, place, elsewhere)


@triton.jit
def whole(x, places, N: tl.constexpr):
    i = tl.arange(0, N)
    _best, place = tl.reduce((tl.load(x + i), i), 0, either)
    tl.store(places + i, place + tl.zeros((N,), tl.int32))


@triton.jit
def along(x, places, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    numbers = j + i * 0 if AXIS else i + j * 0
    _best, place = tl.reduce((tl.load(x + i * N + j), numbers), AXIS, either)
    tl.store(places + i * N + j, tl.expand_dims(place, AXIS) + tl.zeros((M, N), tl.int32))


def check(target: str, num_warps: int) -> None:
    """Every lane has the same place of a largest element, for whole blocks and along each dimension."""
    rng = np.random.default_rng(num_warps)
    x = rng.integers(0, 2, 128).astype(np.float32)
    places = np.full(128, -1, np.int32)
    whole[(1,)](x, places, N=128, num_warps=num_warps, target=target)
    assert len(set(places.tolist())) == 1 and x[places[0]] == 1
    for axis in (0, 1):
        x = rng.integers(0, 2, (8, 32)).astype(np.float32)
        places = np.full((8, 32), -1, np.int32)
        along[(1,)](x, places, M=8, N=32, AXIS=axis, num_warps=num_warps, target=target)
        assert (places == np.take(places, [0], axis)).all()
        largest = np.broadcast_to(x.max(axis, keepdims=True), x.shape)
        np.testing.assert_array_equal(np.take_along_axis(x, places.astype(np.int64), axis), largest)
