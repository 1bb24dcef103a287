# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Attention of several new queries of each sequence over keys and values that lie in pages.

Level: user. A program takes BM rows: queries of one sequence, each with HEADS heads that share a head of keys, and
walks over the keys that they see in blocks of BN. Queries are a sequence's last positions: number i of n sees all but
the last n - 1 - i keys. Without a table, keys are packed as queries are, for `attention_varlen.py`.
`attention_paged_varlen.py` launches this kernel.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention import LEAST, LOG2_E
from mltriton.kernels.attention_blocks import Blocks
from mltriton.kernels.launch import Example, example_of

FEW = tl.constexpr(8)  # parts of those sequences that are left, in each step of a search


@triton.jit
def queries_of(block, starts, stride_s, n_sequences, BQ: tl.constexpr, LEVELS: tl.constexpr):
    """The sequence of a block of BQ queries, where it begins, how many queries it has, and which of them is the block's
    first: negative, or too large, of a block without any. Blocks of sequence s follow from number starts[s] // BQ + s
    on, where there are enough of them before those of the next one. There are up to FEW**LEVELS sequences.
    """
    sequence = 0
    for level in tl.static_range(LEVELS):
        found = 0
        for part in tl.static_range(1, FEW):
            later = sequence + part * FEW ** (LEVELS - 1 - level)
            begin = tl.load(starts + later * stride_s, later < n_sequences, 1 << 30)
            found += (begin // BQ + later <= block).to(tl.int32)
        sequence += found * FEW ** (LEVELS - 1 - level)
    begin = tl.load(starts + sequence * stride_s)
    n_queries = tl.load(starts + (sequence + 1) * stride_s) - begin
    return sequence, begin, n_queries, (block - (begin // BQ + sequence)) * BQ


@triton.jit
def load_rows(
    cache, pages, keys, length,
    PAGE: tl.constexpr, BOX: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Rows [BN, BD] of a cache for keys [BN]; where MASKED, of those below `length`. `cache`: pointer to the head,
    strides of pages, of slots and of elements; where BOX, descriptor, rows of a page, and the head's row and column:
    then `pages` is that of the first key, and rows behind the last one are whatever is there.
    """
    if BOX:
        return cache[0].load([pages * cache[1] + cache[2] + keys % PAGE, cache[3]])
    dims = tl.arange(0, BD)[None, :]
    rows = cache[0] + (pages.to(tl.int64) * cache[1] + keys % PAGE * cache[2])[:, None] + dims * cache[3]
    if MASKED and DIM < BD:
        return tl.load(rows, (keys < length)[:, None] & (dims < DIM), 0.0)
    if MASKED:
        return tl.load(rows, tl.broadcast_to((keys < length)[:, None], rows.shape), 0.0)
    if DIM < BD:
        return tl.load(rows, tl.broadcast_to(dims < DIM, rows.shape), 0.0)
    return tl.load(rows)


@triton.jit
def pages_of(keys, length, table, PAGE: tl.constexpr):
    """The pages of keys; 0 of those behind the last one. Without a table, what stands in its place."""
    if table[0] is None:
        return table[1]
    return tl.load(table[0] + keys // PAGE * table[1], keys < length, 0)


@triton.jit
def attend_rows(
    found, q, k, v, table, positions, slopes, start, end, length, scale, soft_cap,
    PAGE: tl.constexpr, BOX: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
    WINDOW: tl.constexpr, NEGATIVE: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Queries q [BM, BD] over the keys [start, end): sums of values and of weights, and the largest scores that both
    are relative to, in units of log2. `positions` [BM]: the last key that a row sees. `scale`, positive, belongs to -s
    if NEGATIVE; with a cap, to what it is multiplied with. If WINDOW is not 0, rows see the last so many keys.
    """
    acc, l_i, m_i = found
    units = (soft_cap if soft_cap is not None else scale) * LOG2_E
    ahead = 0 if BOX else tl.arange(0, BN)
    pages = pages_of(start + ahead, length, table, PAGE)
    for first in range(start, end, BN):
        keys = first + tl.arange(0, BN)
        k_rows = load_rows(k, pages, first + ahead, length, PAGE, BOX, BD, DIM, MASKED)
        v_rows = load_rows(v, pages, first + ahead, length, PAGE, BOX, BD, DIM, MASKED)
        if MASKED and BOX:
            v_rows = tl.where((keys < length)[:, None], v_rows, 0.0)
        pages = pages_of(first + BN + ahead, length, table, PAGE)
        s = tl.dot(q, tl.trans(k_rows), input_precision="ieee")
        if NEGATIVE:
            s = -s
        if soft_cap is not None:
            s = tl.math.tanh(s * (scale / soft_cap))
        if slopes is not None:
            s += slopes[:, None] * (keys[None, :] - positions[:, None]).to(tl.float32)
        if MASKED:
            visible = keys[None, :] <= tl.minimum(positions, length - 1)[:, None]
            if WINDOW > 0:
                visible = visible & (keys[None, :] > positions[:, None] - WINDOW)
            s = tl.where(visible, s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1) * units)
        p = tl.exp2(s * units - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v_rows.dtype), v_rows, acc * alpha[:, None], input_precision="ieee", tiling="horizontal")
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def cache_of(pointer, strides, kv_head, BOX: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    """A cache as `load_rows` takes it. `strides`: of pages, of slots, of heads, of elements; where BOX, of a matrix:
    rows, those of a page and of a head, columns of a head, and elements from row to row.
    """
    if BOX:
        matrix = tl.make_tensor_descriptor(pointer, [strides[0], strides[4]], [strides[4], 1], [BN, BD])
        return matrix, strides[1], kv_head * strides[2], kv_head * strides[3]
    kv_head = kv_head.to(tl.int64)
    return pointer + kv_head * strides[2], strides[0], strides[1], strides[3]


@triton.jit
def rows_of(top, n_queries, BM: tl.constexpr, HEADS: tl.constexpr):
    """The query and the head of each row of a block that begins at query `top`, and which rows there are."""
    rows = tl.arange(0, BM)
    queries = top + rows // HEADS
    there = (rows < BM // HEADS * HEADS) & (top >= 0) & (queries < n_queries)
    return queries, tl.program_id(1) * HEADS + rows % HEADS, there


@triton.jit
def paged_attention_varlen_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, starts_ptr, slopes_ptr, o_ptr, lse_ptr, sm_scale, soft_cap,
    q_strides, k_strides, v_strides, table_strides, stride_l, stride_s, n_heads, n_sequences, all_queries,
    PAGE: tl.constexpr, BOX: tl.constexpr, GROUP: tl.constexpr, HEADS: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr, WINDOW: tl.constexpr, NEGATIVE: tl.constexpr,
    LEVELS: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Program ids (block of queries, the last first, of all sequences; HEADS heads of queries). Where there is no
    table, keys are packed: `lens_ptr` says where each sequence begins, and if CAUSAL query i sees keys 0 to i.
    lse_ptr: where the natural logarithms of the sums of exponentials go, f32 [heads, all queries]; None for nowhere.
    """
    BQ: tl.constexpr = BM // HEADS
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    sequence, first_query, n_queries, top = queries_of(block, starts_ptr, stride_s, n_sequences, BQ, LEVELS)
    queries, heads, there = rows_of(top, n_queries, BM, HEADS)
    dims = tl.arange(0, BD)
    wanted = there[:, None] & (dims < DIM)[None, :]
    q_at = (first_query + queries).to(tl.int64) * q_strides[0] + heads.to(tl.int64) * q_strides[1]
    q = tl.load(q_ptr + q_at[:, None] + (dims * q_strides[2])[None, :], wanted, 0.0)
    scale = -sm_scale if NEGATIVE else sm_scale
    slopes = None
    if slopes_ptr is not None:
        slopes = tl.load(slopes_ptr + heads, there, 0.0) / (soft_cap if soft_cap is not None else scale)
    kv_head = tl.program_id(1) * HEADS // GROUP
    k, v = cache_of(k_ptr, k_strides, kv_head, BOX, BN, BD), cache_of(v_ptr, v_strides, kv_head, BOX, BN, BD)
    length = tl.load(lens_ptr + sequence * stride_l)
    if table_ptr is None:
        table = None, length
        length = tl.load(lens_ptr + (sequence + 1) * stride_l) - length
        older = 0
    else:
        table = table_ptr + sequence.to(tl.int64) * table_strides[0], table_strides[1]
        older = length - n_queries
    before = older + top if CAUSAL else length  # the position of the first query
    positions = older + queries if CAUSAL else tl.full([BM], 1 << 30, tl.int32)

    found = tl.zeros([BM, BD], tl.float32), tl.zeros([BM], tl.float32), tl.full([BM], LEAST, tl.float32)
    end = tl.where((top >= 0) & (top < n_queries), tl.minimum(length, before + BQ), 0)
    first, start, unmasked = 0, 0, tl.minimum(end, tl.maximum(before + 1, 0)) // BN * BN
    if WINDOW > 0:
        first = tl.maximum(0, before - WINDOW + 1) // BN * BN
        start = tl.minimum(unmasked, tl.cdiv(tl.maximum(0, before + BQ - WINDOW), BN) * BN)
    bounds = first, start, unmasked, end
    for part in tl.static_range(0 if WINDOW > 0 else 1, 3):
        found = attend_rows(
            found, q, k, v, table, positions, slopes, bounds[part], bounds[part + 1], length, scale, soft_cap,
            PAGE, BOX, BN, BD, DIM, WINDOW, NEGATIVE, part != 1,
        )  # fmt: skip
    acc, l_i, m_i = found
    o = acc * (1.0 / tl.where(l_i > 0.0, l_i, 1.0))[:, None]
    # Once more, from a number that is 0, so that lanes do not keep it during the loops.
    queries, heads, there = rows_of(top + tl.program_id(2), n_queries, BM, HEADS)
    if lse_ptr is not None:
        lse = lse_ptr + heads.to(tl.int64) * all_queries + first_query + queries
        tl.store(lse, (m_i + tl.log2(l_i)) / LOG2_E, there)
    o_at = ((first_query + queries) * n_heads + heads).to(tl.int64) * DIM
    wanted = there[:, None] & (dims < DIM)[None, :]
    tl.store(o_ptr + o_at[:, None] + dims[None, :], o.to(o_ptr.dtype.element_ty), wanted)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: three heads on one, pages in any order; a chunk behind others, a sequence without
    queries, one that decodes, a whole prompt.
    """
    from mltriton.kernels.attention_paged_varlen import paged_varlen_launch  # Only the example needs it.

    q = rng.standard_normal((62, 6, 24), np.float32)
    k_cache, v_cache = (rng.standard_normal((21, 12, 2, 24), np.float32) for _ in range(2))
    table = rng.permutation(21)[:20].astype(np.int32).reshape(4, 5)
    lens, starts = np.array([55, 7, 33, 40], np.int32), np.array([0, 21, 21, 22, 62], np.int32)
    given = q, k_cache, v_cache, table, lens, starts, q * 0
    return example_of(name, paged_varlen_launch(None, *given, window=30, blocks=Blocks(32, 16)))
