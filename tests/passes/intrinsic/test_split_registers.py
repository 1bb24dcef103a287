"""Blocks in registers: what is computed piece by piece is the whole, at every level but machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler import Job, options_of
from mltriton.frontend.function import LanguageFunction
from mltriton.targets.target import find_target
from mltriton.tools.launches import Launch, entries_of, sample_of_job
from mltriton.tools.level_runs import Runs


def check(kernel: LanguageFunction, args: dict[str, Any], warps: int) -> None:
    """All levels of Xe agree with the first."""
    job = Job(kernel, entries_of(kernel, None, args), find_target("xe:pvc"), options_of(num_warps=warps))
    sample = sample_of_job(job, Launch(args, (1,), {}), np.random.default_rng(0))
    runs = Runs(sample, uninitialised=True, seed=0)
    results = [runs.of_module(level, module) for level, module in job.modules()]
    assert results[-1].name == "intrinsic"
    assert all(result.ok for result in results), "\n".join(map(str, results))


@triton.jit
def combined_product(x, y, o, rows, columns, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product whose sums and extremes are taken along both dimensions."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    p = tl.dot(tl.load(x + i[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + j[None, :]))
    tl.store(rows + i, tl.sum(p, 1))
    tl.store(rows + M + i, tl.max(p, 1))
    tl.store(columns + j, tl.min(p, 0))
    tl.store(columns + N + j, tl.sum(p, 0))
    tl.store(o + i[:, None] * N + j[None, :], p - tl.max(p, 1)[:, None] + tl.min(p, 0)[None, :])


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("size", [(32, 64, 32), (16, 16, 64), (64, 32, 16)])
def test_products_are_combined_whole(size: tuple[int, int, int], warps: int) -> None:
    m, n, k = size
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-8, 8, shape).astype("f2") for shape in ((m, k), (k, n)))
    out = {"o": np.zeros((m, n), "f"), "rows": np.zeros((2, m), "f"), "columns": np.zeros((2, n), "f")}
    check(combined_product, {"x": x, "y": y, **out, "M": m, "N": n, "K": k}, warps)
