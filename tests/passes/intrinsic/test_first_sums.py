"""Accumulators that loops carry from zero: written by the first dot, cleared where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from levels import check_levels


@triton.jit
def sums(a_ptr, b_ptr, c_ptr, start, end, GROUPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    """C_g = the sum of a_i b_i over start <= i < end, once for each group."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    for group in range(GROUPS):
        acc = tl.zeros((M, N), tl.float32)
        for i in range(start, end):
            a = tl.load(a_ptr + i * M * K + m[:, None] * K + k[None, :])
            b = tl.load(b_ptr + i * K * N + k[:, None] * N + n[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + group * M * N + m[:, None] * N + n[None, :], acc)


@triton.jit
def sums_seen(a_ptr, b_ptr, c_ptr, start, end, GROUPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    """The same, but every iteration also stores what it found: the zeros of the first too."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for i in range(start, end):
        tl.store(c_ptr + i * M * N + m[:, None] * N + n[None, :], acc)
        a = tl.load(a_ptr + i * M * K + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + i * K * N + k[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)


def arguments(m: int, start: int, end: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((4, m, 32), (4, 32, 64)))
    c = rng.standard_normal((4, m, 64), np.float32)
    numbers = {"start": start, "end": end, "GROUPS": 2, "M": m, "N": 64, "K": 32}
    return {"a_ptr": a, "b_ptr": b, "c_ptr": c, **numbers}


@pytest.mark.parametrize("start, end", [(0, 4), (2, 3), (1, 1), (3, 0)])
@pytest.mark.parametrize("m", [1, 16])
def test_sums_of_any_number_of_dots(m: int, start: int, end: int) -> None:
    """One row: b is read where it lies. Two groups: scratch memory holds the sum of the group before."""
    check_levels(sums, arguments(m, start, end), (1,))


@pytest.mark.parametrize("m", [1, 16])
def test_a_sum_that_is_seen_before_its_first_dot(m: int) -> None:
    check_levels(sums_seen, arguments(m, 0, 4), (1,))


def test_nothing_is_cleared_before_a_loop_that_runs() -> None:
    """All stores of zeros stand under the condition that the loop is empty."""
    kernel = triton.compile(
        sums,
        {"a_ptr": "*fp32", "b_ptr": "*fp32", "c_ptr": "*fp32", "start": "i32", "end": "i32"},
        {"GROUPS": 1, "M": 16, "N": 64, "K": 32},
    )
    before = kernel.asm["intrinsic"].split("scf.for %i")[0]
    assert "arith.cmpi sge, %start, %end" in before
    assert before.index("scf.if") < before.index("tile.store")
