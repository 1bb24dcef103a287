# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Paged attention where the warps of a program share tiles of keys and values: GPUs without loads of rectangles.

Level: user. One program takes one head of keys with all query heads that use it, one sequence and one split of its
keys, BN keys at a time, whose rows the warps read by lines of memory. The pages of the next keys are looked up one step
before. Results are those of `attention_paged_kernels.py`; `attention_paged.py` launches this kernel.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention_paged_kernels import LOG2_E, keys_of_split, table_of
from mltriton.kernels.launch import Example, example_of


@triton.jit
def pages_of(keys, end, table, PAGE: tl.constexpr):
    """The pages (i64) of keys [BN]; 0 of those behind the last one."""
    return tl.load(table[0] + keys // PAGE * table[1], keys < end, 0).to(tl.int64)


@triton.jit
def load_rows(cache, pages, slots, inside, BD: tl.constexpr, DIM: tl.constexpr):
    """Rows [BN, BD] of a cache. `cache`: pointer to the head, strides of pages, of slots and of elements."""
    dims = tl.arange(0, BD)
    rows = cache[0] + (pages * cache[1] + slots * cache[2])[:, None]
    return tl.load(rows + (dims * cache[3])[None, :], inside[:, None] & (dims < DIM)[None, :], 0.0)


@triton.jit
def cache_of(pointer, strides):
    """A cache as `load_rows` takes it, at this program's head. `strides`: of pages, of slots, of heads, of elements."""
    return pointer + tl.program_id(0).to(tl.int64) * strides[2], strides[0], strides[1], strides[3]


@triton.jit
def attend_tiles(
    q, k, v, table, slopes, start, end, last_key, sm_scale, soft_cap,
    PAGE: tl.constexpr, BG: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Queries q [BG, BD] over the keys from `start` to `end`: the sum of the values by weights, the sum of the weights,
    and the largest score, in units of log2, that both are relative to.
    """
    m_i = tl.full([BG], -float("inf"), tl.float32)
    l_i = tl.zeros([BG], tl.float32)
    acc = tl.zeros([BG, BD], tl.float32)
    pages = pages_of(start + tl.arange(0, BN), end, table, PAGE)
    for first in range(start, end, BN):
        keys = first + tl.arange(0, BN)
        inside, slots = keys < end, keys % PAGE
        k_rows = load_rows(k, pages, slots, inside, BD, DIM)
        v_rows = load_rows(v, pages, slots, inside, BD, DIM)
        pages = pages_of(keys + BN, end, table, PAGE)
        s = tl.dot(q, tl.trans(k_rows), input_precision="ieee") * sm_scale
        if soft_cap is not None:
            s = soft_cap * tl.math.tanh(s / soft_cap)
        if slopes is not None:
            s += slopes[:, None] * (keys - last_key).to(tl.float32)[None, :]
        s = tl.where(inside[None, :], s * LOG2_E, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p, alpha = tl.exp2(s - m_new[:, None]), tl.exp2(m_i - m_new)
        l_i, m_i = l_i * alpha + tl.sum(p, 1), m_new
        acc = tl.dot(p.to(v_rows.dtype), v_rows, acc * alpha[:, None], input_precision="ieee")
    return acc, l_i, m_i


@triton.jit
def paged_attention_tiles_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lens_ptr, slopes_ptr, o_ptr, lse_ptr, sm_scale, soft_cap,
    q_strides, k_strides, v_strides, table_strides, stride_l, o_strides, n_heads, keys_per_split,
    PAGE: tl.constexpr, GROUP: tl.constexpr, BG: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """One token's queries over one split of a sequence's keys; program ids (kv head, sequence, split)."""
    start, end, length = keys_of_split(lens_ptr, stride_l, keys_per_split)
    kv_head, sequence = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    members, dims = tl.arange(0, BG), tl.arange(0, BD)
    heads, there = kv_head * GROUP + members, members < GROUP
    q_at = sequence * q_strides[0] + (heads * q_strides[1])[:, None] + (dims * q_strides[2])[None, :]
    wanted = there[:, None] & (dims < DIM)[None, :]
    slopes = None if slopes_ptr is None else tl.load(slopes_ptr + heads, there, 0.0)
    acc, l_i, m_i = attend_tiles(
        tl.load(q_ptr + q_at, wanted, 0.0), cache_of(k_ptr, k_strides), cache_of(v_ptr, v_strides),
        table_of(table_ptr, table_strides), slopes, start, end, length - 1, sm_scale, soft_cap, PAGE, BG, BN, BD, DIM,
    )  # fmt: skip
    if lse_ptr is not None:
        row = tl.program_id(2).to(tl.int64) * tl.num_programs(1)
        o_ptr += row * o_strides[0]
        tl.store(lse_ptr + (row + sequence) * n_heads + heads, m_i + tl.log2(l_i), there)
    o = acc / tl.where(l_i > 0.0, l_i, 1.0)[:, None]
    at = sequence * o_strides[0] + (heads * o_strides[1])[:, None] + dims[None, :]
    tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty), wanted)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: three heads on one, pages in any order, an empty sequence, lengths that neither
    pages nor tiles divide.
    """
    from mltriton.kernels.attention_paged import Form, paged_attention_launches  # Only the example needs it.

    q = rng.standard_normal((3, 6, 24), np.float32)
    k_cache, v_cache = (rng.standard_normal((13, 16, 2, 24), np.float32) for _ in range(2))
    table = rng.permutation(13)[:12].astype(np.int32).reshape(3, 4)
    lens = np.array([61, 0, 33], np.int32)
    form = Form(warp_level=False, heads=16, keys=16, tiles=True)
    launch, _ = paged_attention_launches(q, k_cache, v_cache, table, lens, q * 0, form=form, splits=2)
    for option in ("num_warps", "num_stages"):
        del launch.constants[option]
    return example_of(name, launch)
