# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Attention by programs of one thread that do a few of their queries at a time.

Level: user, for one thread a program. Warps share out a program's queries and take turns in each step: its keys and
values are packed once for all of them, and the scores of one warp's queries stay in the nearest caches, so that steps
may be long.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.attention import attend_queries, attention_launch
from mltriton.kernels.attention_blocks import Blocks
from mltriton.kernels.launch import Example, Launch, example_of


@triton.jit(warp_level=True)
def attention_rows_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale,
    q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, n_queries, n_keys, dim,
    CAUSAL: tl.constexpr, NEGATIVE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    PART: tl.constexpr, WINDOW: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """`attention_kernel`, of whose BM queries each warp takes its share."""
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block
    attend_queries(
        block, tl.program_id(1), q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale,
        q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, n_queries, n_keys, dim,
        CAUSAL, NEGATIVE, BM, BN, BD, PART, WINDOW, REST, tl.warp_id(), BM // tl.num_warps(),
    )  # fmt: skip


def rows_launch(launch: Launch, rows: int) -> Launch:
    """What a launch of `attention_kernel` computes, so many queries at a time, which divide a program's."""
    return launch._replace(kernel=attention_rows_kernel).on(None, launch.constants["BM"] // rows)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: causal, two heads on one, a length and a dimension that no block divides."""
    q, k, v = (rng.standard_normal((2, heads, 70, 72), np.float32) for heads in (2, 1, 1))
    launch = attention_launch(q, k, v, np.zeros_like(q), causal=True, blocks=Blocks(32, 32, apart=True))
    return example_of(name, rows_launch(launch, 16))
