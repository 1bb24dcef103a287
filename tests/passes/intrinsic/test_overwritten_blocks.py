"""Other elements of a block are read as they were, whatever is written to its place in the same nest or iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from processors import WIDTHS

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@triton.jit
def elsewhere(b, HOW: tl.constexpr):
    """A square block made of the elements of `b` at other indices."""
    n: tl.constexpr = b.shape[0]
    if HOW == "flip":
        return tl.flip(b, 1)
    elif HOW == "flip rows":
        return tl.flip(b, 0)
    elif HOW == "trans":
        return tl.trans(b)
    elif HOW == "reshape":
        return tl.reshape(tl.trans(tl.reshape(b, [2, n * n // 2])), [n, n])
    elif HOW == "split":
        left, right = tl.split(tl.reshape(b, [n, n // 2, 2]))
        return tl.reshape(tl.join(right, left), [n, n])
    elif HOW == "gather":
        return tl.gather(b, (tl.arange(0, n)[:, None] + 3 + tl.arange(0, n)[None, :]) % n, 1)
    elif HOW == "sum":
        return b * 0 + tl.sum(tl.flip(b, 1), 0)[None, :]
    else:
        return b * 0 + tl.sum(tl.trans(b) * tl.arange(0, n)[None, :], 1)[:, None]


def expected_elsewhere(b: Array, how: str) -> Array:
    """The same in numpy."""
    n = len(b)
    i = np.arange(n)
    of: dict[str, Callable[[], Array]] = {
        "flip": lambda: b[:, ::-1],
        "flip rows": lambda: b[::-1],
        "trans": lambda: b.T,
        "reshape": lambda: b.reshape(2, -1).T.reshape(n, n),
        "split": lambda: b.reshape(n, n // 2, 2)[..., ::-1].reshape(n, n),
        "gather": lambda: b[i[:, None], (i[:, None] + i + 3) % n],
        "sum": lambda: b * 0 + b[:, ::-1].sum(0, dtype=b.dtype),
        "weighted": lambda: b * 0 + (b.T * i.astype(b.dtype)).sum(1, dtype=b.dtype)[:, None],
    }
    return of[how]()


HOW = ("flip", "flip rows", "trans", "reshape", "split", "gather", "sum", "weighted")


@triton.jit
def carried(x, out, steps, N: tl.constexpr, HOW: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = b = tl.load(x + at)
    for _ in range(steps):
        a += elsewhere(b, HOW)
        b = b * 3 + 1
    tl.store(out + at, a)
    tl.store(out + N * N + at, b)


@triton.jit
def carried_rows(x, out, steps, N: tl.constexpr):
    at = tl.arange(0, N)
    a = b = tl.load(x + at)
    for _ in range(steps):
        a += tl.flip(b, 0)
        b = b * 3 + 1
    tl.store(out + at, a)
    tl.store(out + N + at, b)


@triton.jit
def in_memory(x, out, N: tl.constexpr, HOW: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    b = tl.load(x + at)
    tl.store(out + at, elsewhere(b, HOW).to(out.dtype.element_ty))
    tl.store(x + at, b * 3 + 1)


@pytest.mark.parametrize("target", ["cpu", *WIDTHS[:1]])
@pytest.mark.parametrize("how", HOW)
def test_a_carried_block(how: str, target: str) -> None:
    x = np.arange(256, dtype=np.int32).reshape(16, 16)
    out = np.zeros((2, 16, 16), np.int32)
    carried[(1,)](x, out, 3, N=16, HOW=how, target=target)
    a = b = x
    for _ in range(3):
        a, b = a + expected_elsewhere(b, how), b * 3 + 1
    np.testing.assert_array_equal(out, [a, b])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize("n", [16, 256])
def test_a_carried_row(n: int, dtype: type) -> None:
    x = np.arange(n).astype(dtype)
    out = np.zeros((2, n), dtype)
    carried_rows[(1,)](x, out, 3, N=n)
    a = b = x
    for _ in range(3):
        a, b = a + b[::-1], b * 3 + 1
    np.testing.assert_array_equal(out, [a, b])


@pytest.mark.parametrize("target", ["cpu", *WIDTHS[:1]])
@pytest.mark.parametrize("how", HOW)
def test_a_block_in_memory(how: str, target: str) -> None:
    """The other array has elements of another type: it is known to be another one."""
    x = np.arange(256, dtype=np.int32).reshape(16, 16)
    before, out = x.copy(), np.zeros((16, 16), np.int64)
    in_memory[(1,)](x, out, N=16, HOW=how, target=target)
    np.testing.assert_array_equal(out, expected_elsewhere(before, how))
    np.testing.assert_array_equal(x, before * 3 + 1)
