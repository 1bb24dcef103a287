# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""FlashAttention-2, forward (Dao, arXiv:2307.08691).

Level: user. One program instance takes BM queries of one head and walks over the keys in blocks of BN with a running
row maximum and sum. Blocks in which every key counts are done without masks; the last block and, for causal
attention, the blocks on the diagonal are masked. There is a loop for each kind; on a CPU one for both kinds of f32,
with a branch around the mask: it takes as long and is a third less to compile. (A mask of its own is 5 percent of a
step of narrow elements, and windows have too many of them.) `attention_backward` has the gradients; they need the
logarithm of each query's sum of exponentials, which the kernel stores where it is given an array for it.
"""

from __future__ import annotations

import math
from typing import Any

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
    number,
    recorded,
    require_arrays,
    require_no_gradient,
    requires_gradient,
    strides_of,
)
from mltriton.kernels.attention_blocks import (
    Blocks,
    block_dim,
    blocks_on,
    choose_blocks,
    choose_narrow_blocks,
    parts_of_dim,
    warps_on,
)
from mltriton.kernels.calls import Key, again, key_of, remember
from mltriton.kernels.launch import Example, Launch, example_of, target_of
from mltriton.targets.registry import spec

LOG2_E = tl.constexpr(1.4426950408889634)
LEAST = tl.constexpr(-3.4e38)  # above the -inf of a block of which a query sees nothing


@triton.jit
def visible_scores(s, first, rows, n_keys, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, HIDDEN: tl.constexpr):
    """Scores of keys from `first` on, HIDDEN where a query does not see the key. If WINDOW is not 0, it sees the last
    WINDOW of the keys that CAUSAL shows it; maybe none of a block.
    """
    keys = first + tl.arange(0, s.shape[1])
    if CAUSAL:
        visible = keys[None, :] <= tl.minimum(rows, n_keys - 1)[:, None]
    else:
        visible = keys[None, :] < n_keys
    if WINDOW > 0:
        visible = visible & (keys[None, :] > rows[:, None] - WINDOW)
    return tl.where(visible, s, HIDDEN)


@triton.jit
def attend(
    acc, l_i, m_i, q, q_block, k_block, v_block, rows, start, end, masked_from, n_keys, dim, scale,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASKED: tl.constexpr, NEGATIVE: tl.constexpr, BN: tl.constexpr,
    PART: tl.constexpr, more, rest,
):  # fmt: skip
    """Keys [start, end) in blocks of BN for one block of queries; k_block and v_block stand at `start`. All of them are
    MASKED or none, or those from `masked_from` on if that is None. Scores are in units of log2; `scale`, which is
    positive, belongs to -s if NEGATIVE, so that the largest s stays it. If PART is not 0, they are summed over PART of
    the dimension at a time, and q_block and k_block are of such parts. `more` has sums over what a dimension has beyond
    that of `acc`, of the queries, and the keys and values from the first on, in `rest`.
    """
    hidden = float("inf") if NEGATIVE else -float("inf")
    for first in range(start, end, BN):
        if PART == 0:
            k = tl.load(k_block, boundary_check=(0, 1), padding_option="zero")
            s = tl.dot(q, k, input_precision="ieee")
            if rest is not None:
                k = tl.load(tl.advance(rest[1], (0, first)), boundary_check=(0, 1), padding_option="zero")
                s = tl.dot(rest[0], k, s, input_precision="ieee")
        else:
            s = tl.zeros([rows.shape[0], BN], tl.float32)
            for part in tl.range(0, dim, PART, num_stages=1):
                q_part = tl.load(tl.advance(q_block, (0, part)), boundary_check=(0, 1), padding_option="zero")
                k_part = tl.load(tl.advance(k_block, (part, 0)), boundary_check=(0, 1), padding_option="zero")
                s = tl.dot(q_part, k_part, s, input_precision="ieee", tiling="horizontal")
        if first >= masked_from if MASKED is None else MASKED:
            s = visible_scores(s, first, rows, n_keys, CAUSAL, WINDOW, hidden)
        if NEGATIVE:
            s = -s
        m_new = tl.maximum(m_i, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee", tiling="horizontal")
        if rest is not None:
            v = tl.load(tl.advance(rest[2], (first, 0)), boundary_check=(0, 1), padding_option="zero")
            more = tl.dot(p.to(v.dtype), v, more * alpha[:, None], input_precision="ieee")
        m_i = m_new
        k_block = tl.advance(k_block, (0, BN))
        v_block = tl.advance(v_block, (BN, 0))
    return acc, more, l_i, m_i, k_block, v_block


@triton.jit
def head_of(ptr, strides, batch, head):
    """Where the matrix of a head begins in an array [batch, heads, rows, dim]."""
    return ptr + batch * strides[0] + head * strides[1]


@triton.jit
def block_at(base, sizes, strides, row, ROWS: tl.constexpr, BD: tl.constexpr, FIRST=0):
    """A pointer to `ROWS` rows from `row` on of a matrix, and BD columns from FIRST on."""
    return tl.make_block_ptr(base, sizes, strides, (row, FIRST), (ROWS, BD), (1, 0))


@triton.jit
def attend_queries(
    block, sequence, q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale,
    q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, n_queries, n_keys, dim,
    CAUSAL: tl.constexpr, NEGATIVE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    PART: tl.constexpr, WINDOW: tl.constexpr, REST=0, warp=0, ROWS=0,
):  # fmt: skip
    """o = softmax(q k^T * sm_scale) v for a block of BM queries of one of batch * heads sequences; a causal block that
    lies in front of the first has no keys. If ROWS is not 0, for the warp's ROWS of these. The dimension of a head is
    up to BD + REST; with REST, PART is 0.

    lse_ptr: where the natural logarithms of the sums of exponentials go, f32 [batch, heads, queries]; None for nowhere.
    """
    batch = (sequence // n_heads).to(tl.int64)
    head = (sequence % n_heads).to(tl.int64)
    kv_head = head // heads_per_kv
    depth: tl.constexpr = PART if PART > 0 else BD
    taken: tl.constexpr = ROWS if ROWS > 0 else BM
    top = block * BM + warp * ROWS if ROWS > 0 else block * BM
    q_base, o_base = head_of(q_ptr, q_strides, batch, head), head_of(o_ptr, o_strides, batch, head)
    q_block = block_at(q_base, (n_queries, dim), q_strides[2:], top, taken, depth)
    start = tl.maximum(0, block * BM - WINDOW + 1) // BN * BN if WINDOW > 0 else 0
    k_base = head_of(k_ptr, k_strides, batch, kv_head)
    k_block = tl.make_block_ptr(k_base, (dim, n_keys), (k_strides[3], k_strides[2]), (0, start), (depth, BN), (0, 1))
    v_base = head_of(v_ptr, v_strides, batch, kv_head)
    v_block = block_at(v_base, (n_keys, dim), v_strides[2:], start, BN, BD)
    o_block = block_at(o_base, (n_queries, dim), o_strides[2:], top, taken, BD)

    rows = top + tl.arange(0, taken)
    scale = (-sm_scale if NEGATIVE else sm_scale) * LOG2_E
    m_i = tl.full([taken], LEAST if WINDOW > 0 else -float("inf"), tl.float32)
    l_i = tl.zeros([taken], tl.float32)
    acc = tl.zeros([taken, BD], tl.float32)
    q = tl.load(q_block, boundary_check=(0, 1), padding_option="zero") if PART == 0 else None
    more, rest = None, None
    if REST > 0:
        more = tl.zeros([taken, REST], tl.float32)
        more_q = block_at(q_base, (n_queries, dim), q_strides[2:], top, taken, REST, BD)
        more_k = tl.make_block_ptr(k_base, (dim, n_keys), (k_strides[3], k_strides[2]), (BD, 0), (REST, BN), (0, 1))
        more_v = block_at(v_base, (n_keys, dim), v_strides[2:], 0, BN, REST, BD)
        rest = tl.load(more_q, boundary_check=(0, 1), padding_option="zero"), more_k, more_v

    end = n_keys
    unmasked = n_keys // BN * BN
    if CAUSAL:
        end = tl.minimum(n_keys, (block + 1) * BM)
        unmasked = tl.maximum(0, tl.minimum(unmasked, block * BM // BN * BN))
    if WINDOW > 0:
        inside = tl.minimum(unmasked, tl.cdiv(tl.maximum(0, (block + 1) * BM - WINDOW), BN) * BN)
        bounds, masked = (start, inside, unmasked, end), (True, False, True)
    elif tl.target_info.is_cpu() and q_ptr.dtype.element_ty == tl.float32:
        bounds, masked = (start, end), (None,)
    else:
        bounds, masked = (start, unmasked, end), (False, True)
    for part in tl.static_range(len(masked)):
        acc, more, l_i, m_i, k_block, v_block = attend(
            acc, l_i, m_i, q, q_block, k_block, v_block, rows, bounds[part], bounds[part + 1], unmasked, n_keys,
            dim, scale, CAUSAL, WINDOW, masked[part], NEGATIVE, BN, PART, more, rest,
        )  # fmt: skip
    tl.store(o_block, (acc * (1.0 / l_i)[:, None]).to(o_ptr.dtype.element_ty), boundary_check=(0, 1))
    if REST > 0:
        o_block = block_at(o_base, (n_queries, dim), o_strides[2:], top, taken, REST, BD)
        tl.store(o_block, (more * (1.0 / l_i)[:, None]).to(o_ptr.dtype.element_ty), boundary_check=(0, 1))
    if lse_ptr is not None:
        lse = lse_ptr + sequence.to(tl.int64) * n_queries + rows
        tl.store(lse, (m_i + tl.log2(l_i)) / LOG2_E, mask=(rows >= 0) & (rows < n_queries))


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale,
    q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, n_queries, n_keys, dim,
    CAUSAL: tl.constexpr, NEGATIVE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    PART: tl.constexpr, WINDOW: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """`attend_queries` by program ids (block of queries, batch * heads)."""
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block  # the longest first, so that the last to finish are short
    attend_queries(
        block, tl.program_id(1), q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale,
        q_strides, k_strides, v_strides, o_strides, n_heads, heads_per_kv, n_queries, n_keys, dim,
        CAUSAL, NEGATIVE, BM, BN, BD, PART, WINDOW, REST,
    )  # fmt: skip


def flash_attention(
    q: Array,
    k: Array,
    v: Array,
    causal: bool = False,
    sm_scale: float | None = None,
    *,
    window: int | None = None,
    target: str | None = None,
) -> Array:
    """softmax(q k^T * sm_scale) v with q [batch, heads, queries, dim], k and v [batch, kv_heads, keys, dim]; any
    strides; f16, bf16 or f32.

    `kv_heads` divides `heads` (grouped queries). `causal` lets query i see keys 0 to i, and `window` the last so many
    of these only (a sliding window; there are no fewer keys than queries then). `sm_scale` is 1 / sqrt(dim) when None.
    float32 inside. `target` is what it runs on ("xe:pvc", say), None where the arrays lie. Returns [batch, heads,
    queries, dim], contiguous, of the same kind and dtype; torch can differentiate it. Raises `ArgumentError` for
    arrays and windows that do not fit and for dim above 256.
    """
    key = key_of(flash_attention, (q, k, v), causal, sm_scale, window, target)
    if (made := again(key, (q, k, v))) is not None:
        return made[0]
    if requires_gradient(q, k, v):
        options = {"causal": causal, "sm_scale": sm_scale, "window": window, "target": target}
        return recorded("flash_attention", {"q": q, "k": k, "v": v}, **options)
    require_arrays(q=q, k=k, v=v)
    return _forward(key, q, k, v, None, causal, sm_scale, target, window)


def flash_attention_with_lse(
    q: Array,
    k: Array,
    v: Array,
    causal: bool = False,
    sm_scale: float | None = None,
    *,
    window: int | None = None,
    target: str | None = None,
) -> tuple[Array, Array]:
    """`flash_attention` and the natural logarithm of each query's sum of exponentials, float32 [batch, heads, queries]:
    what `flash_attention_backward` takes. torch cannot differentiate it: an `ArgumentError` where it is to.
    """
    key = key_of(flash_attention_with_lse, (q, k, v), causal, sm_scale, window, target)
    if (made := again(key, (q, k, v))) is not None:
        return made[0], made[1]
    require_no_gradient("flash_attention_with_lse", q, k, v)
    require_arrays(q=q, k=k, v=v)
    lse = empty(q.shape[:3], q, "float32")
    return _forward(key, q, k, v, lse, causal, sm_scale, target, window), lse


def _forward(
    key: Key | None, q: Array, k: Array, v: Array, lse: Array | None, causal: bool, sm_scale: float | None,
    target: str | None, window: int | None,
) -> Array:  # fmt: skip
    check_shapes(q, k, v)
    check_window(q, k, causal, window)
    o = empty(q.shape, q)
    if 0 not in o.shape:
        target = target_of(target, q)
        launch = launch_on(target, q, k, v, o, causal, sm_scale, lse, window)
        launch.run()
        remember(key, (q, k, v), (o,) if lse is None else (o, lse), (), (launch,))
    return o


def launch_on(
    target: str | None, q: Array, k: Array, v: Array, o: Array, causal: bool,
    sm_scale: float | None = None, lse: Array | None = None, window: int | None = None,
) -> Launch:  # fmt: skip
    """What `flash_attention` launches on a target: by programs that compute blocks in turn where a warp may copy for
    others, of two groups of warps or more (`passes/ttg/specialize_warps.py`); in rows where blocks say so.
    """
    blocks = blocks_on(target, q)
    if blocks is None:
        problem = q.shape[2], k.shape[2], q.shape[0] * q.shape[1], causal
        is_wide = item_size(q) > 2
        blocks = choose_blocks(*problem) if is_wide else choose_narrow_blocks(*problem, q.shape[3], window)
    launch = attention_launch(q, k, v, o, causal, sm_scale, blocks, lse, window)
    if blocks.rows:
        from mltriton.kernels.attention_rows import rows_launch  # Only such blocks need it.

        return rows_launch(launch, blocks.rows).on(target)
    launch = launch.on(target, *warps_on(target, q, blocks))
    groups = spec(target).warp_groups if target is not None else None
    if groups is None or launch.constants.get("num_warps", 0) < 2 * groups.warps:
        return launch
    from mltriton.kernels.attention_persistent import persistent_launch  # Only such targets need it.

    return persistent_launch(launch) or launch


def attention_launch(
    q: Array, k: Array, v: Array, o: Array, causal: bool, sm_scale: float | None = None, blocks: Blocks | None = None,
    lse: Array | None = None, window: int | None = None,
) -> Launch:  # fmt: skip
    """The launch that computes o = softmax(q k^T * sm_scale) v, and lse where there is an array for it; `blocks` is
    chosen when None.
    """
    batch, heads, n_queries, dim = q.shape
    n_keys = k.shape[2]
    blocks = blocks or choose_blocks(n_queries, n_keys, batch * heads, causal)
    scale = scale_of(dim, sm_scale) or LEAST_SCALE
    arguments = (
        q, k, v, o, lse, scale,
        strides_of(q), strides_of(k), strides_of(v), strides_of(o),
        heads, heads // k.shape[1], n_queries, n_keys, dim,
    )  # fmt: skip
    constants = constants_of(blocks, dim, causal, scale, window_of(window, k))
    return Launch(attention_kernel, (triton.cdiv(n_queries, blocks.queries), batch * heads), arguments, constants)


def constants_of(blocks: Blocks, dim: int, causal: bool, scale: float, window: int) -> dict[str, Any]:
    """What `attend_queries` is compiled for; `window` is 0 where there is none."""
    first, rest = parts_of_dim(dim) if blocks.apart else (block_dim(dim), 0)
    return {
        "CAUSAL": bool(causal), "NEGATIVE": scale < 0, "BM": blocks.queries, "BN": blocks.keys, "BD": first,
        "PART": blocks.part, "WINDOW": window, "REST": rest,
    }  # fmt: skip


def window_of(window: int | None, k: Array) -> int:
    """What kernels are compiled for: 0 where every query sees all keys before it."""
    return window if window is not None and window < k.shape[2] else 0


LEAST_SCALE = 1e-30  # in place of 0: all scores are 0 but those that a mask makes infinite


def scale_of(dim: int, sm_scale: float | None) -> float:
    """`sm_scale`, or what it is by default."""
    return 1.0 / math.sqrt(dim) if sm_scale is None else number("sm_scale", sm_scale)


def check_shapes(q: Array, k: Array, v: Array) -> None:
    """Raise `ArgumentError` unless the arrays fit each other and the kernels."""
    found = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}, {q.dtype}"
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ArgumentError("flash_attention: wrong rank", expected="[batch, heads, sequence, dim]", found=found)
    if k.shape != v.shape or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        raise ArgumentError(
            "flash_attention: the shapes do not fit",
            expected="k and v [batch, kv_heads, keys, dim] of q's batch and dim",
            found=found,
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ArgumentError(
            "flash_attention: kv_heads must divide heads", expected="heads % kv_heads == 0", found=found
        )
    if k.shape[2] == 0 or not 1 <= q.shape[3] <= 256:
        raise ArgumentError("flash_attention: unsupported size", expected="at least one key, dim 1 to 256", found=found)
    if dtype_name(q) not in ("float16", "bfloat16", "float32"):
        raise ArgumentError("flash_attention: unsupported dtype", expected="float16, bfloat16 or float32", found=found)


def check_window(q: Array, k: Array, causal: bool, window: int | None) -> None:
    """Raise `ArgumentError` for a window that no query has, or that some see no key through."""
    if window is not None and not (causal and window > 0 and q.shape[2] <= k.shape[2]):
        raise ArgumentError(
            "flash_attention: the window does not fit",
            expected="causal, at least one key, and a key for each query",
            found=f"window {window}, causal {causal}, {q.shape[2]} queries, {k.shape[2]} keys",
        )


def check_results(do: Array, q: Array, o: Array, lse: Array) -> None:
    """Raise `ArgumentError` unless what the forward pass gave, and the gradient of its result, fit q."""
    require_arrays(lse=lse)
    if not do.shape == o.shape == q.shape:
        raise ArgumentError(
            "flash_attention_backward: the shapes do not fit",
            expected=f"do and o of q's shape {tuple(q.shape)}",
            found=f"do {tuple(do.shape)}, o {tuple(o.shape)}",
        )
    rows = tuple(q.shape[:3])
    if is_torch(lse) != is_torch(q) or tuple(lse.shape) != rows or dtype_name(lse) != "float32":
        raise ArgumentError(
            "flash_attention_backward: wrong lse",
            expected=f"float32 {rows} of the kind of q",
            found=f"{type(lse).__name__} {lse.dtype} {tuple(lse.shape)}",
        )


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: causal, two heads on one, a length and a dimension that no block divides."""
    q, k, v = (rng.standard_normal((2, heads, 70, 24), np.float32) for heads in (2, 1, 1))
    return example_of(name, attention_launch(q, k, v, np.zeros_like(q), causal=True, blocks=Blocks(32, 32)))
