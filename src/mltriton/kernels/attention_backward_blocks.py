# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""FlashAttention-2, backward, where the warps of a program share large blocks.

Level: user. `attention_backward_queries_kernel` sums dq of a block of queries over the keys that they see, and leaves
these queries' delta, the sum of do * o; `attention_backward_keys_kernel` sums dk and dv of a block of keys over the
queries that see them. Both compute the scores anew, seven products in place of five, and nobody adds to what another
has stored: the results do not depend on an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import Array, empty, item_size, strides_of
from mltriton.kernels.attention import LOG2_E, block_at, head_of, scale_of
from mltriton.kernels.attention_backward import sees
from mltriton.kernels.attention_blocks import block_dim
from mltriton.kernels.launch import Example, Launch, example_of
from mltriton.targets.registry import spec

# Queries of a block of sums of dq that lie beside each other in memory, for all dimensions, before the next: four lanes
# hold so many of a product's result, of a dimension each, and a warp adds to 256 bytes at a time.
BESIDE = tl.constexpr(8)


@triton.jit
def beside(rows: tl.constexpr, columns: tl.constexpr):
    """Where the elements of a block of sums [rows, columns] lie: BESIDE columns of all rows, then the next."""
    row, column = tl.arange(0, rows)[:, None], tl.arange(0, columns)[None, :]
    return column // BESIDE * (BESIDE * rows) + row * BESIDE + column % BESIDE


@triton.jit
def sum_over_queries(
    dk, dv, k, v, q_block, do_block, lse2, delta, sequence, keys, start, end, scale,
    WINDOW: tl.constexpr, MASKED: tl.constexpr, BM: tl.constexpr, dq_ptr=None,
):  # fmt: skip
    """dk and dv with what queries [start, end) of one head add, BM at a time; q_block and do_block stand at `start`.
    Queries after the last have q = do = 0 and change nothing. Scores have keys in rows. What the keys add to dq is
    added at `dq_ptr`, if there is one, in memory (`attention_backward_added.py`).
    """
    for first in range(start, end, BM):
        q = tl.load(q_block, boundary_check=(0, 1), padding_option="zero")
        lse2_row = lse2.load([sequence, first])
        do = tl.load(do_block, boundary_check=(0, 1), padding_option="zero")
        delta_row = delta.load([sequence, first])
        s = tl.dot(k, tl.trans(q), input_precision="ieee")
        dp = tl.dot(v, tl.trans(do), input_precision="ieee")
        p = tl.exp2(s * scale - lse2_row)
        if MASKED:
            rows = first + tl.arange(0, BM)
            visible = keys[:, None] <= rows[None, :]
            if WINDOW > 0:
                visible = visible & (keys[:, None] > rows[None, :] - WINDOW)
            p = tl.where(visible, p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv, input_precision="ieee")
        ds = (p * (dp - delta_row)).to(q.dtype)
        if dq_ptr is not None:
            dq = tl.dot(tl.trans(k), ds, input_precision="ieee")
        dk = tl.dot(ds, q, dk, input_precision="ieee")
        if dq_ptr is not None:
            tl.atomic_add(dq_ptr + tl.cast(first, tl.int64) * k.shape[1] + beside(k.shape[1], BM), dq, sem="relaxed")
        q_block = tl.advance(q_block, (BM, 0))
        do_block = tl.advance(do_block, (BM, 0))
    return dk, dv, q_block, do_block


@triton.jit
def gradients_of_keys(
    block, kv_sequence,
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides,
    n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    sums_ptr=None, share_ptr=None, share=0, shares=1,
):  # fmt: skip
    """dk and dv, contiguous, of a block of BN keys of one of batch * kv_heads sequences. lse2 and delta have `padded`
    queries for each of n_sequences heads. What the keys add to dq is added at `sums_ptr`, if there is one, in memory.
    Where there is a `share_ptr`, it gets what the `share`th of `shares` equal parts of the queries add to dk and dv.
    """
    key = block * BN
    kv_sequence = kv_sequence.to(tl.int64)
    batch, kv_head = kv_sequence // n_kv_heads, kv_sequence % n_kv_heads
    k_block = block_at(head_of(k_ptr, k_strides, batch, kv_head), (n_keys, dim), k_strides[2:], key, BN, BD)
    v_block = block_at(head_of(v_ptr, v_strides, batch, kv_head), (n_keys, dim), v_strides[2:], key, BN, BD)
    k = tl.load(k_block, boundary_check=(0, 1), padding_option="zero")
    v = tl.load(v_block, boundary_check=(0, 1), padding_option="zero")
    lse2 = tl.make_tensor_descriptor(lse2_ptr, [n_sequences, padded], [padded, 1], [1, BM])
    delta = tl.make_tensor_descriptor(delta_ptr, [n_sequences, padded], [padded, 1], [1, BM])
    dk = tl.zeros([BN, BD], tl.float32)
    dv = tl.zeros([BN, BD], tl.float32)
    keys = key + tl.arange(0, BN)
    start = 0
    masked = 0
    if CAUSAL:
        start = key // BM * BM
        masked = tl.minimum(tl.cdiv(key + BN, BM) * BM, n_queries)
    end = n_queries
    far = n_queries
    if WINDOW > 0:
        end = tl.minimum(n_queries, key + BN + WINDOW - 1)
        masked = tl.minimum(masked, end)
        far = tl.minimum(end, tl.maximum(masked, (key + WINDOW) // BM * BM))
    bounds = start, masked, far, end
    first_member, members = 0, heads_per_kv
    if share_ptr is not None:
        steps = tl.maximum(1, tl.cdiv(end - start, BM))  # of each head
        low, high = share * (members * steps) // shares, (share + 1) * (members * steps) // shares
        first_member, members = tl.maximum(low // steps, 0), tl.cdiv(high, steps)
    for member in tl.range(first_member, members):
        head = kv_head * heads_per_kv + member
        sequence = batch * n_kv_heads * heads_per_kv + head
        row = sequence.to(tl.int32)
        if share_ptr is not None:
            of, to = start + (low - member * steps) * BM, start + (high - member * steps) * BM
            bounds = (
                clamped(start, of, to, end), clamped(masked, of, to, end),
                clamped(far, of, to, end), clamped(end, of, to, end),
            )  # fmt: skip
        q_block = block_at(head_of(q_ptr, q_strides, batch, head), (n_queries, dim), q_strides[2:], bounds[0], BM, BD)
        do_block = block_at(
            head_of(do_ptr, do_strides, batch, head), (n_queries, dim), do_strides[2:], bounds[0], BM, BD
        )
        sums = None if sums_ptr is None else sums_ptr + sequence * padded * BD
        for part in tl.static_range(0 if CAUSAL else 1, 3 if WINDOW > 0 else 2):
            dk, dv, q_block, do_block = sum_over_queries(
                dk, dv, k, v, q_block, do_block, lse2, delta, row, keys, bounds[part], bounds[part + 1],
                sm_scale * LOG2_E, WINDOW, part != 1, BM, sums,
            )  # fmt: skip
    if share_ptr is None:
        store_gradients(dk, dv, dk_ptr, dv_ptr, sm_scale, kv_sequence, key, n_keys, dim)
    else:
        tl.store(block_at(share_ptr, (2 * BN, BD), (BD, 1), 0, BN, BD), dk)
        tl.store(block_at(share_ptr, (2 * BN, BD), (BD, 1), BN, BN, BD), dv)


@triton.jit
def clamped(row, low, high, end):
    """The nearest of rows [low, high], of which none is behind `end`."""
    return tl.minimum(tl.maximum(row, low), tl.minimum(high, end))


@triton.jit
def store_gradients(dk, dv, dk_ptr, dv_ptr, sm_scale, kv_sequence, key, n_keys, dim):
    """Sums over queries as gradients of keys from `key` on, contiguous, of one of batch * kv_heads sequences."""
    dk_base, dv_base = dk_ptr + kv_sequence * n_keys * dim, dv_ptr + kv_sequence * n_keys * dim
    dk_block = block_at(dk_base, (n_keys, dim), (dim, 1), key, dk.shape[0], dk.shape[1])
    dv_block = block_at(dv_base, (n_keys, dim), (dim, 1), key, dv.shape[0], dv.shape[1])
    tl.store(dk_block, (dk * sm_scale).to(dk_ptr.dtype.element_ty), boundary_check=(0, 1))
    tl.store(dv_block, dv.to(dv_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def attention_backward_keys_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides,
    n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """`gradients_of_keys` by program ids (block of keys, batch * kv_heads)."""
    gradients_of_keys(
        tl.program_id(0), tl.program_id(1),
        do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
        do_strides, q_strides, k_strides, v_strides,
        n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded,
        CAUSAL, WINDOW, BM, BN, BD,
    )  # fmt: skip


@triton.jit
def sum_over_keys(
    dq, q, do, k_block, v_block, lse2, delta, rows, start, end, n_keys, scale,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASKED: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """dq with what keys [start, end) add, BN at a time; k_block and v_block stand at `start`."""
    for first in range(start, end, BN):
        k = tl.load(k_block, boundary_check=(0, 1), padding_option="zero")
        v = tl.load(v_block, boundary_check=(0, 1), padding_option="zero")
        s = tl.dot(q, tl.trans(k), input_precision="ieee")
        dp = tl.dot(do, tl.trans(v), input_precision="ieee")
        p = tl.exp2(s * scale - lse2[:, None])
        if MASKED:
            keys = first + tl.arange(0, BN)
            p = tl.where(sees(rows[:, None], keys[None, :], n_keys, CAUSAL, WINDOW), p, 0.0)
        ds = (p * (dp - delta[:, None])).to(k.dtype)
        dq = tl.dot(ds, k, dq, input_precision="ieee")
        k_block = tl.advance(k_block, (BN, 0))
        v_block = tl.advance(v_block, (BN, 0))
    return dq, k_block, v_block


@triton.jit
def gradients_of_queries(
    block, sequence,
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, o_ptr, lse_ptr, dq_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides, o_strides,
    n_heads, heads_per_kv, n_queries, n_keys, dim, padded,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """dq, contiguous, of a block of BM queries of one of batch * heads sequences, their delta, and lse2, which is lse
    in powers of two, of which each sequence has `padded`.
    """
    sequence = sequence.to(tl.int64)
    batch, head = sequence // n_heads, sequence % n_heads
    kv_head = head // heads_per_kv
    row = block * BM
    q_block = block_at(head_of(q_ptr, q_strides, batch, head), (n_queries, dim), q_strides[2:], row, BM, BD)
    do_block = block_at(head_of(do_ptr, do_strides, batch, head), (n_queries, dim), do_strides[2:], row, BM, BD)
    start = tl.maximum(0, row - WINDOW + 1) // BN * BN if WINDOW > 0 else 0
    k_block = block_at(head_of(k_ptr, k_strides, batch, kv_head), (n_keys, dim), k_strides[2:], start, BN, BD)
    v_block = block_at(head_of(v_ptr, v_strides, batch, kv_head), (n_keys, dim), v_strides[2:], start, BN, BD)
    o_block = block_at(head_of(o_ptr, o_strides, batch, head), (n_queries, dim), o_strides[2:], row, BM, BD)
    o = tl.load(o_block, boundary_check=(0, 1), padding_option="zero")
    q = tl.load(q_block, boundary_check=(0, 1), padding_option="zero")
    do = tl.load(do_block, boundary_check=(0, 1), padding_option="zero")
    rows = row + tl.arange(0, BM)
    inside = rows < n_queries
    lse2 = tl.load(lse_ptr + sequence * n_queries + rows, mask=inside, other=0.0) * LOG2_E
    delta = tl.sum(do.to(tl.float32) * o.to(tl.float32), 1)
    tl.store(lse2_ptr + sequence * padded + rows, lse2)
    tl.store(delta_ptr + sequence * padded + rows, delta)
    dq = tl.zeros([BM, BD], tl.float32)
    end = n_keys
    unmasked = n_keys // BN * BN
    if CAUSAL:
        end = tl.minimum(n_keys, row + BM)
        unmasked = tl.minimum(unmasked, row // BN * BN)
    scale = sm_scale * LOG2_E
    first = start
    if WINDOW > 0:
        start = tl.minimum(unmasked, tl.cdiv(tl.maximum(0, row + BM - WINDOW), BN) * BN)
    bounds = first, start, unmasked, end
    for part in tl.static_range(0 if WINDOW > 0 else 1, 3):
        dq, k_block, v_block = sum_over_keys(
            dq, q, do, k_block, v_block, lse2, delta, rows, bounds[part], bounds[part + 1], n_keys, scale,
            CAUSAL, WINDOW, part != 1, BN,
        )  # fmt: skip
    dq_base = dq_ptr + sequence * n_queries * dim
    dq_block = block_at(dq_base, (n_queries, dim), (dim, 1), row, BM, BD)
    tl.store(dq_block, (dq * sm_scale).to(dq_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def attention_backward_queries_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, o_ptr, lse_ptr, dq_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides, o_strides,
    n_heads, heads_per_kv, n_queries, n_keys, dim, padded,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """`gradients_of_queries` by program ids (block of queries, batch * heads)."""
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block  # the longest first
    gradients_of_queries(
        block, tl.program_id(1),
        do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, o_ptr, lse_ptr, dq_ptr, sm_scale,
        do_strides, q_strides, k_strides, v_strides, o_strides,
        n_heads, heads_per_kv, n_queries, n_keys, dim, padded,
        CAUSAL, WINDOW, BM, BN, BD,
    )  # fmt: skip


class Step(NamedTuple):
    """Queries and keys of a program and its steps, its warps, and the stages of its loops; None is the usual number."""

    queries: int
    keys: int
    warps: int | None = None
    stages: int | None = None


# By target, and dimension of heads of 2 bytes an element: what sums over queries, and over keys, of whose queries those
# of the first are a part. Groups of four warps have 64 rows of each sum.
STEPS = {"cuda:90": {64: (Step(64, 128, 8, 2), Step(64, 64, 4, 2)), 128: (Step(64, 128, 8, 2), Step(128, 64, 8, 2))}}


def steps_on(target: str | None, q: Array) -> tuple[Step, Step] | None:
    """The blocks for arrays like q on a target; None where these kernels have none."""
    if target is None or item_size(q) != 2:
        return None
    return next((steps for most, steps in STEPS.get(spec(target).name, {}).items() if q.shape[-1] <= most), None)


def block_launches(
    do: Array, q: Array, k: Array, v: Array, o: Array, lse: Array, dq: Array, dk: Array, dv: Array,
    causal: bool, sm_scale: float | None, steps: Sequence[Step], target: str | None, window: int = 0,
) -> list[Launch]:  # fmt: skip
    """The launches that fill dq, dk and dv, in order; `window` is 0 where there is none."""
    batch, heads, n_queries, dim = q.shape
    kv_heads, n_keys = k.shape[1:3]
    sequences, over_keys = batch * heads, steps[1]
    padded = triton.cdiv(n_queries, over_keys.queries) * over_keys.queries
    lse2, delta = (empty((sequences, padded), q, "float32") for _ in range(2))
    given, scale = (do, q, k, v, lse2, delta), scale_of(dim, sm_scale)
    strides = [strides_of(x) for x in (do, q, k, v)]
    sizes = heads // kv_heads, n_queries, n_keys, dim, padded
    by_queries, by_keys = (
        {"CAUSAL": bool(causal), "WINDOW": window, "BM": step.queries, "BN": step.keys, "BD": block_dim(dim)}
        for step in steps[::-1]
    )
    launches = (
        Launch(
            attention_backward_queries_kernel,
            (padded // over_keys.queries, sequences),
            (*given, o, lse, dq, scale, *strides, strides_of(o), heads, *sizes),
            by_queries,
        ),
        Launch(
            attention_backward_keys_kernel,
            (triton.cdiv(n_keys, steps[0].keys), batch * kv_heads),
            (*given, dk, dv, scale, *strides, sequences, kv_heads, *sizes),
            by_keys,
        ),
    )
    made = [launch.on(target, step.warps, step.stages) for launch, step in zip(launches, steps[::-1], strict=True)]
    groups = spec(target).warp_groups if target is not None else None
    along = n_keys, heads // kv_heads * n_queries  # each program's loop
    return made if groups is None else [in_turn(*of, groups.warps) for of in zip(made, along, strict=True)]


def in_turn(launch: Launch, along: int, group: int) -> Launch:
    """The same by programs that compute blocks in turn, where so many of a group's warps copy for two groups or more,
    and loops are short `along` keys or queries. Not of windows, which are slower so.
    """
    from mltriton.kernels.attention_backward_persistent import SHORT, persistent_launch  # It needs this module.

    given = launch.constants
    if given["num_warps"] < 2 * group or given["WINDOW"] or along // (2 if given["CAUSAL"] else 1) > SHORT:
        return launch
    return persistent_launch(launch) or launch


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: causal, two heads on one, sizes that no block divides."""
    return example_of(name, *example_launches(rng, 2, 2, (Step(16, 32), Step(32, 16))))


def example_launches(rng: np.random.Generator, batch: int, heads: int, steps: Sequence[Step]) -> list[Launch]:
    """Causal launches of several heads on one, of sizes that no block divides, for `mltriton verify`."""
    do, q, k, v, o = (rng.standard_normal((batch, count, 50, 24), np.float32) for count in (heads, heads, 1, 1, heads))
    lse = 10 + rng.standard_normal((batch, heads, 50), np.float32)
    dq, dk, dv = (np.zeros_like(x) for x in (q, k, v))
    launches = block_launches(do, q, k, v, o, lse, dq, dk, dv, True, None, steps, None)
    for scratch in ("lse2_ptr", "delta_ptr"):
        launches[0].named()[scratch][...] = 1.0
    return launches
