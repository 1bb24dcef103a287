"""Updates of elements that lanes share: a block is loaded before any of it is stored, whatever its chunks are."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from levels import check_levels


@triton.jit
def one_element(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """All lanes update the same element."""
    i = tl.arange(0, N)
    at = x + tl.zeros((N,), tl.int32)
    old = tl.load(at, mask=i < n, other=0.0)
    tl.store(at, old + 1, mask=i < n)
    tl.store(y + i, old, mask=i < n)


@triton.jit
def wrapped(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Elements repeat after a number that is known when the program runs."""
    i = tl.arange(0, N)
    old = tl.load(x + i % n)
    tl.store(x + i % n, old * 2)
    tl.store(y + i, old)


@triton.jit
def same_rows(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Four rows of a block are the same row of the array."""
    i = tl.arange(0, N // 4)[None, :] + tl.zeros((4, 1), tl.int32)
    old = tl.load(x + i)
    tl.store(x + i, old + n)
    tl.store(y + tl.arange(0, 4)[:, None] * (N // 4) + i, old)


@triton.jit
def diagonals(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """A step of both dimensions is one element: what lies on a diagonal is one."""
    i = tl.arange(0, N // 16)[:, None] + tl.arange(0, 16)[None, :]
    old = tl.load(x + i)
    tl.store(x + i, old + n)
    tl.store(y + tl.arange(0, N // 16)[:, None] * 16 + tl.arange(0, 16)[None, :], old)


@triton.jit
def short_rows(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows are longer than the step from one to the next."""
    i = tl.arange(0, N // 32)[:, None] * 8 + tl.arange(0, 32)[None, :]
    old = tl.load(x + i)
    tl.store(x + i, old * n)
    tl.store(y + tl.arange(0, N // 32)[:, None] * 32 + tl.arange(0, 32)[None, :], old)


@triton.jit
def narrow(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """Indices of 8 bits begin again after 256, shifted ones after 16."""
    i = (tl.arange(0, N).to(tl.int8) << 4).to(tl.int32) + 128
    old = tl.load(x + i)
    tl.store(x + i, old + n)
    tl.store(y + tl.arange(0, N), old)


@triton.jit
def exclusive(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """An exclusive or of two ranges."""
    i = tl.arange(0, 16)[:, None] ^ tl.arange(0, 16)[None, :]
    old = tl.load(x + i)
    tl.store(x + i, old + n)
    tl.store(y + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], old)


@triton.jit
def halved(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """A loop brings elements together."""
    i = tl.arange(0, N)
    for _ in range(6):
        i = i // 2
    old = tl.load(x + i)
    tl.store(x + i, old + n)
    tl.store(y + tl.arange(0, N), old)


@triton.jit
def two_parameters(x, y, n, N: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same element through two parameters."""
    old = tl.load(x + tl.zeros((N,), tl.int32))
    tl.store(y + tl.zeros((N,), tl.int32), old + n)


SHARING = [one_element, wrapped, same_rows, diagonals, short_rows, narrow, exclusive, halved]


@pytest.mark.parametrize("kernel", SHARING)
@pytest.mark.parametrize("n", [16, 200])
def test_elements_that_lanes_share_are_updated_once(kernel: triton.JITFunction, n: int) -> None:
    x = np.arange(256, dtype=np.float32)
    check_levels(kernel, {"x": x, "y": np.zeros(256, np.float32), "n": n, "N": 256}, (1,))


def test_an_element_of_two_parameters_that_are_one_array() -> None:
    x = np.ones(4, np.float32)
    two_parameters[(1,)](x, x, 3, N=256)
    assert x.tolist() == [4, 1, 1, 1]
