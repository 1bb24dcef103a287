"""Attention of one new token over keys and values in pages, written twice. `python examples/paged_attention.py`

Listings 6 and 7 of the ML-Triton paper. A program takes one sequence and the query heads that share one head of keys.
In the first kernel a block belongs to the whole program, and the compiler finds out what each warp does. In the second
one every block belongs to one warp: each warp takes keys of its own, and says itself where warps exchange what they
have found.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl


@triton.jit
def load_rows(cache_ptr, pages_ptr, keys, length, head, KV_HEADS: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr):
    """Rows `keys` of a head in a cache [pages, PAGE, KV_HEADS, D]; zeros from `length` on."""
    pages = tl.load(pages_ptr + keys // PAGE, mask=keys < length, other=0)
    rows = (pages * PAGE + keys % PAGE) * KV_HEADS + head
    return tl.load(cache_ptr + rows[:, None] * D + tl.arange(0, D)[None, :], mask=(keys < length)[:, None], other=0.0)


@triton.jit
def attend(
    q, m, s, o, k_ptr, v_ptr, pages_ptr, first, length, head, scale,
    KV_HEADS: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """One block of keys: the new maximum, sum of weights, and sum of weighted values."""
    keys = first + tl.arange(0, BLOCK)
    k = load_rows(k_ptr, pages_ptr, keys, length, head, KV_HEADS, PAGE, D)
    qk = tl.where((keys < length)[None, :], tl.dot(q, k.T) * scale, -float("inf"))
    m_new = tl.maximum(m, tl.max(qk, axis=1))
    p = tl.exp(qk - m_new[:, None])
    alpha = tl.exp(m - m_new)
    v = load_rows(v_ptr, pages_ptr, keys, length, head, KV_HEADS, PAGE, D)
    return m_new, s * alpha + tl.sum(p, axis=1), tl.dot(p.to(v.dtype), v, o * alpha[:, None])


@triton.jit
def by_workgroups(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, o_ptr, max_pages, scale,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    head, sequence = tl.program_id(0), tl.program_id(1)
    length, pages_ptr = tl.load(lens_ptr + sequence), table_ptr + sequence * max_pages
    heads = (sequence * KV_HEADS + head) * GROUP + tl.arange(0, GROUP)
    places = heads[:, None] * D + tl.arange(0, D)[None, :]
    m = tl.full([GROUP], -float("inf"), tl.float32)
    s, o = tl.zeros([GROUP], tl.float32), tl.zeros([GROUP, D], tl.float32)

    q = tl.load(q_ptr + places)
    for first in range(0, length, BLOCK):
        m, s, o = attend(q, m, s, o, k_ptr, v_ptr, pages_ptr, first, length, head, scale, KV_HEADS, PAGE, BLOCK, D)
    o /= s[:, None]
    tl.store(o_ptr + places, o.to(o_ptr.dtype.element_ty))


@triton.jit(warp_level=True)
def by_warps(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, o_ptr, max_pages, scale,
    KV_HEADS: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    head, sequence = tl.program_id(0), tl.program_id(1)
    length, pages_ptr = tl.load(lens_ptr + sequence), table_ptr + sequence * max_pages
    heads = (sequence * KV_HEADS + head) * GROUP + tl.arange(0, GROUP)
    places = heads[:, None] * D + tl.arange(0, D)[None, :]
    m = tl.full([GROUP], -float("inf"), tl.float32)
    s, o = tl.zeros([GROUP], tl.float32), tl.zeros([GROUP, D], tl.float32)

    q_shared = tl.alloc(shape=(GROUP, D), dtype=q_ptr.dtype.element_ty)
    if tl.warp_id() == 0:  # brings q for all
        tl.store(q_shared, tl.load(q_ptr + places))
    tl.barrier()
    q = tl.load(q_shared)
    for first in range(tl.warp_id() * BLOCK, length, tl.num_warps() * BLOCK):
        m, s, o = attend(q, m, s, o, k_ptr, v_ptr, pages_ptr, first, length, head, scale, KV_HEADS, PAGE, BLOCK, D)
    alpha = tl.exp(m - tl.max(m, cross_warp=True))  # 0 on a warp that had no keys
    s = tl.sum(s * alpha, cross_warp=True)
    o = tl.sum(o * (alpha / s)[:, None], cross_warp=True, dst_warps=0)
    if tl.warp_id() == 0:
        tl.store(o_ptr + places, o.to(o_ptr.dtype.element_ty))


def decode(
    kernel: triton.JITFunction,
    q: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    block_table: np.ndarray,
    seq_lens: np.ndarray,
) -> np.ndarray:
    """softmax(q k^T / sqrt(dim)) v for q [sequences, heads, dim] and caches [pages, page size, kv heads, dim]; every
    sequence has at least one key, and sizes are powers of two.
    """
    sequences, heads, dim = q.shape
    page, kv_heads = k_cache.shape[1:3]
    o = np.empty_like(q)
    kernel[(kv_heads, sequences)](
        q, k_cache, v_cache, block_table, seq_lens, o, block_table.shape[1], dim**-0.5,
        KV_HEADS=kv_heads, GROUP=heads // kv_heads, PAGE=page, BLOCK=64, D=dim,
    )  # fmt: skip
    return o


def expected(q, k_cache, v_cache, block_table, seq_lens) -> np.ndarray:
    """The same with numpy, in float64."""
    o = np.empty(q.shape)
    for sequence, length in enumerate(seq_lens):
        k, v = (x[block_table[sequence]].reshape(-1, *x.shape[2:])[:length].swapaxes(0, 1) for x in (k_cache, v_cache))
        shared = q[sequence].astype(np.float64).reshape(k.shape[0], -1, k.shape[2])
        weights = np.exp(shared @ k.swapaxes(1, 2) * k.shape[2] ** -0.5)
        o[sequence] = (weights / weights.sum(-1, keepdims=True) @ v).reshape(q.shape[1:])
    return o


def main() -> None:
    rng = np.random.default_rng(0)
    seq_lens = np.array([1, 1000, 333, 517], np.int32)
    block_table = rng.permutation(4 * 63).astype(np.int32).reshape(4, 63)  # pages of 16 keys, in any order
    q = rng.standard_normal((4, 16, 64), np.float32)
    k_cache, v_cache = (rng.standard_normal((4 * 63, 16, 4, 64), np.float32) for _ in range(2))
    exact = expected(q, k_cache, v_cache, block_table, seq_lens)
    for kernel in (by_workgroups, by_warps):
        o = decode(kernel, q, k_cache, v_cache, block_table, seq_lens)
        np.testing.assert_allclose(o, exact, rtol=1e-4, atol=1e-5)
        milliseconds = triton.testing.do_bench(
            lambda kernel=kernel: decode(kernel, q, k_cache, v_cache, block_table, seq_lens), return_mode="min"
        )
        print(f"{kernel.__name__}: right, {milliseconds:.2f} ms")


if __name__ == "__main__":
    main()
