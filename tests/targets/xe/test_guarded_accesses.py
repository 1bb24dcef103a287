"""Both versions of a program with block accesses, run: at every level, and emulated as Xe runs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned
from levels import check_levels


@triton.jit
def chosen(x, y, table, which):
    """A matrix that a branch describes, of sizes that memory says."""
    if which > 0:
        there = tl.make_tensor_descriptor(x, [tl.load(table), tl.load(table + 1)], [tl.load(table + 1), 1], [16, 32])
    else:
        there = tl.make_tensor_descriptor(
            x + 64, [tl.load(table), tl.load(table + 1)], [tl.load(table + 1), 1], [16, 32]
        )
    i = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(y + i, there.load([0, 0]) * 2)


@triton.jit
def summed(x, y, table, rounds):
    """Matrices of other sizes in each iteration; sums cross warps in shared memory."""
    for number in range(rounds):
        start, columns = tl.load(table + 2 * number), tl.load(table + 2 * number + 1)
        there = tl.make_block_ptr(x + start, (16, columns), (columns, 1), (0, 0), (16, 32), (1, 0))
        block = tl.load(there, boundary_check=(0, 1))
        total = tl.sum(tl.sum(block.to(tl.float32), 1), 0)
        tl.store(y + number, total)
        here = tl.make_block_ptr(y + 4 + number * 512, (16, 32), (32, 1), (0, 0), (16, 32), (1, 0))
        tl.store(here, (block.to(tl.float32) + total))


def matrix(x: np.ndarray[Any, Any], start: int, columns: int) -> np.ndarray[Any, Any]:
    made = np.zeros((16, 32), np.float64)
    width = min(columns, 32)
    made[:, :width] = x[start : start + 16 * columns].reshape(16, columns)[:, :width]
    return made


def numbers() -> np.ndarray[Any, Any]:
    x = aligned(np.zeros(4096, np.float16))
    x[...] = np.random.default_rng(3).standard_normal(4096)
    return x


TARGETS = [{"target": "xe:pvc"}, {"target": "xe:bmg", "codegen": "simd"}]


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("options", TARGETS, ids=lambda options: "-".join(options.values()))
@pytest.mark.parametrize("columns", [64, 40, 37])
@pytest.mark.parametrize("which", [0, 1])
def test_a_descriptor_that_a_branch_makes(which: int, columns: int, options: dict[str, str]) -> None:
    x, y = numbers(), aligned(np.zeros(512, np.float16))
    chosen[(1,)](x, y, np.array([16, columns], np.int32), which, num_warps=2, **options)
    np.testing.assert_array_equal(y.reshape(16, 32), 2 * matrix(x, 0 if which else 64, columns))


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("options", TARGETS, ids=lambda options: "-".join(options.values()))
def test_versions_with_shared_memory(options: dict[str, str]) -> None:
    x, y = numbers(), aligned(np.zeros(4 + 3 * 512, np.float32))
    table = np.array([(64, 64), (5, 48), (1024, 37)], np.int64)
    summed[(1,)](x, y, table, 3, num_warps=4, **options)
    for number, (start, columns) in enumerate(table):
        wanted = matrix(x, start, columns)
        np.testing.assert_allclose(y[number], wanted.sum(), atol=1e-3)
        found = y[4 + number * 512 :][:512].reshape(16, 32)
        np.testing.assert_allclose(found, wanted + wanted.sum(), atol=1e-3)


def test_every_level_agrees() -> None:
    table = np.array([(64, 64), (5, 48), (1024, 37)], np.int64)
    given = {"x": numbers(), "y": np.zeros(4 + 3 * 512, np.float32), "table": table, "rounds": 3}
    check_levels(summed, given, (1,), target="xe:pvc", num_warps=4)


def test_accesses_are_checked_in_front_of_both_versions() -> None:
    kernel = summed.warmup(np.float16, np.float32, np.int64, 3, num_warps=4, target="xe:pvc")
    text = kernel.asm["intrinsic"]
    fast, slow = text.split("scf.if", 1)[1].split("} else {", 1)
    assert "ttig.block_io" in fast
    assert "ttig.block_io" not in slow.split("\n    }", 1)[0]
