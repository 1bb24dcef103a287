# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Attention by as many programs as a GPU runs at a time, each of which computes blocks of queries in turn.

Level: user. For sequences of several rounds of programs: a warp of its own starts the copies of the next block's
queries, keys and values while the others end one. Where the output is the queries' array the launch runs the program
by which lanes copy.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention import attend_queries, attention_launch
from mltriton.kernels.attention_blocks import Blocks
from mltriton.kernels.gemm_persistent import multiprocessors_of
from mltriton.kernels.launch import Example, Launch, example_of


@triton.jit
def attention_persistent_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale,
    q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, n_queries, n_keys, dim, shares, items, last,
    CAUSAL: tl.constexpr, NEGATIVE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    PART: tl.constexpr, WINDOW: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """`attend_queries` by fewer programs: program id p computes items p, p + programs, ... of `items`, which are
    `shares` of each sequence. An item is a block of queries; for causal attention without a window it is two, one as
    far from the end (the block `last`) as the other from the beginning, so that all items have as many keys. Of an odd
    number of blocks the last is an item with none, which lies in front of the first.
    """
    turns = 2 if CAUSAL and WINDOW == 0 else 1
    first, programs = tl.program_id(0), tl.num_programs(0)
    for turn in tl.range(0, tl.cdiv(items - first, programs) * turns, warp_specialize=True):
        item = first + turn // turns * programs
        sequence, block = item // shares, item % shares
        if turns == 2:
            block = tl.where(turn % 2 == 0, last - block, block + last + 1 - 2 * shares)
        attend_queries(
            block, sequence, q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale,
            q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, n_queries, n_keys, dim,
            CAUSAL, NEGATIVE, BM, BN, BD, PART, WINDOW, REST,
        )  # fmt: skip


def persistent_launch(launch: Launch, programs: int | None = None) -> Launch | None:
    """What a launch of `attention_kernel` computes, by at most so many programs, one for each multiprocessor when None:
    no more than its rounds need; None where there is one round of programs.
    """
    blocks, sequences = launch.grid
    shares = triton.cdiv(blocks, 2) if launch.constants["CAUSAL"] and not launch.constants["WINDOW"] else blocks
    programs = programs or multiprocessors_of(launch.arguments[0])
    items = shares * sequences
    if items <= programs:
        return None
    programs = triton.cdiv(items, triton.cdiv(items, programs))
    arguments = (*launch.arguments, shares, items, blocks - 1)
    return launch._replace(kernel=attention_persistent_kernel, grid=(programs,), arguments=arguments)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: causal, two heads of four blocks for one program."""
    q, k, v = (rng.standard_normal((1, 2, 100, 24), np.float32) for _ in range(3))
    launch = persistent_launch(attention_launch(q, k, v, np.zeros_like(q), causal=True, blocks=Blocks(32, 32)), 1)
    return example_of(name, launch)
