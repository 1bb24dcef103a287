"""Attention of several new queries per sequence over a cache of keys and values in pages: prefill, whole or by chunks,
beside sequences that decode.

Level: user. Checks the arrays, chooses sizes and launches the kernel of `attention_paged_varlen_kernel.py`.
"""

from __future__ import annotations

import mltriton as triton
from mltriton.kernels.arrays import Array, empty, item_size, require_arrays, require_no_gradient, strides_of
from mltriton.kernels.attention import LEAST_SCALE, scale_of
from mltriton.kernels.attention_blocks import Blocks, block_dim, choose_blocks, choose_blocks_of_warps
from mltriton.kernels.attention_paged import matrix_of
from mltriton.kernels.attention_paged_checks import (
    check_options,
    check_pages,
    check_queries,
    check_shapes,
    check_starts,
)
from mltriton.kernels.attention_paged_varlen_kernel import FEW, paged_attention_varlen_kernel
from mltriton.kernels.calls import again, is_known, key_of, remember
from mltriton.kernels.launch import Launch, family_of_warps, stages_on, target_of
from mltriton.runtime.specialization import ON_HOST, device_of
from mltriton.targets.registry import spec

# Where an engine copies the keys of a step, by target and dimension, of elements of two bytes.
PAGE_BLOCKS: dict[str, dict[int, tuple[Blocks, ...]]] = {
    "cuda:90": {
        64: (Blocks(256, 64, 16, stages=4),),
        128: (Blocks(128, 128, 8, stages=2), Blocks(128, 64, 8, stages=3)),
    }
}
PACKED = 1 << 30  # keys of the only page of packed sequences
MOST_ROWS = 128  # of a program on a CPU, of heads that share their keys
MOST_HEADS = 16  # that share a head of keys in a program


def paged_attention_varlen(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    block_table: Array,
    seq_lens: Array,
    query_starts: Array,
    sm_scale: float | None = None,
    *,
    window: int | None = None,
    alibi_slopes: Array | None = None,
    soft_cap: float | None = None,
    target: str | None = None,
) -> Array:
    """`paged_attention` of several new queries per sequence, which are its last positions: q [all queries, heads, dim],
    packed.

    query_starts [sequences + 1] int32: where the queries of each sequence begin in q, and the last ones end; seq_lens:
    the keys of each, those of its new queries included. Query i of a sequence with n sees all of its keys but the last
    n - 1 - i, and of these the last `window` only. So a prompt may come in chunks, and sequences of one new query, of
    many and of none in one call. All other arguments are as for `paged_attention`; `alibi_slopes` are times (key -
    query's position). Returns [all queries, heads, dim], contiguous, of q's kind and dtype; queries of no sequence are
    undefined. Raises `ArgumentError` for arrays that do not fit.
    """
    function = "paged_attention_varlen"
    arrays = q, k_cache, v_cache, block_table, seq_lens, query_starts, alibi_slopes
    key = key_of(paged_attention_varlen, arrays, sm_scale, window, soft_cap, target)
    if is_known(key) and device_of(q) == ON_HOST:
        _check_tables(function, q, k_cache, block_table, seq_lens, query_starts)
    if (made := again(key, arrays)) is not None:
        return made[0]
    require_arrays(q=q, k_cache=k_cache, v_cache=v_cache)
    check_starts(function, q, query_starts, window)
    check_shapes(q, k_cache, v_cache, block_table, seq_lens, function, query_starts.shape[0] - 1)
    check_options(q, alibi_slopes, soft_cap, None, function)
    require_no_gradient(function, q, k_cache, v_cache, alibi_slopes)
    o = empty(q.shape, q)
    if 0 in o.shape or query_starts.shape[0] == 1:
        return o
    if device_of(q) == ON_HOST:
        _check_tables(function, q, k_cache, block_table, seq_lens, query_starts)
    target = target_of(target, q)
    given = q, k_cache, v_cache, block_table, seq_lens, query_starts, o
    launch = paged_varlen_launch(target, *given, sm_scale, window, alibi_slopes, soft_cap)
    launch.run()
    remember(key, arrays, (o,), (), (launch,))
    return o


def _check_tables(
    function: str, q: Array, k_cache: Array, block_table: Array, seq_lens: Array, query_starts: Array
) -> None:
    check_pages(k_cache, block_table, seq_lens, function)
    check_queries(function, q, query_starts, seq_lens)


def packed_launch(
    target: str | None, q: Array, k: Array, v: Array, o: Array, query_starts: Array, key_starts: Array,
    causal: bool, sm_scale: float | None, window: int | None, lse: Array | None,
) -> Launch | None:  # fmt: skip
    """What `flash_attention_varlen` launches where an engine copies blocks of packed keys; None where none does. Keys
    are those of a single page, in which sequences begin where `key_starts` says.
    """
    given = q, k[None], v[None], None, key_starts, query_starts, o
    launch = paged_varlen_launch(target, *given, sm_scale, window, lse=lse, causal=causal)
    return launch if launch.constants["BOX"] else None


def paged_varlen_launch(
    target: str | None, q: Array, k_cache: Array, v_cache: Array, block_table: Array | None, seq_lens: Array,
    query_starts: Array, o: Array, sm_scale: float | None = None, window: int | None = None,
    alibi_slopes: Array | None = None, soft_cap: float | None = None, blocks: Blocks | None = None,
    *, lse: Array | None = None, causal: bool = True,
) -> Launch:  # fmt: skip
    """What `paged_attention_varlen` launches on a target; `blocks`, of rows and keys, is chosen when None. Without a
    table keys are packed.
    """
    (all_queries, heads, dim), (_, page, kv_heads, _), sequences = q.shape, k_cache.shape, query_starts.shape[0] - 1
    page = PACKED if block_table is None else page
    group = heads // kv_heads
    together = max(n for n in range(1, min(group, MOST_HEADS) + 1) if group % n == 0)
    is_plain = window is None and alibi_slopes is None and soft_cap is None
    blocks = blocks or _blocks(target, q, sequences, together, page, is_plain=is_plain)
    assert blocks.queries >= together
    by_box = _is_box(target, page, dim, blocks, k_cache, v_cache)
    caches = [_rows_of(x, block_table is None) if by_box else strides_of(x) for x in (k_cache, v_cache)]
    scale = scale_of(dim, sm_scale) or LEAST_SCALE
    arguments = (
        q, k_cache, v_cache, block_table, seq_lens, query_starts, alibi_slopes, o, lse, scale, soft_cap,
        strides_of(q), *caches, (0, 0) if block_table is None else strides_of(block_table), *strides_of(seq_lens),
        *strides_of(query_starts), heads, sequences, all_queries,
    )  # fmt: skip
    constants = {
        "PAGE": page, "BOX": by_box, "GROUP": group, "HEADS": together, "BM": blocks.queries, "BN": blocks.keys,
        "BD": block_dim(dim), "DIM": dim, "WINDOW": window or 0, "NEGATIVE": scale < 0,
        "LEVELS": _levels(sequences), "CAUSAL": causal,
    }  # fmt: skip
    grid = all_queries // (blocks.queries // together) + sequences, heads // together
    launch = Launch(paged_attention_varlen_kernel, grid, arguments, constants)
    step_bytes = 2 * 2 * blocks.keys * block_dim(dim) * item_size(q)
    return launch.on(target, blocks.warps, blocks.stages or (stages_on(target, step_bytes) if blocks.warps else None))


def _is_box(target: str | None, page: int, dim: int, blocks: Blocks, *caches: Array) -> bool:
    """Whether the keys of a step are a rectangle of the cache that an engine copies."""
    if target is None or spec(target).tensor_copies is None or page % blocks.keys or dim != block_dim(dim):
        return False
    return all(matrix_of(cache) is not None for cache in caches)


def _rows_of(cache: Array, is_packed: bool) -> tuple[int, ...]:
    """A cache as the kernel takes a matrix; where keys are packed, any row may be the first of a page."""
    matrix = matrix_of(cache)
    assert matrix is not None
    return tuple(matrix._replace(page_rows=1) if is_packed else matrix)[:5]


def _levels(sequences: int) -> int:
    """Steps of a search among so many."""
    return next(level for level in range(1, 32) if FEW.value**level >= sequences)


def _blocks(target: str | None, q: Array, sequences: int, together: int, page: int, *, is_plain: bool) -> Blocks:
    """Rows of a program, and keys of a step: by the rows that a sequence has on average. `is_plain`: nothing but a
    softmax, which leaves registers for the longest steps.
    """
    all_queries, heads, dim = q.shape
    rows = max(16, triton.cdiv(all_queries, sequences) * together)
    family = family_of_warps(target)
    if family is not None and target is not None:
        of_pages = PAGE_BLOCKS.get(spec(target).name, {}).get(block_dim(dim), ()) if item_size(q) == 2 else ()
        for blocks in of_pages if is_plain else of_pages[-1:]:
            if page % blocks.keys == 0 and rows > blocks.queries // 2:
                return blocks
        return choose_blocks_of_warps(rows, dim, item_size(q), family)
    chosen = choose_blocks(triton.cdiv(all_queries, sequences), rows, sequences * heads, causal=True)
    of_all = triton.next_power_of_2(chosen.queries * together)
    return chosen._replace(queries=max(chosen.queries, min(of_all, MOST_ROWS)), keys=128)
