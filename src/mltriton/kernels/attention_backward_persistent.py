# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Gradients of attention by as many programs as a GPU runs at a time, each of which computes blocks in turn.

Level: user. A warp of its own starts the copies of the next block while the others end one, which is worth it where
blocks have few steps.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention_backward_blocks import (
    Step,
    attention_backward_keys_kernel,
    attention_backward_queries_kernel,
    example_launches,
    gradients_of_keys,
    gradients_of_queries,
)
from mltriton.kernels.gemm_persistent import multiprocessors_of
from mltriton.kernels.launch import Example, Launch, example_of

SHORT = 2048  # keys that a block of queries sees on average, or queries that see a block of keys


@triton.jit
def item_at(turn, first, programs, shares, PAIRS: tl.constexpr):
    """The block and the sequence of a turn of a program. An item is a block, of which each sequence has `shares`; or a
    pair of twice as many, one as far from the end as the other from the beginning, so that all have as much to do.
    """
    turns = 2 if PAIRS else 1
    item = first + turn // turns * programs
    block = item % shares
    if PAIRS:
        block = tl.where(turn % 2 == 0, 2 * shares - 1 - block, block)
    return block, item // shares


@triton.jit
def attention_backward_keys_persistent_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides,
    n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded,
    shares, items,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """`gradients_of_keys` by fewer programs: program id p computes items p, p + programs, ... of `items`."""
    first, programs = tl.program_id(0), tl.num_programs(0)
    for turn in tl.range(0, tl.cdiv(items - first, programs) * (2 if CAUSAL else 1), warp_specialize=True):
        block, sequence = item_at(turn, first, programs, shares, CAUSAL)
        gradients_of_keys(
            block, sequence,
            do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
            do_strides, q_strides, k_strides, v_strides,
            n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded,
            CAUSAL, WINDOW, BM, BN, BD,
        )  # fmt: skip


@triton.jit
def attention_backward_queries_persistent_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, o_ptr, lse_ptr, dq_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides, o_strides,
    n_heads, heads_per_kv, n_queries, n_keys, dim, padded,
    shares, items,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """`gradients_of_queries` by fewer programs, which share items out in the same way."""
    first, programs = tl.program_id(0), tl.num_programs(0)
    for turn in tl.range(0, tl.cdiv(items - first, programs) * (2 if CAUSAL else 1), warp_specialize=True):
        block, sequence = item_at(turn, first, programs, shares, CAUSAL)
        gradients_of_queries(
            block, sequence,
            do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, o_ptr, lse_ptr, dq_ptr, sm_scale,
            do_strides, q_strides, k_strides, v_strides, o_strides,
            n_heads, heads_per_kv, n_queries, n_keys, dim, padded,
            CAUSAL, WINDOW, BM, BN, BD,
        )  # fmt: skip


PERSISTENT = {
    attention_backward_keys_kernel: attention_backward_keys_persistent_kernel,
    attention_backward_queries_kernel: attention_backward_queries_persistent_kernel,
}


def persistent_launch(launch: Launch, programs: int | None = None) -> Launch | None:
    """What a launch of one of the two kernels computes, by at most so many programs, one for each multiprocessor when
    None: no more than its rounds need. None where there is one round of programs, or a causal block without a partner.
    """
    blocks, sequences = launch.grid
    causal = launch.constants["CAUSAL"]
    shares = blocks // 2 if causal else blocks
    programs = programs or multiprocessors_of(launch.arguments[0])
    items = shares * sequences
    if items <= programs or (causal and blocks % 2):
        return None
    programs = triton.cdiv(items, triton.cdiv(items, programs))
    arguments = (*launch.arguments, shares, items)
    return launch._replace(kernel=PERSISTENT[launch.kernel], grid=(programs,), arguments=arguments)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: causal, two heads on one, a pair of blocks of keys and two of queries for one
    program.
    """
    launches = example_launches(rng, 1, 2, (Step(16, 16), Step(16, 16)))
    return example_of(name, *(persistent_launch(launch, 1) for launch in launches))
