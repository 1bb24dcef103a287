# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Paged attention where hardware loads rectangles: pages of keys and values are read as blocks of a matrix.

Level: user. A cache is one tall matrix: row `page * page_rows + head * head_rows + slot` holds a key, from column
`head * head_columns` on. One program instance takes one head of keys with up to BG query heads that use it, one
sequence and one split of its keys; the two forms are those of `attention_paged_kernels.py`, with the same results. A
step takes PIECES times BN keys, of which each BLOCK lie in one page, so that their page is a scalar and their rows
follow each other. What is read with an address for each key (`attention_paged_loads.py`: keys where BLOCK is less than
REST, values where it is 1) counts `page_rows` and `head_rows` in elements, has elements ELEMENT apart, and need not be
a matrix. `attention_paged.py` launches these kernels where a target has block loads.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention_paged_kernels import LOG2_E, join_warps, keys_of_split, table_of
from mltriton.kernels.attention_paged_loads import (
    columns_of,
    join_values,
    load_keys,
    load_values,
    slot_of,
    slots_of,
)
from mltriton.kernels.launch import Example, Launch, example_of

REST = tl.constexpr(16)  # keys of a step at the end of a sequence, whose last keys may be others'


@triton.jit
def query_heads(GROUP: tl.constexpr, BG: tl.constexpr):
    """The heads of queries [BG] that this program does."""
    parts: tl.constexpr = (GROUP + BG - 1) // BG
    return tl.program_id(0) // parts * GROUP + tl.program_id(0) % parts * BG + tl.arange(0, BG)


@triton.jit
def is_query(GROUP: tl.constexpr, BG: tl.constexpr):
    """Which of them there are."""
    if GROUP % BG == 0:
        return tl.full([BG], True, tl.int1)
    parts: tl.constexpr = (GROUP + BG - 1) // BG
    return tl.program_id(0) % parts * BG + tl.arange(0, BG) < GROUP


@triton.jit
def query_rows(strides, GROUP: tl.constexpr, BG: tl.constexpr):
    """Where the rows [BG, 1] of this program's queries start in an array [sequences, heads, ...]."""
    heads = query_heads(GROUP, BG).to(tl.int64)
    return (tl.program_id(1).to(tl.int64) * strides[0] + heads * strides[1])[:, None]


@triton.jit
def load_queries(q_ptr, strides, GROUP: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr):
    """The queries [BG, BD] of this program; zeros where there are none."""
    dims = tl.arange(0, BD)[None, :]
    wanted = is_query(GROUP, BG)[:, None] & (dims < DIM)
    return tl.load(q_ptr + query_rows(strides, GROUP, BG) + dims * strides[2], wanted, 0.0)


@triton.jit
def load_slopes(slopes_ptr, GROUP: tl.constexpr, BG: tl.constexpr):
    """The slopes [BG] of this program's heads; None where there are none."""
    if slopes_ptr is None:
        return None
    return tl.load(slopes_ptr + query_heads(GROUP, BG), is_query(GROUP, BG), 0.0)


@triton.jit
def attend_step(
    found, q, k, v, table, slopes, first, end, last_key, sm_scale, soft_cap, PAGE: tl.constexpr,
    BLOCK: tl.constexpr, BN: tl.constexpr, PIECES: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
    MASKED: tl.constexpr,
):  # fmt: skip
    """Queries q [BG, BD] over PIECES blocks of BN keys from `first` on. All keys are below `end`; where MASKED, at
    least the first one of each block. k and v: descriptor, pointer, rows of a page, the head's row and column, strides
    of slots and of elements.
    """
    acc, l_i, m_i = found
    scores, pages, slots, rows = (), (), (), ()
    m_new = m_i
    for piece in tl.static_range(PIECES):
        key = first + piece * BN
        keys = key + tl.arange(0, BN)
        if BLOCK >= REST:
            page, slot = slot_of(key, table, PAGE)
            k_t = tl.trans(k[0].load([page * k[2] + k[3] + slot, k[4]]))
            if DIM < BD:
                k_t = tl.where((tl.arange(0, BD) < DIM)[:, None], k_t, 0.0)  # what lies behind a head may be no number
            pages, slots = pages + (page,), slots + (slot,)  # noqa: RUF005
        else:
            page, slot = slots_of(keys, end, table, PAGE, MASKED)
            k_t = load_keys(k[1], page * k[2] + slot * k[5], keys, end, k[6], BD, DIM, MASKED)
            rows = rows + (tl.reshape(page * v[2] + slot * v[5], [BN, 1]),)  # noqa: RUF005
        s = tl.dot(q, k_t, input_precision="ieee") * sm_scale
        if soft_cap is not None:
            s = soft_cap * tl.math.tanh(s / soft_cap)
        if slopes is not None:
            s += slopes[:, None] * (keys - last_key).to(tl.float32)[None, :]
        s *= LOG2_E
        if MASKED:
            s = tl.where((keys < end)[None, :], s, -float("inf"))
        m_new = tl.maximum(m_new, tl.max(s, 1))
        scores = scores + (s,)  # noqa: RUF005
    alpha = tl.exp2(m_i - m_new)
    l_i = l_i * alpha
    acc = acc * alpha[:, None]
    for piece in tl.static_range(PIECES):
        p = tl.exp2(scores[piece] - m_new[:, None])
        l_i += tl.sum(p, 1)
        key = first + piece * BN
        keys = key + tl.arange(0, BN)
        if BLOCK >= REST:
            values = v[0].load([pages[piece] * v[2] + v[3] + slots[piece], v[4]])
        elif BLOCK > 1:
            last = (end - 1) // BLOCK * BLOCK if MASKED else key + (BN - BLOCK)
            values = join_values(v, table, key, last, PAGE, BN, BLOCK)
        else:
            values = load_values(v[1], rows[piece], keys, end, v[6], BD, DIM, MASKED)
        if MASKED and BLOCK > 1:
            values = tl.where((keys < end)[:, None], values, 0.0)
        acc = tl.dot(p.to(values.dtype), values, acc, input_precision="ieee")
    return acc, l_i, m_new


@triton.jit
def cache_of_head(cache, head, by_blocks: tl.constexpr, ROWS: tl.constexpr, BD: tl.constexpr):
    """A cache as `attend_step` takes it, with rectangles of ROWS keys. `cache`: pointer, rows, rows of a page and of a
    head, columns of a head, strides of slots and of elements.
    """
    pointer, rows, page_rows, head_rows, columns, stride, element = cache
    matrix = tl.make_tensor_descriptor(pointer, [rows, stride], [stride, 1], [ROWS, BD])
    row, column = head * head_rows, head * columns
    if not by_blocks:
        pointer += head.to(tl.int64) * head_rows
    return matrix, pointer, page_rows, row, column, stride, element


@triton.jit
def attend_blocks(
    q, k, v, table, slopes, start, end, warp, warps, length, sm_scale, soft_cap,
    PAGE: tl.constexpr, BLOCK: tl.constexpr, BN: tl.constexpr, PIECES: tl.constexpr,
    GROUP: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Queries q [BG, BD] over every `warps`-th step from number `warp` on of the keys [start, end): the sum of the
    values by weights, the sum of the weights, and the largest score, in units of log2, that both are relative to.
    """
    head = tl.program_id(0) // ((GROUP + BG - 1) // BG)
    rectangle: tl.constexpr = BN if BLOCK >= REST else BLOCK
    last: tl.constexpr = REST if BLOCK >= REST else BLOCK
    k_blocks, k_rest = (
        cache_of_head(k, head, BLOCK >= REST, rectangle, BD),
        cache_of_head(k, head, BLOCK >= REST, last, BD),
    )
    v_blocks, v_rest = (cache_of_head(v, head, BLOCK > 1, rectangle, BD), cache_of_head(v, head, BLOCK > 1, last, BD))
    m_i = tl.full([BG], -float("inf"), tl.float32)
    l_i = tl.zeros([BG], tl.float32)
    acc = tl.zeros([BG, BD], tl.float32)
    steps = tl.maximum(end - start, 0) // (PIECES * BN)
    for step in range(warp, steps, warps):
        acc, l_i, m_i = attend_step(
            (acc, l_i, m_i), q, k_blocks, v_blocks, table, slopes, start + step * (PIECES * BN), end,
            length - 1, sm_scale, soft_cap, PAGE, BLOCK, BN, PIECES, BD, DIM, False,
        )  # fmt: skip
    if steps % warps == warp:
        for first in range(start + steps * (PIECES * BN), end, REST):
            acc, l_i, m_i = attend_step(
                (acc, l_i, m_i), q, k_rest, v_rest, table, slopes, first, end,
                length - 1, sm_scale, soft_cap, PAGE, BLOCK, REST, 1, BD, DIM, True,
            )  # fmt: skip
    return acc, l_i, m_i


@triton.jit
def store_result(
    found, o_ptr, lse_ptr, o_strides, n_heads,
    BLOCK: tl.constexpr, GROUP: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Store acc / l_i, zeros where there is no key; with several splits into that split's part of o_ptr, and the
    logarithm (base 2) of the sum of weights to lse_ptr [splits, sequences, heads].
    """
    acc, l_i, m_i = found
    present = is_query(GROUP, BG)
    if lse_ptr is not None:
        split = tl.program_id(2).to(tl.int64) * tl.num_programs(1)
        o_ptr += split * o_strides[0]
        heads = (split + tl.program_id(1)) * n_heads + query_heads(GROUP, BG)
        tl.store(lse_ptr + heads, m_i + tl.log2(l_i), present)
    o = acc / tl.where(l_i > 0.0, l_i, 1.0)[:, None]
    dims = columns_of(BD, BLOCK)[None, :]
    rows = query_rows(o_strides, GROUP, BG)
    tl.store(o_ptr + rows + dims, o.to(o_ptr.dtype.element_ty), present[:, None] & (dims < DIM))


@triton.jit
def paged_attention_blocks_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, slopes_ptr, o_ptr, lse_ptr, sm_scale, soft_cap,
    q_strides, k_rows, v_rows, table_strides, stride_l, o_strides, n_heads, keys_per_split,
    K: tl.constexpr, V: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, BN: tl.constexpr, PIECES: tl.constexpr,
    GROUP: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """One token's queries over one split of a sequence's keys; program ids (kv head and part of its query heads,
    sequence, split). k_rows and v_rows: rows of a cache, of a page and of a head; K and V: columns of a head, strides
    of slots and of elements.
    """
    start, end, length = keys_of_split(lens_ptr, stride_l, keys_per_split)
    k, v = (k_ptr, *k_rows, *K), (v_ptr, *v_rows, *V)
    q = load_queries(q_ptr, q_strides, GROUP, BG, BD, DIM)
    found = attend_blocks(
        q, k, v, table_of(table_ptr, table_strides), load_slopes(slopes_ptr, GROUP, BG),
        start, end, 0, 1, length, sm_scale, soft_cap, PAGE, BLOCK, BN, PIECES, GROUP, BG, BD, DIM,
    )  # fmt: skip
    store_result(found, o_ptr, lse_ptr, o_strides, n_heads, BLOCK, GROUP, BG, BD, DIM)


@triton.jit(warp_level=True)
def paged_attention_blocks_warps_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, slopes_ptr, o_ptr, lse_ptr, sm_scale, soft_cap,
    q_strides, k_rows, v_rows, table_strides, stride_l, o_strides, n_heads, keys_per_split,
    K: tl.constexpr, V: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr, BN: tl.constexpr, PIECES: tl.constexpr,
    GROUP: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """The same, by warps: warp w of W takes the steps w, w + W, ... of the keys."""
    start, end, length = keys_of_split(lens_ptr, stride_l, keys_per_split)
    k, v = (k_ptr, *k_rows, *K), (v_ptr, *v_rows, *V)
    q_shared = tl.alloc([BG, BD], q_ptr.dtype.element_ty)
    if tl.warp_id() == 0:  # brings the queries for all
        tl.store(q_shared, load_queries(q_ptr, q_strides, GROUP, BG, BD, DIM))
    tl.barrier()
    acc, l_i, m_i = attend_blocks(
        tl.load(q_shared), k, v, table_of(table_ptr, table_strides),
        load_slopes(slopes_ptr, GROUP, BG), start, end, tl.warp_id(), tl.num_warps(), length, sm_scale, soft_cap,
        PAGE, BLOCK, BN, PIECES, GROUP, BG, BD, DIM,
    )  # fmt: skip
    found = join_warps(acc, l_i, m_i)
    if tl.warp_id() == 0:
        store_result(found, o_ptr, lse_ptr, o_strides, n_heads, BLOCK, GROUP, BG, BD, DIM)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: three heads on one in two parts, pages of two blocks in any order, an empty
    sequence, a length that blocks do not divide.
    """
    from mltriton.kernels.attention_paged import Form, paged_attention_launches  # Only the example needs it.

    q = rng.standard_normal((3, 6, 24), np.float32)
    k_cache, v_cache = (rng.standard_normal((13, 32, 2, 24), np.float32) for _ in range(2))
    table = rng.permutation(13)[:12].astype(np.int32).reshape(3, 4)
    lens = np.array([121, 0, 65], np.int32)
    launches: list[Launch] = []
    for warp_level in (False, True):
        form = Form(warp_level, heads=2, keys=32, block=16)
        launches += paged_attention_launches(q, k_cache, v_cache, table, lens, q * 0, form=form, splits=2)[:1]
        del launches[-1].constants["num_warps"]
    return example_of(name, *launches)
