# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Gradients of attention by five products in place of seven: programs for keys add what they give to dq in memory.

Level: user. `attention_backward_added_kernel` sums dk and dv of a block of keys over all queries, and adds to sums of
dq, in f32, by atomics; a launch before computes delta and clears the sums, one after rounds them. The order of programs
decides in which order dq is summed up: its last bits differ from run to run. Worth it where sequences are long, which
power limits, and all keys are seen.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import Array, empty, strides_of
from mltriton.kernels.attention import LOG2_E, block_at, head_of, scale_of
from mltriton.kernels.attention_backward_blocks import Step, beside, gradients_of_keys
from mltriton.kernels.attention_blocks import block_dim
from mltriton.kernels.gemm_persistent import multiprocessors_of
from mltriton.kernels.launch import Example, Launch, example_of

LONG = 4096  # keys, from which on it is faster (H100, D 128: 3 to 4 %; at 1024 9 % slower)
DIM = 128  # as many rows of the sums' blocks as 8 warps have


@triton.jit
def prepare_added_kernel(
    do_ptr, o_ptr, lse_ptr, lse2_ptr, delta_ptr, sums_ptr, do_strides, o_strides, n_heads, n_queries, dim, padded,
    BM: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """delta = sum(do * o), lse2 = lse in powers of two, and sums = 0, for BM queries of one head, of which each has
    `padded`; program ids (block of queries, batch * heads).
    """
    row = tl.program_id(0) * BM
    sequence = tl.program_id(1).to(tl.int64)
    batch, head = sequence // n_heads, sequence % n_heads
    do_block = block_at(head_of(do_ptr, do_strides, batch, head), (n_queries, dim), do_strides[2:], row, BM, BD)
    o_block = block_at(head_of(o_ptr, o_strides, batch, head), (n_queries, dim), o_strides[2:], row, BM, BD)
    do = tl.load(do_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    o = tl.load(o_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    rows = row + tl.arange(0, BM)
    lse = tl.load(lse_ptr + sequence * n_queries + rows, mask=rows < n_queries, other=0.0)
    tl.store(delta_ptr + sequence * padded + rows, tl.sum(do * o, 1))
    tl.store(lse2_ptr + sequence * padded + rows, lse * LOG2_E)
    tl.store(sums_ptr + (sequence * padded + row) * BD + tl.arange(0, BM * BD), tl.zeros([BM * BD], tl.float32))


@triton.jit
def attention_backward_added_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, sums_ptr, dk_ptr, dv_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides,
    n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """dk and dv, contiguous, of BN keys of one head of keys, where BN divides n_keys, and what they add to dq; program
    ids (block of keys, batch * kv_heads).
    """
    gradients_of_keys(
        tl.program_id(0), tl.program_id(1), do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
        do_strides, q_strides, k_strides, v_strides,
        n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded, False, 0, BM, BN, BD, sums_ptr,
    )  # fmt: skip


@triton.jit
def finish_added_kernel(
    sums_ptr, dq_ptr, sm_scale, n_queries, dim, padded, BM: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """dq, contiguous, of the sums of BM queries of one head; program ids (block of queries, batch * heads)."""
    row = tl.program_id(0) * BM
    sequence = tl.program_id(1).to(tl.int64)
    sums = tl.load(sums_ptr + (sequence * padded + row) * BD + beside(BD, BM))
    dq_block = block_at(dq_ptr + sequence * n_queries * dim, (n_queries, dim), (dim, 1), row, BM, BD)
    tl.store(dq_block, (tl.trans(sums) * sm_scale).to(dq_ptr.dtype.element_ty), boundary_check=(0, 1))


def is_added(q: Array, k: Array, causal: bool, window: int, step: Step) -> bool:
    """Whether dq is added up in memory where it may be: not where heads share keys (four heads on one: 1.01 of SDPA's
    backward without, 0.96 with it), since then fewer programs have more to do, nor where several would share a block.
    """
    fits = block_dim(q.shape[-1]) == DIM and k.shape[2] % step.keys == 0 and q.shape[1] == k.shape[1]
    many = 2 * k.shape[0] * k.shape[1] * k.shape[2] // step.keys > multiprocessors_of(q)
    return fits and many and not causal and not window and k.shape[2] >= LONG


def added_launches(
    do: Array, q: Array, k: Array, v: Array, o: Array, lse: Array, dq: Array, dk: Array, dv: Array,
    sm_scale: float | None, step: Step, target: str | None,
) -> list[Launch]:  # fmt: skip
    """The launches that fill dq, dk and dv, in order."""
    (batch, heads, n_queries, dim), (kv_heads, n_keys), block = q.shape, k.shape[1:3], step.queries
    sequences, padded, depth = batch * heads, triton.cdiv(n_queries, block) * block, block_dim(dim)
    lse2, delta = (empty((sequences, padded), q, "float32") for _ in range(2))
    sums, scale = empty((sequences, padded, depth), q, "float32"), scale_of(dim, sm_scale)
    sizes = {"BM": block, "BD": depth}
    prepare = Launch(
        prepare_added_kernel,
        (padded // block, sequences),
        (do, o, lse, lse2, delta, sums, strides_of(do), strides_of(o), heads, n_queries, dim, padded),
        sizes,
    )
    strides = [strides_of(x) for x in (do, q, k, v)]
    main = Launch(
        attention_backward_added_kernel,
        (triton.cdiv(n_keys, step.keys), batch * kv_heads),
        (
            do, q, k, v, lse2, delta, sums, dk, dv, scale, *strides,
            sequences, kv_heads, heads // kv_heads, n_queries, n_keys, dim, padded,
        ),
        {"BN": step.keys, **sizes},
    )  # fmt: skip
    finish = Launch(finish_added_kernel, (padded // block, sequences), (sums, dq, scale, n_queries, dim, padded), sizes)
    return [prepare.on(target), main.on(target, step.warps, step.stages), finish.on(target)]


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: two heads on one, queries and dimensions that no block divides."""
    do, q, k, v, o = (
        rng.standard_normal((1, heads, size, 24), np.float32)
        for heads, size in ((2, 40), (2, 40), (1, 64), (1, 64), (2, 40))
    )
    lse = 10 + rng.standard_normal((1, 2, 40), np.float32)
    dq, dk, dv = (np.zeros_like(x) for x in (q, k, v))
    launches = added_launches(do, q, k, v, o, lse, dq, dk, dv, None, Step(16, 32), None)
    for scratch in ("lse2_ptr", "delta_ptr", "sums_ptr"):
        launches[0].named()[scratch][...] = 1.0
    return example_of(name, *launches)
