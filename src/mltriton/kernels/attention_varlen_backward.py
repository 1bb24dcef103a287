# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Gradients of attention of packed sequences.

Level: user. Where groups of warps share large blocks, programs take a block of one sequence and head, as
`attention_backward_blocks.py` has it, whose arrays they move to where the sequence begins; elsewhere sequences are
differentiated one after another. Nobody adds to what another has stored.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import Array, empty, is_torch, require_arrays, require_no_gradient, strides_of
from mltriton.kernels.attention import scale_of
from mltriton.kernels.attention_backward import flash_attention_backward
from mltriton.kernels.attention_backward_blocks import Step, gradients_of_keys, gradients_of_queries, steps_on
from mltriton.kernels.attention_blocks import block_dim
from mltriton.kernels.attention_varlen import check_packed, check_packed_results, extent, packed_at
from mltriton.kernels.launch import Example, Launch, example_of, target_of


@triton.jit
def padded_start(first, sequence, ROWS: tl.constexpr):
    """Where the rows of a sequence begin that are padded to `ROWS`: behind those of the sequences before it."""
    return (tl.cdiv(first, ROWS) + sequence) * ROWS


@triton.jit
def varlen_backward_queries_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, o_ptr, lse_ptr, dq_ptr, q_starts, k_starts, sm_scale,
    do_strides, q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, all_queries, dim, padded,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, ROWS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """`gradients_of_queries` by program ids (block of queries, head, sequence); dq is [heads, all queries, dim]."""
    block, head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first_query, n_queries = extent(q_starts, sequence)
    first_key, n_keys = extent(k_starts, sequence)
    if block * BM < n_queries:
        do, q = packed_at(do_ptr, do_strides, first_query), packed_at(q_ptr, q_strides, first_query)
        k, v = packed_at(k_ptr, k_strides, first_key), packed_at(v_ptr, v_strides, first_key)
        o, at = packed_at(o_ptr, o_strides, first_query), padded_start(first_query, sequence, ROWS)
        row = head.to(tl.int64) * (all_queries - n_queries) + first_query
        gradients_of_queries(
            block, head, do[0], q[0], k[0], v[0], lse2_ptr + at, delta_ptr + at, o[0], lse_ptr + row,
            dq_ptr + row * dim, sm_scale, do[1], q[1], k[1], v[1], o[1],
            n_heads, heads_per_kv, n_queries, n_keys, dim, padded, CAUSAL, WINDOW, BM, BN, BD,
        )  # fmt: skip


@triton.jit
def varlen_backward_keys_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse2_ptr, delta_ptr, dk_ptr, dv_ptr, q_starts, k_starts, sm_scale,
    do_strides, q_strides, k_strides, v_strides, n_heads, heads_per_kv, all_keys, dim, padded,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, ROWS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """`gradients_of_keys` by program ids (block of keys, kv_head, sequence); dk, dv are [kv_heads, all keys, dim]."""
    block, head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first_query, n_queries = extent(q_starts, sequence)
    first_key, n_keys = extent(k_starts, sequence)
    if block * BN < n_keys:
        do, q = packed_at(do_ptr, do_strides, first_query), packed_at(q_ptr, q_strides, first_query)
        k, v = packed_at(k_ptr, k_strides, first_key), packed_at(v_ptr, v_strides, first_key)
        at = padded_start(first_query, sequence, ROWS)
        row = (head.to(tl.int64) * (all_keys - n_keys) + first_key) * dim
        gradients_of_keys(
            block, head, do[0], q[0], k[0], v[0], lse2_ptr + at, delta_ptr + at, dk_ptr + row, dv_ptr + row, sm_scale,
            do[1], q[1], k[1], v[1], n_heads, n_heads // heads_per_kv, heads_per_kv, n_queries, n_keys, dim, padded,
            CAUSAL, WINDOW, BM, BN, BD,
        )  # fmt: skip


def flash_attention_varlen_backward(
    do: Array,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    query_starts: Array,
    key_starts: Array,
    longest: int,
    causal: bool = False,
    sm_scale: float | None = None,
    *,
    window: int | None = None,
    longest_keys: int | None = None,
    target: str | None = None,
) -> tuple[Array, Array, Array]:
    """The gradients dq, dk, dv of sum(do * o), where o = flash_attention_varlen(q, k, v, ...).

    `do` and `o` have q's shape and dtype; `lse`, float32 [heads, all queries], is what
    `flash_attention_varlen_with_lse` gives with `o`. Sequences have up to `longest_keys` keys, `longest` when None
    and key_starts are query_starts, else as many as there are. The results have the arrays' shapes, kinds and dtypes,
    of what belongs to no sequence 0; no sum depends on the order in which programs run. Raises `ArgumentError` for
    arrays that do not fit.
    """
    require_no_gradient("flash_attention_varlen_backward", do, q, k, v, o, lse)
    require_arrays(do=do, q=q, k=k, v=v, o=o)
    check_packed("flash_attention_varlen_backward", q, k, v, query_starts, key_starts, causal, window)
    check_packed_results(do, q, o, lse)
    alike = longest if _same(query_starts, key_starts) else int(k.shape[0])
    most_keys = alike if longest_keys is None else longest_keys
    target = target_of(target, q)
    if (steps := steps_on(target, q)) is None:
        return _in_turn(do, q, k, v, o, lse, query_starts, key_starts, causal, sm_scale, window, target)
    lse = lse.contiguous() if is_torch(lse) else np.ascontiguousarray(lse)
    dq, dk, dv = (_zeros((x.shape[1], x.shape[0], x.shape[2]), x) for x in (q, k, v))
    given = do, q, k, v, o, lse, dq, dk, dv, query_starts, key_starts, longest, most_keys
    for launch in varlen_backward_launches(*given, causal, sm_scale, window or 0, steps, target):
        if 0 not in launch.grid:
            launch.run()
    dq, dk, dv = (x.swapaxes(0, 1) for x in (dq, dk, dv))
    return dq, dk, dv


def _same(query_starts: Array, key_starts: Array) -> bool:
    """Whether queries and keys surely begin at the same places: torch keeps the same array as another object."""
    if not is_torch(query_starts):
        return key_starts is query_starts
    return query_starts.data_ptr() == key_starts.data_ptr() and query_starts.stride() == key_starts.stride()


def _zeros(shape: tuple[int, ...], like: Array) -> Array:
    made = empty(shape, like)
    made[...] = 0
    return made


def _in_turn(
    do: Array, q: Array, k: Array, v: Array, o: Array, lse: Array, query_starts: Array, key_starts: Array,
    causal: bool, sm_scale: float | None, window: int | None, target: str | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Sequence by sequence; where each begins is asked of the arrays' device."""
    dq, dk, dv = (_zeros(tuple(x.shape), x) for x in (q, k, v))
    starts = map(pairwise, (query_starts.tolist(), key_starts.tolist()))
    for (first, last), (first_key, last_key) in zip(*starts, strict=True):
        if first == last or first_key == last_key:
            continue
        rows, keys = slice(first, last), slice(first_key, last_key)
        own_do, own_q, own_o = (x[rows][None].swapaxes(1, 2) for x in (do, q, o))
        own_k, own_v = (x[keys][None].swapaxes(1, 2) for x in (k, v))
        given = own_do, own_q, own_k, own_v, own_o, lse[:, rows][None]
        found = flash_attention_backward(*given, causal, sm_scale, window=window, target=target)
        for made, part, own in zip((dq, dk, dv), found, (rows, keys, keys), strict=True):
            made[own] = part[0].swapaxes(0, 1)
    return dq, dk, dv


def varlen_backward_launches(
    do: Array, q: Array, k: Array, v: Array, o: Array, lse: Array, dq: Array, dk: Array, dv: Array,
    query_starts: Array, key_starts: Array, longest: int, longest_keys: int,
    causal: bool, sm_scale: float | None, window: int, steps: tuple[Step, Step], target: str | None,
) -> list[Launch]:  # fmt: skip
    """The launches that fill dq [heads, all queries, dim], dk and dv [kv_heads, all keys, dim], in order."""
    (all_queries, heads, dim), (all_keys, kv_heads, _), sequences = q.shape, k.shape, query_starts.shape[0] - 1
    over_queries, over_keys = steps
    rows = over_keys.queries
    padded = (triton.cdiv(all_queries, rows) + sequences) * rows
    lse2, delta = (empty((heads, padded), q, "float32") for _ in range(2))
    scale, arrays = scale_of(dim, sm_scale), (do, q, k, v, lse2, delta)
    strides = [strides_of(x) for x in (do, q, k, v)]
    constants = {"CAUSAL": bool(causal), "WINDOW": window, "ROWS": rows, "BD": block_dim(dim)}
    of_queries = Launch(
        varlen_backward_queries_kernel,
        (triton.cdiv(longest, over_keys.queries), heads, sequences),
        (
            *arrays, o, lse, dq, query_starts, key_starts, scale, *strides, strides_of(o),
            heads, heads // kv_heads, all_queries, dim, padded,
        ),
        constants | {"BM": over_keys.queries, "BN": over_keys.keys},
    )  # fmt: skip
    of_keys = Launch(
        varlen_backward_keys_kernel,
        (triton.cdiv(longest_keys, over_queries.keys), kv_heads, sequences),
        (
            *arrays, dk, dv, query_starts, key_starts, scale, *strides,
            heads, heads // kv_heads, all_keys, dim, padded,
        ),
        constants | {"BM": over_queries.queries, "BN": over_queries.keys},
    )  # fmt: skip
    pairs = (of_queries, over_keys), (of_keys, over_queries)
    return [launch.on(target, step.warps, step.stages) for launch, step in pairs]


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: three sequences, two heads on one, causal."""
    do, q, k, v, o = (rng.standard_normal((75, heads, 24), np.float32) for heads in (2, 2, 1, 1, 2))
    lse = 10 + rng.standard_normal((2, 75), np.float32)
    dq, dk, dv = (np.zeros((x.shape[1], 75, 24), np.float32) for x in (q, k, v))
    starts = np.array([0, 30, 35, 75], np.int32)
    launches = varlen_backward_launches(
        do, q, k, v, o, lse, dq, dk, dv, starts, starts, 40, 40, True, None, 0, (Step(16, 32), Step(32, 16)), None
    )
    for scratch in ("lse2_ptr", "delta_ptr"):
        launches[0].named()[scratch][...] = 1.0
    return example_of(name, *launches)
