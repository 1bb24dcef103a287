# pyright: basic
"""assign-lanes where one encoding stands for results of different sizes: every warp keeps all of its part."""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.executor import run
from mltriton.ir.parser import parse_module


@triton.jit
def scores_of_two_sizes(q, k, v, o, D: tl.constexpr):
    """exp(q k^T) v over 16 keys, then over 32: the scores are left operands, whole along keys in every warp."""
    rows, dims, few, more = tl.arange(0, 64), tl.arange(0, D), tl.arange(0, 16), 16 + tl.arange(0, 32)
    queries = tl.load(q + rows[:, None] * D + dims[None, :])
    total = tl.zeros([64, D], tl.float32)
    p = tl.exp(tl.dot(queries, tl.load(k + few[None, :] * D + dims[:, None])))
    total = tl.dot(p.to(tl.float16), tl.load(v + few[:, None] * D + dims[None, :]), total)
    p = tl.exp(tl.dot(queries, tl.load(k + more[None, :] * D + dims[:, None])))
    total = tl.dot(p.to(tl.float16), tl.load(v + more[:, None] * D + dims[None, :]), total)
    tl.store(o + rows[:, None] * D + dims[None, :], total)


def test_results_of_two_sizes() -> None:
    rng = np.random.default_rng(2)
    q, k, v = ((rng.standard_normal((size, 32)) / 4).astype(np.float16) for size in (64, 48, 48))
    o = np.zeros((64, 32), np.float32)
    kernel = scores_of_two_sizes.warmup(q, k, v, o, 32, target="xe:pvc", num_warps=4)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    for level in ("warp", "intrinsic"):
        o[...] = np.nan
        run(parse_module(kernel.asm[level], level), [q, k, v, o], (1, 1, 1))
        np.testing.assert_allclose(o, np.exp(wide[0] @ wide[1].T) @ wide[2], atol=2e-2)
