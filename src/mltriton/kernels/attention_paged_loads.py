# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""How a step of paged attention by blocks gets its keys and values: as rectangles of the cache, or key by key.

Level: user. BLOCK is the number of keys that lie in one page and follow each other there. From 16 on a block of keys is
one rectangle, and so is a block of values. Below, a key has an address of its own: each lane reads a key, 16 bytes at a
time, which is how a product takes the right operand q k^T. Values are rectangles of BLOCK rows, put together, where
BLOCK is 4 or more; otherwise rows with an address each, which all lanes read together, so that a lane has neighbouring
columns, and the columns of what is summed stand in the order of `columns_of`.
"""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl

LANES = tl.constexpr(16)  # over which a row of values is dealt


@triton.jit
def columns_of(BD: tl.constexpr, BLOCK: tl.constexpr):
    """The dimension [BD] that each column of the values has."""
    if BLOCK > 1:
        return tl.arange(0, BD)
    each: tl.constexpr = BD // LANES
    return tl.reshape(tl.arange(0, each)[:, None] + (tl.arange(0, LANES) * each)[None, :], [BD])


@triton.jit
def are_columns(BD: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr):
    """Which columns [BD] there are in memory; the columns of one lane are there together, if they can be."""
    each: tl.constexpr = BD // LANES
    if DIM % each == 0 and BLOCK == 1:
        first = tl.broadcast_to((tl.arange(0, LANES) * each)[None, :], [each, LANES])
        return tl.reshape(first, [BD]) < DIM
    return columns_of(BD, BLOCK) < DIM


@triton.jit
def slot_of(key, table, PAGE: tl.constexpr):
    """The page of a key and its slot there; the division of unsigned numbers has no branch."""
    key = key.to(tl.uint32)
    return tl.load(table[0] + (key // PAGE).to(tl.int32) * table[1]), (key % PAGE).to(tl.int32)


@triton.jit
def slots_of(keys, end, table, PAGE: tl.constexpr, MASKED: tl.constexpr):
    """The pages [1, BN] (i64) of keys, and their slots there; where MASKED, of keys below `end`."""
    inside = (keys < end)[None, :]
    keys = keys.to(tl.uint32)[None, :]
    entries = table[0] + (keys // PAGE).to(tl.int32) * table[1]
    pages = tl.load(entries, inside, 0) if MASKED else tl.load(entries)
    return pages.to(tl.int64), (keys % PAGE).to(tl.int32)


@triton.jit
def load_keys(
    k_ptr, offsets, keys, end,
    K_ELEMENT: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Keys as columns [BD, BN]; `offsets` [1, BN] is where each starts. Zeros where there is nothing."""
    dims = tl.arange(0, BD)[:, None]
    there = k_ptr + offsets + dims * K_ELEMENT
    if MASKED and DIM < BD:
        return tl.load(there, (keys < end)[None, :] & (dims < DIM), 0.0)
    if MASKED:
        return tl.load(there, tl.broadcast_to((keys < end)[None, :], there.shape), 0.0)
    if DIM < BD:
        return tl.load(there, tl.broadcast_to(dims < DIM, there.shape), 0.0)
    return tl.load(there)


@triton.jit
def load_values(
    v_ptr, offsets, keys, end,
    V_ELEMENT: tl.constexpr, BD: tl.constexpr, DIM: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Values as rows [BN, BD], columns in the order of `columns_of`; `offsets` [BN, 1] is where each row starts."""
    there = v_ptr + offsets + (columns_of(BD, 1) * V_ELEMENT)[None, :]
    wanted = are_columns(BD, DIM, 1)[None, :]
    if MASKED and DIM < BD:
        return tl.load(there, (keys < end)[:, None] & wanted, 0.0)
    if MASKED:
        return tl.load(there, tl.broadcast_to((keys < end)[:, None], there.shape), 0.0)
    if DIM < BD:
        return tl.load(there, tl.broadcast_to(wanted, there.shape), 0.0)
    return tl.load(there)


@triton.jit
def join_values(v, table, key, last, PAGE: tl.constexpr, BN: tl.constexpr, BLOCK: tl.constexpr):
    """Rows [BN, BD] of the keys from `key` on as BN / BLOCK rectangles of the cache v (`attend_step`); in place of a
    block behind the one that starts at key `last` there is that one.
    """
    if BN == BLOCK:
        page, slot = slot_of(tl.minimum(key, last), table, PAGE)
        return v[0].load([page * v[2] + v[3] + slot, v[4]])
    half: tl.constexpr = BN // 2
    upper = join_values(v, table, key, last, PAGE, half, BLOCK)
    lower = join_values(v, table, key + half, last, PAGE, half, BLOCK)
    return tl.cat(upper, lower)
