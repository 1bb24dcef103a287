"""What arrays and options of `paged_attention` and `paged_attention_varlen` must be.

Level: user. Guarantees: what passes fits the kernels; mistakes are an `ArgumentError` that says what was expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    dtype_name,
    is_torch,
    number,
    require_count,
    require_one_kind,
    strides_of,
)

Table = np.ndarray[Any, np.dtype[np.int32]]


def check_shapes(
    q: Array, k_cache: Array, v_cache: Array, block_table: Array, seq_lens: Array,
    function: str = "paged_attention", sequences: int | None = None,
) -> None:  # fmt: skip
    """Raise `ArgumentError` unless the arrays fit each other and the kernels; each query is a sequence when None."""
    require_one_kind(q=q, block_table=block_table, seq_lens=seq_lens)
    found = f"q {tuple(q.shape)}, k_cache {tuple(k_cache.shape)}, v_cache {tuple(v_cache.shape)}, {dtype_name(q)}"
    if q.ndim != 3 or k_cache.ndim != 4 or v_cache.ndim != 4:
        raise ArgumentError(
            f"{function}: wrong rank",
            expected="q [queries, heads, dim], caches [pages, page_size, kv_heads, dim]",
            found=found,
        )
    if k_cache.shape != v_cache.shape or q.shape[2] != k_cache.shape[3]:
        raise ArgumentError(
            f"{function}: the shapes do not fit", expected="caches of one shape and of q's dim", found=found
        )
    if k_cache.shape[2] == 0 or q.shape[1] % k_cache.shape[2]:
        raise ArgumentError(f"{function}: kv_heads must divide heads", expected="heads % kv_heads == 0", found=found)
    if k_cache.shape[1] == 0 or not 1 <= q.shape[2] <= 256:
        raise ArgumentError(
            f"{function}: unsupported size", expected="at least one key in a page, dim 1 to 256", found=found
        )
    if dtype_name(q) not in ("float16", "bfloat16", "float32"):
        raise ArgumentError(f"{function}: unsupported dtype", expected="float16, bfloat16 or float32", found=found)
    if sequences is None:
        sequences = q.shape[0]
    tables = f"block_table {tuple(block_table.shape)} {dtype_name(block_table)}, "
    tables += f"seq_lens {tuple(seq_lens.shape)} {dtype_name(seq_lens)}"
    if block_table.ndim != 2 or tuple(seq_lens.shape) != (sequences,) or block_table.shape[0] != sequences:
        raise ArgumentError(
            f"{function}: the tables do not fit",
            expected=f"block_table [{sequences}, max_pages], seq_lens [{sequences}]",
            found=tables,
        )
    if {dtype_name(block_table), dtype_name(seq_lens)} != {"int32"}:
        raise ArgumentError(f"{function}: wrong dtype of a table", expected="int32", found=tables)


def check_options(
    q: Array, alibi_slopes: Array | None, soft_cap: float | None, splits: int | None, function: str = "paged_attention"
) -> None:
    """Raise `ArgumentError` unless the optional arguments fit."""
    if alibi_slopes is not None:
        require_one_kind(q=q, alibi_slopes=alibi_slopes)
        found = f"{tuple(alibi_slopes.shape)} {dtype_name(alibi_slopes)}, strides {strides_of(alibi_slopes)}"
        if tuple(alibi_slopes.shape) != (q.shape[1],) or dtype_name(alibi_slopes) != "float32":
            raise ArgumentError(
                f"{function}: alibi_slopes do not fit", expected=f"({q.shape[1]},) float32", found=found
            )
        if strides_of(alibi_slopes) != (1,):
            raise ArgumentError(f"{function}: alibi_slopes must be contiguous", expected="strides (1,)", found=found)
    if soft_cap is not None and not number("soft_cap", soft_cap) > 0:
        raise ArgumentError(f"{function}: soft_cap must be positive", expected="more than 0", found=str(soft_cap))
    if splits is not None:
        require_count("paged_attention: splits", splits)


def check_pages(k_cache: Array, block_table: Array, seq_lens: Array, function: str = "paged_attention") -> None:
    """Raise `ArgumentError` unless every key of every sequence lies in a page of the cache."""
    lens, table = (_in_numpy(x) for x in (seq_lens, block_table))
    pages, page = k_cache.shape[:2]
    capacity = table.shape[1] * page
    if lens.min() < 0 or lens.max() > capacity:
        raise ArgumentError(
            f"{function}: a sequence's length is out of range",
            expected=f"0 to {capacity}, which is max_pages * page_size",
            found=f"{lens.min()} to {lens.max()}",
        )
    # As unsigned numbers, so that one comparison finds negative ones, too. Entries that are not used may be anything.
    entries = table.view(np.uint32)
    if entries.max(initial=0) < pages:
        return
    wrong = np.argwhere(entries >= pages)
    wrong = wrong[wrong[:, 1] * page < lens[wrong[:, 0]]]
    if len(wrong):
        sequence, entry = wrong[0]
        raise ArgumentError(
            f"{function}: a sequence has a page that the cache has not",
            expected=f"pages 0 to {pages - 1}",
            found=f"{table[sequence, entry]} at block_table[{sequence}, {entry}]",
        )


def check_starts(function: str, q: Array, query_starts: Array, window: int | None) -> None:
    """Raise `ArgumentError` unless `query_starts` can say where sequences begin, and a window has a key."""
    require_one_kind(q=q, query_starts=query_starts)
    if query_starts.ndim != 1 or query_starts.shape[0] == 0 or dtype_name(query_starts) != "int32":
        raise ArgumentError(
            f"{function}: wrong query_starts",
            expected="int32 [sequences + 1]",
            found=f"{dtype_name(query_starts)} {tuple(query_starts.shape)}",
        )
    if window is not None:
        require_count(f"{function}: window", window)


def check_queries(function: str, q: Array, query_starts: Array, seq_lens: Array) -> None:
    """Raise `ArgumentError` unless sequences follow each other in q, each with a key for each of its queries."""
    starts, lens = (_in_numpy(x) for x in (query_starts, seq_lens))
    counts = np.diff(starts)
    if starts[0] < 0 or starts[-1] > q.shape[0] or (counts < 0).any():
        raise ArgumentError(
            f"{function}: query_starts are out of range",
            expected=f"0 to {q.shape[0]}, none smaller than the one before",
            found=f"{starts.tolist()}",
        )
    if (lens < counts).any():
        sequence = int(np.argmax(lens < counts))
        raise ArgumentError(
            f"{function}: a sequence has fewer keys than queries",
            expected=f"seq_lens[{sequence}] of {counts[sequence]} or more",
            found=f"{lens[sequence]}",
        )


def _in_numpy(x: Array) -> Table:
    """The same memory as a numpy array."""
    return x.numpy() if is_torch(x) else x
