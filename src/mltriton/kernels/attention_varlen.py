# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Attention of sequences of several lengths that lie packed behind each other.

Level: user. A program takes a block of queries of one sequence and head, as `attention.py` has it; where a sequence
begins it reads in memory, so that lanes copy its blocks. Where an engine can copy them,
`attention_paged_varlen.py` launches a kernel that looks up the place of a block.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    dtype_name,
    empty,
    is_torch,
    item_size,
    recorded,
    require_arrays,
    require_no_gradient,
    requires_gradient,
    strides_of,
)
from mltriton.kernels.attention import LEAST_SCALE, attend_queries, check_shapes, constants_of, scale_of
from mltriton.kernels.attention_blocks import Blocks, choose_blocks, choose_blocks_of_warps
from mltriton.kernels.launch import Example, Launch, example_of, family_of_warps, target_of

# Queries of a sequence on average, up to which lanes copy causal keys of few dimensions as fast as an engine, for which
# programs wait at their beginning (H100, D 64: 245 us and 290 at 1024, 726 and 662 at 4096).
SHORT = 1024


@triton.jit
def extent(starts, sequence):
    """Where a sequence begins, and its length."""
    first = tl.load(starts + sequence)
    return first, tl.load(starts + sequence + 1) - first


@triton.jit
def packed_at(ptr, strides, first):
    """A packed array from row `first` on, as one of a single batch: pointer, strides."""
    return ptr + first.to(tl.int64) * strides[0], (0, strides[1], strides[0], strides[2])


@triton.jit
def attention_varlen_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, q_starts, k_starts, sm_scale, q_strides, k_strides, v_strides, o_strides,
    n_heads, heads_per_kv, all_queries, dim,
    CAUSAL: tl.constexpr, NEGATIVE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    PART: tl.constexpr, WINDOW: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """`attend_queries` by program ids (block of queries, head, sequence); lse_ptr: f32 [heads, all queries] or None."""
    block, head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first_query, n_queries = extent(q_starts, sequence)
    first_key, n_keys = extent(k_starts, sequence)
    if block * BM < n_queries:
        lse = lse_ptr
        if lse_ptr is not None:
            lse += head.to(tl.int64) * (all_queries - n_queries) + first_query
        q, o = packed_at(q_ptr, q_strides, first_query), packed_at(o_ptr, o_strides, first_query)
        k, v = packed_at(k_ptr, k_strides, first_key), packed_at(v_ptr, v_strides, first_key)
        attend_queries(
            block, head, q[0], k[0], v[0], o[0], lse, sm_scale, q[1], k[1], v[1], o[1],
            n_heads, heads_per_kv, n_queries, n_keys, dim, CAUSAL, NEGATIVE, BM, BN, BD, PART, WINDOW, REST,
        )  # fmt: skip


def flash_attention_varlen(
    q: Array,
    k: Array,
    v: Array,
    query_starts: Array,
    key_starts: Array,
    longest: int,
    causal: bool = False,
    sm_scale: float | None = None,
    *,
    window: int | None = None,
    target: str | None = None,
) -> Array:
    """`flash_attention` of packed sequences: q [all queries, heads, dim], k and v [all keys, kv_heads, dim].

    query_starts and key_starts [sequences + 1] int32: where each sequence begins, and the last one ends; each has a key
    at least, and up to `longest` queries. `causal` and `window` count from a sequence's beginning. Returns [all
    queries, heads, dim], contiguous, of q's kind and dtype; queries of no sequence are undefined. torch can
    differentiate it. Raises `ArgumentError` for arrays that do not fit.
    """
    if requires_gradient(q, k, v):
        arrays = {"q": q, "k": k, "v": v, "query_starts": query_starts, "key_starts": key_starts}
        options = {"longest": longest, "causal": causal, "sm_scale": sm_scale, "window": window, "target": target}
        return recorded("flash_attention_varlen", arrays, **options)
    return _forward(q, k, v, None, query_starts, key_starts, longest, causal, sm_scale, window, target)


def flash_attention_varlen_with_lse(
    q: Array,
    k: Array,
    v: Array,
    query_starts: Array,
    key_starts: Array,
    longest: int,
    causal: bool = False,
    sm_scale: float | None = None,
    *,
    window: int | None = None,
    target: str | None = None,
) -> tuple[Array, Array]:
    """`flash_attention_varlen` and the natural logarithm of each query's sum of exponentials, float32 [heads, all
    queries]: what `flash_attention_varlen_backward` takes. torch cannot differentiate it: an `ArgumentError`.
    """
    require_no_gradient("flash_attention_varlen_with_lse", q, k, v)
    require_arrays(q=q, k=k, v=v)
    lse = empty(tuple(q.shape[1::-1]), q, "float32")
    return _forward(q, k, v, lse, query_starts, key_starts, longest, causal, sm_scale, window, target), lse


def _forward(
    q: Array, k: Array, v: Array, lse: Array | None, query_starts: Array, key_starts: Array, longest: int,
    causal: bool, sm_scale: float | None, window: int | None, target: str | None,
) -> Array:  # fmt: skip
    require_arrays(q=q, k=k, v=v)
    check_packed("flash_attention_varlen", q, k, v, query_starts, key_starts, causal, window)
    o = empty(q.shape, q)
    if 0 not in o.shape and longest > 0 and query_starts.shape[0] > 1:
        target, given = target_of(target, q), (query_starts, key_starts, longest, causal, sm_scale, window)
        varlen_launch(target, q, k, v, o, *given, lse=lse).run()
    return o


def varlen_launch(
    target: str | None, q: Array, k: Array, v: Array, o: Array, query_starts: Array, key_starts: Array, longest: int,
    causal: bool, sm_scale: float | None = None, window: int | None = None, blocks: Blocks | None = None,
    lse: Array | None = None,
) -> Launch:  # fmt: skip
    """What `flash_attention_varlen` launches on a target; `blocks` is chosen when None."""
    heads, dim, sequences = q.shape[1], q.shape[2], query_starts.shape[0] - 1
    family = family_of_warps(target)
    is_short = causal and dim <= 64 and q.shape[0] <= SHORT * sequences
    if blocks is None and family == "cuda" and not is_short:
        from mltriton.kernels.attention_paged_varlen import packed_launch  # Only some GPUs need it.

        launch = packed_launch(target, q, k, v, o, query_starts, key_starts, causal, sm_scale, window, lse)
        if launch is not None:
            return launch
    if blocks is None and family is not None:
        blocks = choose_blocks_of_warps(longest, dim, item_size(q), family)
    blocks = blocks or choose_blocks(longest, longest, sequences * heads, causal)
    scale = scale_of(dim, sm_scale) or LEAST_SCALE
    strides = [strides_of(x) for x in (q, k, v, o)]
    arguments = q, k, v, o, lse, query_starts, key_starts, scale, *strides, heads, heads // k.shape[1], q.shape[0], dim
    constants = constants_of(blocks, dim, causal, scale, window or 0)
    grid = triton.cdiv(longest, blocks.queries), heads, sequences
    launch = Launch(attention_varlen_kernel, grid, arguments, constants)
    return launch.on(target, blocks.warps, blocks.stages or (2 if blocks.warps else None))


def check_packed(
    function: str, q: Array, k: Array, v: Array, query_starts: Array, key_starts: Array, causal: bool,
    window: int | None,
) -> None:  # fmt: skip
    """Raise `ArgumentError` unless packed arrays, and what says where sequences begin, fit each other."""
    if not q.ndim == k.ndim == v.ndim == 3:
        found = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
        raise ArgumentError(f"{function}: wrong rank", expected="[all, heads, dim]", found=found)
    check_shapes(*(x[None].swapaxes(1, 2) for x in (q, k, v)))
    for name, starts in (("query_starts", query_starts), ("key_starts", key_starts)):
        fits = starts.ndim == 1 and starts.shape[0] == query_starts.shape[0] > 0 and dtype_name(starts) == "int32"
        if is_torch(starts) != is_torch(q) or not fits:
            raise ArgumentError(
                f"{function}: wrong {name}",
                expected="int32 [sequences + 1] of the kind of q, as many of queries as of keys",
                found=f"{type(starts).__name__} {starts.dtype} {tuple(starts.shape)}",
            )
    if window is not None and not (causal and window > 0):
        raise ArgumentError(
            f"{function}: the window does not fit",
            expected="causal, and at least one key",
            found=f"window {window}, causal {causal}",
        )


def check_packed_results(do: Array, q: Array, o: Array, lse: Array) -> None:
    """Raise `ArgumentError` unless what the forward pass gave, and the gradient of its result, fit q."""
    require_arrays(lse=lse)
    wanted = tuple(q.shape), tuple(q.shape), tuple(q.shape[1::-1])
    found = tuple(do.shape), tuple(o.shape), tuple(lse.shape)
    if found != wanted or is_torch(lse) != is_torch(q) or dtype_name(lse) != "float32":
        raise ArgumentError(
            "flash_attention_varlen_backward: the shapes do not fit",
            expected="do {}, o {}, float32 lse {} of the kind of q".format(*wanted),
            found="do {}, o {}, lse {} {}".format(*found, lse.dtype),
        )


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: three sequences, two heads on one."""
    q, k, v = (rng.standard_normal((115, heads, 24), np.float32) for heads in (2, 1, 1))
    starts = np.array([0, 40, 45, 115], np.int32)
    launch = varlen_launch(None, q, k, v, np.zeros_like(q), starts, starts, 70, True, blocks=Blocks(32, 32))
    return example_of(name, launch)
