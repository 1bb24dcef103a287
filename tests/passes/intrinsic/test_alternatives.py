"""What is computed in a region that may not run is not there behind it: branches, loops of no iteration, conditions.

Every kernel uses an expensive value inside a region and again behind it, so that the region is the first to bring it to
scratch memory. All levels agree, and none reads scratch memory that nothing has written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value
from mltriton.frontend.function import LanguageFunction
from mltriton.tools.verify import verify_kernel

Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@triton.jit
def in_a_branch(x, y, z, k, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    acc = v
    if k > 2:
        for _ in range(k):
            acc = acc * 0.5 + v
    tl.store(y + i, acc)
    tl.store(z + i, v)


@triton.jit
def in_the_other_branch(x, y, z, k, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    acc = v + 1
    if k > 2:
        acc = v * 2
    else:
        for j in range(2):
            acc = acc * 0.5 + v * j
    tl.store(y + i, acc + v)
    tl.store(z + i, v)


@triton.jit
def in_a_loop(x, y, z, k, N: tl.constexpr):
    """The inner loop materialises what the outer one, which may not run, does not change."""
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    acc = tl.zeros((N,), tl.float32)
    for j in range(k - 2):
        for _ in range(2):
            acc = acc * 0.5 + v * j
    tl.store(y + i, acc)
    tl.store(z + i, v)


@triton.jit
def in_a_while(x, y, z, k, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    acc = tl.zeros((N,), tl.float32)
    while k > 2:
        for _ in range(2):
            acc = acc * 0.5 + v
        k -= 1
    tl.store(y + i, acc)
    tl.store(z + i, v)


@triton.jit
def in_a_condition(x, y, z, k, N: tl.constexpr):
    """A loop left early: what stands in its condition runs, what stands behind the break may not."""
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    acc = v
    for j in range(4):
        if j + k > 3:
            break
        for _ in range(2):
            acc = acc * 0.5 + v
    tl.store(y + i, acc)
    tl.store(z + i, v)


@triton.jit
def behind_a_return(x, y, z, k, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    acc = v
    if k > 2:
        for _ in range(2):
            acc = acc * 0.5 + v
        tl.store(y + i, acc)
        return
    tl.store(y + i, acc + 1)
    tl.store(z + i, v)


@triton.jit
def nested(x, y, z, k, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    w = tl.log(v + 2) / 5
    acc = v
    if k > 0:
        if k > 2:
            for _ in range(k):
                acc = acc * 0.5 + v
        else:
            for _ in range(k):
                acc = acc * 0.25 + w
        acc += v * w
    tl.store(y + i, acc + w)
    tl.store(z + i, v)


@triton.jit
def gathered(x, y, z, k, N: tl.constexpr):
    """A gather brings its source to memory."""
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i) / 3)
    acc = v
    if k > 2:
        acc = tl.gather(v, (i * 7) % N, 0)
    tl.store(y + i, acc)
    tl.store(z + i, v)


@triton.jit
def one_element(x, y, z, k, N: tl.constexpr):
    """Inside the branch the value is read at a place that is known, which is computed further out."""
    i = tl.arange(0, N)
    one = tl.arange(0, 1)
    v = tl.exp(tl.load(x + one + k) / 3)
    acc = tl.load(x + i)
    if k > 2:
        for _ in range(k):
            acc = acc * 0.5 + v
        acc += tl.sum(v, 0)
    tl.store(y + i, acc + v)
    tl.store(z + i, v + i)


@triton.jit
def block_of_one_row(x, y, z, k, N: tl.constexpr):
    """Filled with lanes of a row, read as a column of it."""
    i = tl.arange(0, N)
    v = tl.exp(tl.load(x + i)[None, :] / 3)
    acc = tl.zeros((1, N), tl.float32)
    if k > 2:
        for _ in range(k):
            acc = acc * 0.5 + v
        acc += tl.trans(tl.reshape(tl.trans(v), (N, 1)))
    tl.store(y + i[None, :], acc)
    tl.store(z + i[None, :], v + acc)


@triton.jit
def scalar_of_a_block(x, y, z, k, N: tl.constexpr):
    """The carried scalar is read from the carried block before that is overwritten."""
    i = tl.arange(0, N)
    one = tl.arange(0, 1)
    block = tl.load(x + one)
    s = 0.5
    for j in range(k):
        s = tl.sum(tl.reshape(block, (1,)), 0) if N == 1 else block.reshape([]) + j
        block = tl.exp(block * 0.25) + j
    tl.store(y + i, tl.load(x + i) + s)
    tl.store(z + one, block)


@triton.jit
def overwritten_on_one_side(x, y, z, k, N: tl.constexpr):
    """One side of the branch writes over the block that the other one still reads."""
    i = tl.arange(0, N)
    acc = tl.zeros((N,), tl.float32)
    for j in range(3):
        acc = tl.cumsum(acc, 0) + tl.load(x + i)
        if j == k:
            acc = tl.flip(acc) * 2
        elif j > k:
            acc = acc + tl.exp(acc * 0.0625)
    tl.store(y + i, acc)
    tl.store(z + i, tl.load(x + i))


@triton.jit
def unchanged_companion(x, y, z, k, N: tl.constexpr):
    """A block that is carried, and another made of its first value that the loop only reads."""
    i = tl.arange(0, N)
    v = tl.cumsum(tl.load(x + i), 0)
    w = v * 2
    for _ in range(k):
        v = v * 0.5 + w
    tl.store(y + i, v)
    tl.store(z + i, tl.load(x + i))


KERNELS = [
    *[in_a_branch, in_the_other_branch, in_a_loop, in_a_while, in_a_condition, behind_a_return, nested, gathered],
    *[one_element, block_of_one_row, scalar_of_a_block, overwritten_on_one_side, unchanged_companion],
]


def check(kernel: LanguageFunction, args: dict[str, Any], target: str = "cpu") -> None:
    """Every level gives the same, and no level reads scratch memory that nothing has written."""
    result = verify_kernel(kernel, args=args, grid=(1,), target=target, uninitialised=True)
    assert result.ok, str(result)


@each_value(("kernel", KERNELS), ("n", [16, 256]))
def test_both_ways(kernel: LanguageFunction, n: int) -> None:
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    for k in (0, 2, 4):
        check(kernel, {"x": x, "y": np.zeros(n, "f"), "z": np.zeros(n, "f"), "k": k, "N": n})


@triton.jit
def dots(a, b, y, z, k, M: tl.constexpr, N: tl.constexpr):
    """Both operands are prepared for the loop inside the branch, and multiplied again behind it."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    left = tl.exp(tl.load(a + i[:, None] * M + i[None, :]) / 3)
    right = tl.load(b + j[None, :] * M + i[:, None]) / 5
    acc = tl.zeros((M, N), tl.float32)
    if k > 2:
        for _ in range(k):
            acc = tl.dot(left, right, acc * 0.5)
    tl.store(y + i[:, None] * N + j[None, :], acc)
    tl.store(z + i[:, None] * N + j[None, :], tl.dot(left, right) + tl.sum(left, 1)[:, None])


@pytest.mark.parametrize("dtype", ["f4", "i1"])
@pytest.mark.parametrize("k", [0, 4])
def test_operands_of_dots(k: int, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (np.round(rng.standard_normal(shape) * 3).astype(dtype) for shape in ((32, 32), (16, 32)))
    out = {name: np.zeros((32, 16), "f4") for name in "yz"}
    if dtype == "i1":
        check(
            whole_dots, {"a": a, "b": b, **{name: o.astype("i4") for name, o in out.items()}, "k": k, "M": 32, "N": 16}
        )
    else:
        check(dots, {"a": a.astype("f4"), "b": b.astype("f4"), **out, "k": k, "M": 32, "N": 16})


@triton.jit
def whole_dots(a, b, y, z, k, M: tl.constexpr, N: tl.constexpr):
    """The same with operands of integers, which are packed."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    left = tl.load(a + i[:, None] * M + i[None, :])
    right = tl.load(b + j[None, :] * M + i[:, None])
    acc = tl.zeros((M, N), tl.int32)
    if k > 2:
        for _ in range(k):
            acc = tl.dot(left, right, acc, out_dtype=tl.int32)
    tl.store(y + i[:, None] * N + j[None, :], acc)
    tl.store(z + i[:, None] * N + j[None, :], tl.dot(left, right, out_dtype=tl.int32))
