"""Loops over rows are split where their masks end: the first part takes none, and what is computed is the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler import compile
from mltriton.dialects import arith, scf, tile, tt
from mltriton.frontend.function import LanguageFunction
from mltriton.ir.operation import Operation
from mltriton.tools.verify import verify_kernel
from processors import WIDTHS

N = 512
LENGTHS = [-3, 0, 1, 63, 64, 65, 200, 448, 511, 512, 2000]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(0)


@triton.jit
def centred(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n, other=0.0)
    mean = tl.sum(x, 0) / tl.maximum(n, 1)
    tl.store(y_ptr + i, tl.where(i < n, x - mean, 7.0), i <= n)


@triton.jit
def between(x_ptr, y_ptr, low, n, BLOCK: tl.constexpr):
    """Masks that start late, end early, and are compared from either side."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, (i >= low) & (n > i), other=1.0)
    y = tl.load(x_ptr + i, n >= i + 2, other=2.0)
    z = tl.load(x_ptr + BLOCK - 1 - i, BLOCK - 1 - i < n, other=3.0)
    tl.store(y_ptr + i, x + y * z, (i.to(tl.int64) < n) & (low < n))


@triton.jit
def square(x_ptr, y_ptr, n, m, M: tl.constexpr, BLOCK: tl.constexpr):
    """One comparison masks rows in one load and columns in another."""
    j = tl.arange(0, BLOCK)
    i = tl.arange(0, M)
    inside = j < n
    x = tl.load(x_ptr + i[:, None] * BLOCK + j[None, :], inside[None, :] & (i[:, None] < m), other=0.5)
    largest = tl.max(tl.load(x_ptr + j, inside, other=-1.0), 0)
    tl.store(y_ptr + i[:, None] * BLOCK + j[None, :], x + largest, inside[None, :])


@triton.jit
def window(x_ptr, y_ptr, start, n, M: tl.constexpr, BLOCK: tl.constexpr):
    """A block pointer and a descriptor that reach over the edges."""
    source = tl.make_block_ptr(x_ptr, (M, n), (BLOCK, 1), (0, start), (M, BLOCK), (1, 0))
    x = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    target = tl.make_tensor_descriptor(y_ptr, (M, n), (BLOCK, 1), (M, BLOCK))
    target.store((0, start), x * 2)


@triton.jit
def largest(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """A reduction without a neutral element: its first chunks stand before the loop."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n, other=-1e9)
    tl.store(y_ptr + tl.argmax(x, 0), tl.max(x, 0))


def agree(kernel: LanguageFunction, args: dict[str, Any], target: str = "cpu") -> None:
    result = verify_kernel(kernel, args=args, grid=(1,), target=target, uninitialised=True)
    assert result.ok, str(result)


def arrays(rng: np.random.Generator, *shape: int) -> dict[str, Any]:
    return {"x_ptr": rng.standard_normal(shape).astype(np.float32), "y_ptr": np.zeros(shape, np.float32)}


@pytest.mark.parametrize("n", LENGTHS)
def test_rows_of_any_length(n: int, rng: np.random.Generator) -> None:
    agree(centred, {**arrays(rng, N), "n": n, "BLOCK": N})
    agree(largest, {**arrays(rng, N), "n": n, "BLOCK": N})


@pytest.mark.parametrize("n", [0, 100, 512])
@pytest.mark.parametrize("low", [-1, 0, 70])
def test_masks_on_both_sides(low: int, n: int, rng: np.random.Generator) -> None:
    agree(between, {**arrays(rng, N), "low": low, "n": n, "BLOCK": N})


@pytest.mark.parametrize(("n", "m"), [(512, 4), (300, 3), (64, 0), (1, 9)])
def test_masks_of_rows_and_columns(n: int, m: int, rng: np.random.Generator) -> None:
    agree(square, {**arrays(rng, 4, N), "n": n, "m": m, "M": 4, "BLOCK": N})


@pytest.mark.parametrize(("start", "n"), [(0, 512), (0, 300), (-70, 512), (130, 512), (-600, 512), (600, 512)])
def test_blocks_over_the_edges(start: int, n: int, rng: np.random.Generator) -> None:
    agree(window, {**arrays(rng, 4, N), "start": start, "n": n, "M": 4, "BLOCK": N})


@pytest.mark.parametrize("target", WIDTHS)
def test_every_instruction_set(target: str, rng: np.random.Generator) -> None:
    agree(centred, {**arrays(rng, N), "n": 300, "BLOCK": N}, target=target)
    agree(square, {**arrays(rng, 4, N), "n": 300, "m": 3, "M": 4, "BLOCK": N}, target=target)


# Structure


@triton.jit
def every_other(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i), i % 2 == 0)


@triton.jit
def positive(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n)
    tl.store(y_ptr + i, x, x > 0)


def loops_of(kernel: LanguageFunction, target: str = "cpu:avx512") -> list[scf.For]:
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"}
    module = compile(kernel, signature, {"BLOCK": N}, target=target).job.module("intrinsic")
    function = module.body.block.ops[0]
    assert isinstance(function, tt.Func)
    return [op for op in function.body.block.ops if isinstance(op, scf.For)]


def masked(loop: Operation) -> int:
    accesses = [op for op in loop.walk() if isinstance(op, tile.Load | tile.Store)]
    return sum(op.mask is not None for op in accesses)


@pytest.mark.parametrize("target", ["cpu:avx512", "cpu:avx2", "cpu:neon"])
def test_the_first_part_has_no_masks_and_the_rest_one_chunk(target: str) -> None:
    loops = loops_of(centred, target)
    assert [masked(loop) for loop in loops] == [0, 1, 0, 2]
    assert not any(isinstance(op, arith.CmpI | arith.Select) for loop in loops[::2] for op in loop.walk())


def test_a_mask_without_an_end_stays() -> None:
    (loop,) = loops_of(every_other)
    assert masked(loop) == 4


def test_a_mask_that_the_row_computes_stays_and_the_others_end() -> None:
    first, rest = loops_of(positive)
    assert (masked(first), masked(rest)) == (4, 2)
