"""Split-K, stream-K and grouped products against numpy in float64: sizes, shares, epilogues, determinism, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy import FLOATS, assert_accurate, dtype_of, random, wide
from combinations import each_pair
from mltriton.errors import ArgumentError
from mltriton.kernels import grouped_gemm, matmul, split_k_matmul, stream_k_matmul
from mltriton.kernels.epilogues import Epilogue
from mltriton.kernels.gemm_grouped import grouped_gemm_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.stream_k import choose_shares, stream_k_launches

RNG = np.random.default_rng(8)


def check(c: Any, a: Any, b: Any, *addends: Any) -> None:
    """The sum of a b and the addends, within the bound for sums of |a| |b|."""
    reference, size = wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b))
    for addend in addends:
        reference, size = reference + wide(addend), size + np.abs(wide(addend))
    assert type(c) is type(a)
    assert_accurate(c, reference, size)


SHARED = {"split_k": split_k_matmul, "stream_k": stream_k_matmul}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SHARED)
def test_every_dtype(name: str, dtype: str) -> None:
    a, b = random(RNG, (20, 1500), dtype), random(RNG, (1500, 37), dtype)
    check(SHARED[name](a, b, 3), a, b)


@each_pair(
    ("m, n, k", [(1, 1, 1), (17, 33, 2049), (70, 5, 256), (130, 600, 300)]), ("name", SHARED), ("parts", [1, 2, 7, 100])
)
def test_sizes_and_parts(name: str, m: int, n: int, k: int, parts: int) -> None:
    a, b = random(RNG, (m, k)), random(RNG, (k, n))
    check(SHARED[name](a, b, parts), a, b)


@pytest.mark.parametrize("name", SHARED)
def test_epilogue_batches_and_strides(name: str) -> None:
    a, b = random(RNG, (3, 700, 20)).swapaxes(1, 2), random(RNG, (40, 700)).T
    bias, add = random(RNG, (80,))[::2], random(RNG, (3, 40, 20)).swapaxes(1, 2)
    check(SHARED[name](a, b, 3, bias=bias, add=add), a, b, bias, add)
    positive = SHARED[name](a, b, 3, bias=bias, activation="relu", prologue="relu", out_dtype="float64")
    kept = np.maximum(wide(a), 0)
    assert_accurate(positive.astype(np.float32), np.maximum(kept @ wide(b) + bias, 0), kept @ np.abs(wide(b)) + 1)


@pytest.mark.parametrize("name", SHARED)
def test_integers_are_exact(name: str) -> None:
    a, b = random(RNG, (16, 3000), "int8"), random(RNG, (3000, 20), "int8")
    exact = a.astype(np.int32) @ b.astype(np.int32)
    np.testing.assert_array_equal(SHARED[name](a, b, 5, out_dtype="int32"), exact)


@pytest.mark.parametrize("name", SHARED)
def test_the_same_bits_every_time(name: str) -> None:
    a, b = random(RNG, (30, 3000)), random(RNG, (3000, 30))
    first = SHARED[name](a, b, 5)
    assert all(np.array_equal(first, SHARED[name](a, b, 5)) for _ in range(3))


@pytest.mark.parametrize("name", SHARED)
def test_nothing_to_sum(name: str) -> None:
    empty = np.ones((3, 0), np.float32)
    np.testing.assert_array_equal(SHARED[name](empty, empty.T, 2, add=np.ones((3, 3), np.float32)), np.ones((3, 3)))
    assert SHARED[name](np.ones((0, 5)), np.ones((5, 2)), 2).shape == (0, 2)


@pytest.mark.parametrize("name", SHARED)
def test_no_parts(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name}_matmul: .* must be positive"):
        SHARED[name](np.ones((3, 3)), np.ones((3, 3)), 0)
    with pytest.raises(ArgumentError, match=f"{name}_matmul: .* must be an integer"):
        SHARED[name](np.ones((3, 3)), np.ones((3, 3)), 1.5)


@settings(max_examples=40, deadline=None)
@given(m=st.integers(1, 40), n=st.integers(1, 70), k=st.integers(1, 200), programs=st.integers(1, 40))
def test_every_step_is_in_one_share(m: int, n: int, k: int, programs: int) -> None:
    """Blocks that two, or many, programs share, and programs that begin and end where a block does."""
    a, b = random(RNG, (2, m, k)), random(RNG, (2, k, n))
    c = np.full((2, m, n), np.nan, np.float32)
    for launch in stream_k_launches(a, b, c, Epilogue("float32"), programs, tile=Tile(16, 32, 32, 1)):
        launch.run()
    check(c, a, b)


def test_shares_are_chosen_for_long_sums_only() -> None:
    assert choose_shares(1, 16, 16, 65536, 4, 2) is not None
    assert choose_shares(1, 16, 16, 65536, 4, 1) is None
    assert choose_shares(1, 2048, 2048, 2048, 4, 2) is None
    assert choose_shares(64, 16, 16, 65536, 4, 2) is None


@pytest.mark.parametrize("split_k", [None, 1, 3])
def test_matmul_with_a_long_sum(split_k: int | None) -> None:
    a, b, bias = random(RNG, (16, 9000)), random(RNG, (9000, 16)), random(RNG, (16,))
    check(matmul(a, b, bias=bias, split_k=split_k), a, b, bias)


# Grouped products

GROUP = [(40, 70, 50), (0, 5, 7), (16, 16, 16), (5, 40, 0), (33, 0, 64), (1, 1, 1), (130, 257, 129)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_group_of_different_sizes(dtype: str) -> None:
    a, b = (
        [random(RNG, shape, dtype) for shape in shapes]
        for shapes in zip(*(((m, k), (k, n)) for m, n, k in GROUP), strict=True)
    )
    results = grouped_gemm(a, b)
    assert len(results) == len(GROUP)
    for c, x, y in zip(results, a, b, strict=True):
        assert dtype_of(c) == dtype
        check(c, x, y)


@pytest.mark.parametrize("a_turned, b_turned", [(True, False), (False, True), (True, True), (None, None)])
def test_a_group_with_strides(a_turned: bool | None, b_turned: bool | None) -> None:
    """Transposed ones; and (None) each with strides of its own."""

    def matrix(rows: int, columns: int, turned: bool | None, i: int) -> Any:
        if turned is None:
            return random(RNG, (rows * 2, columns * (i + 1)))[::-2, :: i + 1]
        return random(RNG, (columns, rows)).T if turned else random(RNG, (rows, columns))

    a = [matrix(m, k, a_turned, i) for i, (m, _, k) in enumerate(GROUP)]
    b = [matrix(k, n, b_turned, i) for i, (_, n, k) in enumerate(GROUP)]
    for c, x, y in zip(grouped_gemm(a, b), a, b, strict=True):
        check(c, x, y)


@pytest.mark.parametrize("programs", [1, 2, 5, 1000])
def test_programs_walk_over_all_blocks(programs: int) -> None:
    a, b = [random(RNG, (m, k)) for m, _, k in GROUP], [random(RNG, (k, n)) for _, n, k in GROUP]
    c = [np.full((m, n), np.nan, np.float32) for m, n, _ in GROUP]
    grouped_gemm_launch(a, b, c, Epilogue("float32"), programs, Tile(16, 32, 32, 1)).run()
    for z, x, y in zip(c, a, b, strict=True):
        check(z, x, y)


def test_a_group_of_torch_tensors_with_an_activation() -> None:
    torch = pytest.importorskip("torch")
    a, b = (
        [random(RNG, (m, k), "bfloat16") for m, _, k in GROUP],
        [random(RNG, (k, n), "bfloat16") for _, n, k in GROUP],
    )
    for c, x, y in zip(grouped_gemm(a, b, activation="relu", out_dtype=torch.float32), a, b, strict=True):
        assert c.dtype == torch.float32
        assert_accurate(c, np.maximum(wide(x) @ wide(y), 0), np.abs(wide(x)) @ np.abs(wide(y)))


def test_groups_without_work() -> None:
    assert grouped_gemm([], []) == []
    assert [c.shape for c in grouped_gemm([np.ones((0, 3))], [np.ones((3, 2))])] == [(0, 2)]


ONES = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    "a, b, message",
    [
        (ONES[None], [ONES], "grouped_gemm: a is no list of matrices"),
        ([ONES], ONES, "grouped_gemm: b is no list of matrices"),
        ([ONES], [ONES, ONES], "grouped_gemm: the lists differ in length"),
        ([ONES, ONES], [ONES, ONES[:3]], "grouped_gemm: the shapes of problem 1 do not fit"),
        ([ONES[None]], [ONES[None]], "grouped_gemm: the shapes of problem 0 do not fit"),
        ([ONES, ONES.astype(np.float64)], [ONES, ONES], "the arrays differ in kind or dtype"),
        ([[1.0]], [ONES], r"a\[0\] is no array"),
        ([ONES.astype(np.int32)], [ONES.astype(np.int32)], "grouped_gemm: unsupported dtype"),
    ],
)
def test_mistakes_in_groups(a: Any, b: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        grouped_gemm(a, b)
