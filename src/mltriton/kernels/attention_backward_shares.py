# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Gradients of attention's keys by several programs for a block, each of which sums over a share of the queries.

Level: user. Where a GPU runs more programs at a time than there are blocks of keys (heads that share keys, few
sequences), or where causal blocks, of which some take long, would leave it idle at the end. What the programs of a
block have summed up is added in a fixed order.
"""

from __future__ import annotations

import heapq
from functools import cache

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import empty
from mltriton.kernels.attention import block_at
from mltriton.kernels.attention_backward_blocks import (
    Step,
    attention_backward_keys_kernel,
    example_launches,
    gradients_of_keys,
    store_gradients,
)
from mltriton.kernels.gemm_persistent import multiprocessors_of
from mltriton.kernels.launch import Example, Launch, example_of


@triton.jit
def attention_backward_keys_shared_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides,
    n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded, shares_ptr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    SHARES: tl.constexpr,
):  # fmt: skip
    """What `gradients_of_keys` sums up for each share of a block, in f32 at `shares_ptr`; program ids (share, block of
    keys, batch * kv_heads).
    """
    share, block, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    part = (sequence.to(tl.int64) * tl.num_programs(1) + block) * SHARES + share
    gradients_of_keys(
        block, sequence,
        do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, sm_scale,
        do_strides, q_strides, k_strides, v_strides,
        n_sequences, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, padded,
        CAUSAL, WINDOW, BM, BN, BD, None, shares_ptr + part * (2 * BN * BD), share, SHARES,
    )  # fmt: skip


@triton.jit
def add_shares_kernel(
    shares_ptr, dk_ptr, dv_ptr, sm_scale, n_keys, dim,
    SHARES: tl.constexpr, ROWS: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """dk and dv of ROWS keys of what the programs of a block have summed up; program ids (rows of a block, block of
    keys, batch * kv_heads).
    """
    row, block, sequence = tl.program_id(0) * ROWS, tl.program_id(1), tl.program_id(2).to(tl.int64)
    base = shares_ptr + (sequence * tl.num_programs(1) + block) * (SHARES * 2 * BN * BD)
    dk, dv = tl.zeros([ROWS, BD], tl.float32), tl.zeros([ROWS, BD], tl.float32)
    for _ in tl.static_range(SHARES):
        dk += tl.load(block_at(base, (2 * BN, BD), (BD, 1), row, ROWS, BD))
        dv += tl.load(block_at(base, (2 * BN, BD), (BD, 1), BN + row, ROWS, BD))
        base += 2 * BN * BD
    store_gradients(dk, dv, dk_ptr, dv_ptr, sm_scale, sequence, block * BN + row, n_keys, dim)


SHARES = (1, 2, 4, 8)  # programs of a block
# Steps that a program's beginning and end take, with adding up what it leaves, and that one launch more takes. Choices
# are the best of those measured with 4 to 7 (H200, D 128: 32 to 256 blocks of 16 to 512 steps).
COST = 5
ROUNDS = 2  # of blocks, up to which sharing them was measured


@cache
def choose_shares(steps: tuple[int, ...], sequences: int, at_a_time: int) -> int:
    """How many programs share each block, of blocks of so many steps of each sequence, whose programs begin in this
    order, and `at_a_time` run.
    """
    if len(steps) * sequences > ROUNDS * at_a_time:
        return 1

    def time(shares: int) -> float:
        ends = [0.0] * at_a_time
        for each in steps * sequences:
            for _ in range(shares):
                heapq.heapreplace(ends, ends[0] + COST + each / shares)
        return max(ends) + (COST if shares > 1 else 0)

    return min(SHARES, key=time)


def in_shares(launch: Launch) -> list[Launch]:
    """What a launch of `attention_backward_keys_kernel` computes, by programs that share blocks where that is faster;
    programs that compute blocks in turn stay as they are.
    """
    if launch.kernel is not attention_backward_keys_kernel:
        return [launch]
    given, (blocks, sequences) = launch.named(), launch.grid
    queries, step = given["n_queries"], given["BM"]
    steps: list[int] = []
    for key in range(0, blocks * given["BN"], given["BN"]):
        first = key // step * step if given["CAUSAL"] else 0
        end = min(queries, key + given["BN"] + given["WINDOW"] - 1) if given["WINDOW"] else queries
        steps.append(triton.cdiv(max(0, end - first), step) * given["heads_per_kv"])
    shares = choose_shares(tuple(steps), sequences, multiprocessors_of(given["q_ptr"]))
    return shared_launches(launch, shares) if shares > 1 else [launch]


ROWS = 16  # keys of a program that adds shares up


def shared_launches(launch: Launch, shares: int) -> list[Launch]:
    """What a launch of `attention_backward_keys_kernel` computes, by so many programs for each block, and one that adds
    up.
    """
    given, grid = launch.named(), launch.grid
    keys, dim = given["BN"], given["BD"]
    parts = empty((grid[0] * grid[1] * shares, 2, keys, dim), given["q_ptr"], "float32")
    results, rows = (given[name] for name in ("dk_ptr", "dv_ptr", "sm_scale", "n_keys", "dim")), min(ROWS, keys)
    sizes = {"SHARES": shares, "ROWS": rows, "BN": keys, "BD": dim}
    add = Launch(add_shares_kernel, (keys // rows, *grid), (parts, *results), sizes)
    sums = launch._replace(
        kernel=attention_backward_keys_shared_kernel,
        grid=(shares, *grid),
        arguments=(*launch.arguments, parts),
        constants=launch.constants | {"SHARES": shares},
    )
    return [sums, add.on(launch.constants.get("target"))]


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: causal, three heads on one, two blocks by three programs each."""
    found = shared_launches(example_launches(rng, 1, 3, (Step(16, 32), Step(32, 16)))[1], 3)
    found[1].named()["shares_ptr"][...] = rng.standard_normal((6, 2, 32, 32), np.float32)
    return example_of(name, *found)
