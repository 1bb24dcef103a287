"""A block that a side of a branch, or a loop, hands on as it is stays in its tile, unless that is needed behind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler import compile
from mltriton.dialects import scf, tile
from mltriton.frontend.function import LanguageFunction
from mltriton.ir.parser import parse_module
from mltriton.tools.verify import verify_kernel


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@triton.jit
def square(x, N: tl.constexpr):
    """A block that stands in memory: a product."""
    i = tl.arange(0, N)
    a = tl.load(x + i[:, None] * N + i[None, :])
    return tl.dot(a, a, input_precision="ieee")


@triton.jit
def put(y, block, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i[:, None] * N + i[None, :], block)


@triton.jit
def masked(x, y, z, k, N: tl.constexpr):
    """The first elements only, or all."""
    i = tl.arange(0, N)
    s = square(x, N)
    if k > 2:
        s = tl.where(i[:, None] >= i[None, :], s, -1.0)
    put(y, tl.exp(s - tl.max(s, 1)[:, None]), N)


@triton.jit
def kept_on_the_first_side(x, y, z, k, N: tl.constexpr):
    s = square(x, N)
    if k > 2:
        r = s
    else:
        r = s * 3 + k
    put(y, r - tl.sum(r, 1)[:, None], N)


@triton.jit
def needed_behind(x, y, z, k, N: tl.constexpr):
    s = square(x, N)
    r = s
    if k > 2:
        r = s * 2 + 1
    put(y, r - tl.max(r, 1)[:, None], N)
    put(z, s + tl.max(s, 1)[:, None], N)


@triton.jit
def needed_in_the_next_iteration(x, y, z, k, N: tl.constexpr):
    s = square(x, N)
    total = tl.zeros((N, N), tl.float32)
    for j in range(3):
        r = s
        if j + k > 2:
            r = s * 2 + j
        total += r - tl.max(r, 1)[:, None]
    put(y, total, N)


@triton.jit
def other_elements(x, y, z, k, N: tl.constexpr):
    s = square(x, N)
    if k > 2:
        s = tl.trans(s) + tl.sum(s, 0)[None, :]
    put(y, s - tl.max(s, 1)[:, None], N)


@triton.jit
def twice(x, y, z, k, N: tl.constexpr):
    """Both results are the same block on one side."""
    s = square(x, N)
    if k > 2:
        a, b = s, s
    else:
        a, b = s + 1, tl.trans(s)
    put(y, a - tl.max(a, 1)[:, None], N)
    put(z, b - tl.max(b, 1)[:, None], N)


@triton.jit
def exchanged(x, y, z, k, N: tl.constexpr):
    a = square(x, N)
    b = square(x + 1, N)
    if k > 2:
        a, b = b, a
    put(y, a - tl.max(a, 1)[:, None], N)
    put(z, b + tl.max(b, 1)[:, None], N)


@triton.jit
def summed_before_it_is_written(x, y, z, k, N: tl.constexpr):
    """A product on the written side takes the block that stands there as its operand."""
    s = square(x, N)
    if k > 2:
        s = tl.dot(s, tl.trans(s), s, input_precision="ieee") * 0.125
    put(y, s - tl.max(s, 1)[:, None], N)


@triton.jit
def handed_on_in_a_loop(x, y, z, k, N: tl.constexpr):
    """What stays in the tile of `b` is not where the loop carries it."""
    a = square(x, N)
    b = square(x + 1, N)
    for j in range(3):
        if j + k > 2:
            a, b = b, b
        else:
            a, b = a - tl.max(a, 1)[:, None], b + tl.sum(a, 0)[None, :]
    put(y, a, N)
    put(z, b, N)


@triton.jit
def exchanged_in_a_loop(x, y, z, k, N: tl.constexpr):
    a = square(x, N)
    b = square(x + 1, N)
    for j in range(3):
        if j + k > 2:
            a, b = b, a * 0.5
        else:
            a, b = tl.trans(a), tl.trans(b)
    put(y, a, N)
    put(z, b, N)


@triton.jit
def converted_before_a_loop_ends(x, y, z, k, N: tl.constexpr):
    """A loop passes on a block in the form of an operand, which it computes where it asks whether to go on."""
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(x + i), tl.load(x + i + 1)
    c = a - b
    for _ in range(3):
        j = k
        while j > 0:
            steps = k
            while steps > 0:
                a, b, c = b, c * k * 0.25, c - tl.max(b, 1)[:, None]
                steps -= 2
            if j > 1:
                a, c, b = b - tl.max(c, 1)[:, None], c * 0.5 + tl.sum(a, 0)[None, :] * 0.125, b
                a, c = c, tl.dot(b, c, c, input_precision="ieee") * 0.125
            j -= 1
    put(y, a, N)
    put(z, c, N)


KERNELS = [
    *[masked, kept_on_the_first_side, needed_behind, needed_in_the_next_iteration, other_elements, twice, exchanged],
    *[summed_before_it_is_written, handed_on_in_a_loop, exchanged_in_a_loop],
    converted_before_a_loop_ends,
]


@pytest.mark.parametrize("k", [0, 4])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_both_ways(kernel: LanguageFunction, k: int) -> None:
    n = 32
    x = np.random.default_rng(0).standard_normal(n * n + 1).astype(np.float32)
    args = {"x": x, "y": np.zeros((n, n), "f4"), "z": np.zeros((n, n), "f4"), "k": k, "N": n}
    result = verify_kernel(kernel, args=args, grid=(1,), uninitialised=True)
    assert result.ok, str(result)


@pytest.mark.parametrize(("kernel", "idle"), [(masked, 1), (kept_on_the_first_side, 0)])
def test_a_side_that_hands_a_block_on_copies_nothing(kernel: LanguageFunction, idle: int) -> None:
    text = compile(kernel, "*fp32, *fp32, *fp32, i32, 32", target="cpu:avx512").asm["intrinsic"]
    (branch,) = (op for op in parse_module(text).walk() if isinstance(op, scf.If) and len(op.regions[0].block.ops) > 0)
    stores = [sum(isinstance(op, tile.Store) for op in region.block.ops[0].walk()) for region in branch.regions]
    assert stores[idle] == 0 < stores[1 - idle]
