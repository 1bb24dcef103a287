# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""The kernels of paged attention in two forms: of a workgroup, and of its warps (ML-Triton, Listings 6 and 7).

Level: user. One program instance takes HEADS heads of keys with all query heads that use them, one sequence, and one
split of its keys. In the workgroup's form the compiler shares the work between warps; in the other one each warp takes
blocks of keys of its own, and what the warps have found is combined at the end. Where a sequence is cut into several
splits, `combine_splits_kernel` adds up what they found (Flash-Decoding). `attention_paged.py` launches them.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.launch import Example, example_of

LOG2_E = tl.constexpr(1.4426950408889634)
FINITE = tl.constexpr(-3.0e38)  # a maximum is at least this where it is subtracted: -inf - -inf is no number


@triton.jit
def keys_of_split(lens_ptr, stride_l, keys_per_split):
    """The keys of this program: the first one, the end, and how many its sequence has."""
    length = tl.load(lens_ptr + tl.program_id(1).to(tl.int64) * stride_l)
    start = tl.program_id(2) * keys_per_split
    return start, tl.minimum(start + keys_per_split, length), length


@triton.jit
def table_of(table_ptr, strides):
    """The pages of this program's sequence: a pointer to the first, and how far the next one is."""
    return table_ptr + tl.program_id(1).to(tl.int64) * strides[0], strides[1]


@triton.jit
def join_warps(acc, l_i, m_i):
    """What the warps have found, on warp 0: the sums, relative to the largest score of all."""
    m = tl.max(m_i, cross_warp=True)
    alpha = tl.exp2(m_i - tl.maximum(m, FINITE))  # 0 on a warp without keys
    l = tl.sum(l_i * alpha, cross_warp=True, dst_warps=0)  # noqa: E741
    return tl.sum(acc * tl.expand_dims(alpha, -1), cross_warp=True, dst_warps=0), l, m


@triton.jit
def query_offsets(strides, group, dim, HEADS: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr):
    """Where the queries [HEADS, BG, BD] of this program lie in an array [sequences, heads, dim] with these strides, and
    which of them there are.
    """
    members, dims = tl.arange(0, BG), tl.arange(0, BD)
    kv_heads = tl.program_id(0).to(tl.int64) * HEADS + tl.arange(0, HEADS)
    heads = kv_heads[:, None] * group + members[None, :]
    sequence = tl.program_id(1).to(tl.int64) * strides[0]
    offsets = sequence + heads[:, :, None] * strides[1] + (dims * strides[2])[None, None, :]
    return offsets, (members < group)[None, :, None] & (dims < dim)[None, None, :]


@triton.jit
def attend_pages(
    q, k, v, table, slopes, start, end, step, last_key, sm_scale, soft_cap,
    PAGE: tl.constexpr, BN: tl.constexpr, HEADS: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Queries q [HEADS, BG, BD] over blocks of BN keys at start, start + step, ... below `end`: the sum of the values
    by weights, the sum of the weights, and the largest score, in units of log2, that both are relative to. k and v:
    pointer, strides of pages, of slots, of heads and of elements.
    """
    m_i = tl.full([HEADS, BG], -float("inf"), tl.float32)
    l_i = tl.zeros([HEADS, BG], tl.float32)
    acc = tl.zeros([HEADS, BG, BD], tl.float32)
    dims = tl.arange(0, BD)
    kv_heads = (tl.program_id(0).to(tl.int64) * HEADS + tl.arange(0, HEADS))[:, None, None]
    k_lines = k[0] + kv_heads * k[3] + (dims * k[4])[None, None, :]
    v_lines = v[0] + kv_heads * v[3] + (dims * v[4])[None, None, :]
    for first in range(start, end, step):
        keys = first + tl.arange(0, BN)
        inside = keys < end
        wanted = inside[None, :, None] & (dims < DIM)[None, None, :]
        pages = tl.load(table[0] + keys // PAGE * table[1], inside, 0).to(tl.int64)
        slots = keys % PAGE
        keys_there = k_lines + (pages * k[1] + slots * k[2])[None, :, None]
        s = tl.dot(q, tl.trans(tl.load(keys_there, wanted, 0.0), 0, 2, 1), input_precision="ieee") * sm_scale
        if soft_cap is not None:
            s = soft_cap * tl.math.tanh(s / soft_cap)
        if slopes is not None:
            s += slopes[:, :, None] * (keys - last_key).to(tl.float32)[None, None, :]
        s = tl.where(inside[None, None, :], s * LOG2_E, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, 2))
        p = tl.exp2(s - m_new[:, :, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 2)
        values = tl.load(v_lines + (pages * v[1] + slots * v[2])[None, :, None], wanted, 0.0)
        acc = tl.dot(p.to(values.dtype), values, acc * alpha[:, :, None], input_precision="ieee")
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def store_result(
    found, o_ptr, lse_ptr, o_strides, stride_lh, group, dim,
    HEADS: tl.constexpr, BG: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Store acc / l_i, zeros where there is no key; with several splits into that split's part of o_ptr, and the
    logarithm (base 2) of the sum of weights to lse_ptr [splits, sequences, heads].
    """
    acc, l_i, m_i = found
    o_offsets, wanted = query_offsets((*o_strides, 1), group, dim, HEADS, BG, BD)
    if lse_ptr is not None:
        row = tl.program_id(2).to(tl.int64) * tl.num_programs(1)
        o_ptr += row * o_strides[0]
        lse_offsets, present = query_offsets((stride_lh, 1, 0), group, 1, HEADS, BG, 1)
        lse = (m_i + tl.log2(l_i))[:, :, None]
        tl.store(lse_ptr + row * stride_lh + lse_offsets, lse, present)
    o = acc / tl.where(l_i > 0.0, l_i, 1.0)[:, :, None]
    tl.store(o_ptr + o_offsets, o.to(o_ptr.dtype.element_ty), wanted)


@triton.jit
def paged_attention_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, slopes_ptr, o_ptr, lse_ptr, sm_scale, soft_cap,
    q_strides, k_strides, v_strides, table_strides, stride_l, o_strides, n_heads, group, keys_per_split,
    PAGE: tl.constexpr, HEADS: tl.constexpr, BG: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """One token's queries over one split of a sequence's keys; program ids (HEADS kv heads, sequence, split)."""
    start, end, length = keys_of_split(lens_ptr, stride_l, keys_per_split)
    q_offsets, wanted = query_offsets(q_strides, group, DIM, HEADS, BG, BD)
    q = tl.load(q_ptr + q_offsets, wanted, 0.0)
    found = attend_pages(
        q, (k_ptr, *k_strides), (v_ptr, *v_strides), table_of(table_ptr, table_strides),
        load_slopes(slopes_ptr, group, HEADS, BG), start, end, BN, length - 1, sm_scale, soft_cap,
        PAGE, BN, HEADS, BG, BD, DIM,
    )  # fmt: skip
    store_result(found, o_ptr, lse_ptr, o_strides, n_heads, group, DIM, HEADS, BG, BD)


@triton.jit(warp_level=True)
def paged_attention_warps_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, slopes_ptr, o_ptr, lse_ptr, sm_scale, soft_cap,
    q_strides, k_strides, v_strides, table_strides, stride_l, o_strides, n_heads, group, keys_per_split,
    PAGE: tl.constexpr, HEADS: tl.constexpr, BG: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """The same, by warps: warp w of W takes the blocks w, w + W, ... of the keys."""
    start, end, length = keys_of_split(lens_ptr, stride_l, keys_per_split)
    q_shared = tl.alloc([HEADS, BG, BD], q_ptr.dtype.element_ty)
    if tl.warp_id() == 0:  # brings the queries for all
        q_offsets, wanted = query_offsets(q_strides, group, DIM, HEADS, BG, BD)
        tl.store(q_shared, tl.load(q_ptr + q_offsets, wanted, 0.0))
    tl.barrier()
    acc, l_i, m_i = attend_pages(
        tl.load(q_shared), (k_ptr, *k_strides), (v_ptr, *v_strides), table_of(table_ptr, table_strides),
        load_slopes(slopes_ptr, group, HEADS, BG), start + tl.warp_id() * BN, end, tl.num_warps() * BN, length - 1,
        sm_scale, soft_cap, PAGE, BN, HEADS, BG, BD, DIM,
    )  # fmt: skip
    found = join_warps(acc, l_i, m_i)
    if tl.warp_id() == 0:
        store_result(found, o_ptr, lse_ptr, o_strides, n_heads, group, DIM, HEADS, BG, BD)


@triton.jit
def load_slopes(slopes_ptr, group, HEADS: tl.constexpr, BG: tl.constexpr):
    """The slopes [HEADS, BG] of this program's heads; None where there are none."""
    if slopes_ptr is None:
        return None
    members = tl.arange(0, BG)[None, :]
    heads = (tl.program_id(0) * HEADS + tl.arange(0, HEADS))[:, None] * group + members
    return tl.load(slopes_ptr + heads, tl.broadcast_to(members < group, [HEADS, BG]), 0.0)


@triton.jit
def combine_splits_kernel(
    part_ptr, lse_ptr, o_ptr, stride_os, stride_oh, n_heads, n_splits, dim, BS: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """o of one head of one sequence from what each split found; program ids (head, sequence)."""
    head = tl.program_id(0)
    sequence = tl.program_id(1).to(tl.int64)
    splits, dims = tl.arange(0, BS), tl.arange(0, BD)
    rows = (splits * tl.num_programs(1) + sequence) * n_heads + head
    lse = tl.load(lse_ptr + rows, splits < n_splits, -float("inf"))
    largest = tl.max(lse, 0)
    weights = tl.exp2(lse - tl.maximum(largest, FINITE))
    total = tl.sum(weights, 0)
    weights /= tl.where(total > 0.0, total, 1.0)
    wanted = (splits < n_splits)[:, None] & (dims < dim)[None, :]
    parts = tl.load(part_ptr + rows[:, None] * dim + dims[None, :], wanted, 0.0)
    o = tl.sum(parts * weights[:, None], 0)
    tl.store(o_ptr + sequence * stride_os + head * stride_oh + dims, o.to(o_ptr.dtype.element_ty), dims < dim)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: three heads on one, pages in any order, an empty sequence, lengths that neither
    pages nor blocks divide.
    """
    from mltriton.kernels.attention_paged import Form, paged_attention_launches  # Only the example needs it.

    q = rng.standard_normal((3, 6, 24), np.float32)
    k_cache, v_cache = (rng.standard_normal((13, 16, 2, 24), np.float32) for _ in range(2))
    table = rng.permutation(13)[:12].astype(np.int32).reshape(3, 4)
    lens = np.array([61, 0, 33], np.int32)
    forms = [Form(warp_level, heads=2, keys=16) for warp_level in (False, True)]
    given = q, k_cache, v_cache, table, lens, q * 0
    launches = [launch for form in forms for launch in paged_attention_launches(*given, form=form, splits=2)]
    for array, shape in zip(launches[1].arguments, (q.shape, q.shape[:2]), strict=False):
        array[...] = rng.standard_normal((2, *shape))
    return example_of(name, *launches)
