# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""FlashAttention-2, backward (Dao, arXiv:2307.08691).

Level: user. One program instance takes every `splits`-th block of BN keys of one key head. For each it walks over the
queries that see them, in blocks of BM and for every query head of the group, computes the probabilities anew from the
log-sum-exp of the forward pass, sums dk and dv, and adds to dq in memory, where nobody else does at the same time:
every split has a dq of its own. Before that, `prepare_backward_kernel` computes delta, the sums of do * o, and clears
dq; after it, `sum_splits_kernel` adds the splits' dq up and rounds them to q's dtype.
"""

from __future__ import annotations

import sys

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import (
    Array,
    dtype_name,
    empty,
    is_torch,
    item_size,
    require_arrays,
    require_no_gradient,
    strides_of,
)
from mltriton.kernels.attention import (
    LOG2_E,
    block_at,
    check_results,
    check_shapes,
    check_window,
    head_of,
    scale_of,
    window_of,
)
from mltriton.kernels.attention_backward_sizes import BackwardBlocks, choose_backward_blocks, choose_warp_blocks
from mltriton.kernels.attention_blocks import block_dim
from mltriton.kernels.calls import again, key_of, remember
from mltriton.kernels.launch import Example, Launch, example_of, family_of_warps, stages_on, target_of


@triton.jit
def prepare_backward_kernel(
    do_ptr, o_ptr, delta_ptr, dq_ptr, do_strides, o_strides, n_heads, n_queries, dim, dq_size,
    N_SPLITS: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """delta = sum(do * o) and dq = 0 in all splits, for BM queries of one head; program ids (block of queries, batch *
    heads).
    """
    block = tl.program_id(0)
    sequence = tl.program_id(1).to(tl.int64)
    batch, head = sequence // n_heads, sequence % n_heads
    row = block * BM
    do_block = block_at(head_of(do_ptr, do_strides, batch, head), (n_queries, dim), do_strides[2:], row, BM, BD)
    o_block = block_at(head_of(o_ptr, o_strides, batch, head), (n_queries, dim), o_strides[2:], row, BM, BD)
    do = tl.load(do_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    o = tl.load(o_block, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
    rows = row + tl.arange(0, BM)
    tl.store(delta_ptr + sequence * n_queries + rows, tl.sum(do * o, 1), mask=rows < n_queries)

    dq_base = dq_ptr + sequence * n_queries * dim
    for _ in range(N_SPLITS):
        dq_block = block_at(dq_base, (n_queries, dim), (dim, 1), row, BM, BD)
        tl.store(dq_block, tl.zeros([BM, BD], tl.float32), boundary_check=(0, 1))
        dq_base += dq_size


@triton.jit
def differentiate(
    dk, dv, k, v, k_t, v_t, k_rows, v_rows, k_all, q_block, do_block, dq_block, q_turned, do_turned,
    lse_ptr, delta_ptr, keys, start, end, n_queries, n_keys, dim, sm_scale,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASKED: tl.constexpr, BM: tl.constexpr, BY_KEYS: tl.constexpr,
    PART: tl.constexpr,
):  # fmt: skip
    """Queries [start, end) of one head in blocks of BM for one block of keys; q_block, do_block and dq_block stand at
    `start`. Queries after the last have q = do = 0 and change nothing. With BY_KEYS scores have keys in rows; then
    q_turned and do_turned point to the transposed first blocks, and k_all to the keys for dq. If PART is not 0, scores
    are summed over PART of the dimension at a time, and k_rows and v_rows point to the first parts of keys and values.
    """
    for first in range(start, end, BM):
        rows = first + tl.arange(0, BM)
        lse = tl.load(lse_ptr + rows, mask=rows < n_queries, other=0.0)
        delta = tl.load(delta_ptr + rows, mask=rows < n_queries, other=0.0)
        q = tl.load(q_block, boundary_check=(0, 1), padding_option="zero")
        do = tl.load(do_block, boundary_check=(0, 1), padding_option="zero")
        if BY_KEYS:
            q_t, do_t = tl.advance(q_turned, (0, first)), tl.advance(do_turned, (0, first))
            dk, dv, ds = by_keys(
                dk, dv, k, v, k_rows, v_rows, q, do, q_t, do_t, lse, delta, keys, rows, n_keys, dim, sm_scale,
                CAUSAL, WINDOW, MASKED, PART,
            )  # fmt: skip
            for_dq = tl.load(k_all, boundary_check=(0, 1), padding_option="zero")
        else:
            dk, dv, ds = by_queries(
                dk, dv, k_t, v_t, q, do, lse, delta, keys, rows, n_keys, sm_scale, CAUSAL, WINDOW, MASKED
            )
            for_dq = k
        dq = tl.load(dq_block, boundary_check=(0, 1), padding_option="zero")
        dq = tl.dot(ds, for_dq, dq, input_precision="ieee")
        tl.store(dq_block, dq, boundary_check=(0, 1))
        q_block = tl.advance(q_block, (BM, 0))
        do_block = tl.advance(do_block, (BM, 0))
        dq_block = tl.advance(dq_block, (BM, 0))
    return dk, dv, q_block, do_block, dq_block


@triton.jit
def sees(rows, keys, n_keys, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """Which keys queries see, both given along their dimension of a block."""
    visible = keys < n_keys
    if CAUSAL:
        visible = visible & (keys <= rows)
    if WINDOW > 0:
        visible = visible & (keys > rows - WINDOW)
    return visible


@triton.jit
def by_queries(
    dk, dv, k_t, v_t, q, do, lse, delta, keys, rows, n_keys, sm_scale,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """dk and dv with what one block of queries adds, and ds [queries, keys]."""
    s = tl.dot(q, k_t, input_precision="ieee")
    dp = tl.dot(do, v_t, input_precision="ieee")
    p = tl.exp2(s * (sm_scale * LOG2_E) - (lse * LOG2_E)[:, None])
    if MASKED:
        p = tl.where(sees(rows[:, None], keys[None, :], n_keys, CAUSAL, WINDOW), p, 0.0)
    ds = (p * (dp - delta[:, None]) * sm_scale).to(q.dtype)
    dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="ieee")
    dk = tl.dot(tl.trans(ds), q, dk, input_precision="ieee")
    return dk, dv, ds


@triton.jit
def scores(block, rows, turned, dim, PART: tl.constexpr):
    """The product of `block` and the block at `turned`; where PART is not 0, summed over so much of their common
    dimension at a time, with the parts of `block` at `rows`.
    """
    if PART == 0:
        loaded = tl.load(turned, boundary_check=(0, 1), padding_option="zero")
        return tl.dot(block, loaded, input_precision="ieee")
    total = tl.zeros([rows.type.element_ty.shape[0], turned.type.element_ty.shape[1]], tl.float32)
    for first in tl.range(0, dim, PART, num_stages=1):
        left = tl.load(tl.advance(rows, (0, first)), boundary_check=(0, 1), padding_option="zero")
        right = tl.load(tl.advance(turned, (first, 0)), boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(left, right, total, input_precision="ieee", tiling="horizontal")
    return total


@triton.jit
def by_keys(
    dk, dv, k, v, k_rows, v_rows, q, do, q_turned, do_turned, lse, delta, keys, rows, n_keys, dim, sm_scale,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASKED: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """The same with transposed scores: where warps share out keys, only ds goes from one to another."""
    s = scores(k, k_rows, q_turned, dim, PART)
    p = tl.exp2(s * (sm_scale * LOG2_E) - (lse * LOG2_E)[None, :])
    if MASKED:
        p = tl.where(sees(rows[None, :], keys[:, None], n_keys, CAUSAL, WINDOW), p, 0.0)
    dp = scores(v, v_rows, do_turned, dim, PART)
    ds = (p * (dp - delta[None, :]) * sm_scale).to(q.dtype)
    dv = tl.dot(p.to(do.dtype), do, dv, input_precision="ieee")
    dk = tl.dot(ds, q, dk, input_precision="ieee")
    return dk, dv, tl.trans(ds)


@triton.jit
def attention_backward_kernel(
    do_ptr, q_ptr, k_ptr, v_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, sm_scale,
    do_strides, q_strides, k_strides, v_strides, n_kv_heads, heads_per_kv, n_queries, n_keys, dim, dq_size,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
    BY_KEYS: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """dk and dv of every `num_programs(0)`-th block of BN keys of one key head, and what these keys add to dq; program
    ids (split, batch * kv_heads). dq is one f32 array a split; dq, dk and dv are contiguous.
    """
    splits = tl.num_programs(0)
    sequence = tl.program_id(1).to(tl.int64)
    batch, kv_head = sequence // n_kv_heads, sequence % n_kv_heads
    k_base = head_of(k_ptr, k_strides, batch, kv_head)
    v_base = head_of(v_ptr, v_strides, batch, kv_head)
    dk_base = dk_ptr + sequence * n_keys * dim
    dv_base = dv_ptr + sequence * n_keys * dim
    dq_split = dq_ptr + tl.program_id(0).to(tl.int64) * dq_size
    for key in tl.range(tl.program_id(0) * BN, n_keys, splits * BN):
        k_block = block_at(k_base, (n_keys, dim), k_strides[2:], key, BN, BD)
        v_block = block_at(v_base, (n_keys, dim), v_strides[2:], key, BN, BD)
        k = tl.load(k_block, boundary_check=(0, 1), padding_option="zero")
        v = tl.load(v_block, boundary_check=(0, 1), padding_option="zero")
        k_t, v_t = tl.trans(k), tl.trans(v)
        dk = tl.zeros([BN, BD], tl.float32)
        dv = tl.zeros([BN, BD], tl.float32)
        keys = key + tl.arange(0, BN)

        start = 0
        masked = 0
        end = n_queries
        if CAUSAL:
            start = key // BM * BM
            masked = tl.minimum(tl.cdiv(key + BN, BM) * BM, n_queries)
        if WINDOW > 0:
            end = tl.minimum(n_queries, key + BN + WINDOW - 1)
            masked = tl.minimum(masked, end)
        if key + BN > n_keys:
            masked = end
        far = end
        if WINDOW > 0:
            far = tl.minimum(end, tl.maximum(masked, (key + WINDOW) // BM * BM))
        bounds = start, masked, far, end
        for member in range(heads_per_kv):
            head = kv_head * heads_per_kv + member
            row = (batch * n_kv_heads * heads_per_kv + head) * n_queries
            q_base = head_of(q_ptr, q_strides, batch, head)
            do_base = head_of(do_ptr, do_strides, batch, head)
            dq_base = dq_split + row * dim
            q_block = block_at(q_base, (n_queries, dim), q_strides[2:], start, BM, BD)
            do_block = block_at(do_base, (n_queries, dim), do_strides[2:], start, BM, BD)
            dq_block = block_at(dq_base, (n_queries, dim), (dim, 1), start, BM, BD)
            # A pointer of its own: other warps load other parts of the keys through it.
            k_all = tl.advance(block_at(k_base, (n_keys, dim), k_strides[2:], 0, BN, BD), (key, 0))
            turned, at = (dim, n_queries), (0, 0)
            depth: tl.constexpr = PART if PART > 0 else BD
            q_turned = tl.make_block_ptr(q_base, turned, (q_strides[3], q_strides[2]), at, (depth, BM), (0, 1))
            do_turned = tl.make_block_ptr(do_base, turned, (do_strides[3], do_strides[2]), at, (depth, BM), (0, 1))
            k_rows = block_at(k_base, (n_keys, dim), k_strides[2:], key, BN, depth)
            v_rows = block_at(v_base, (n_keys, dim), v_strides[2:], key, BN, depth)
            for part in tl.static_range(3 if WINDOW > 0 else 2):
                dk, dv, q_block, do_block, dq_block = differentiate(
                    dk, dv, k, v, k_t, v_t, k_rows, v_rows, k_all, q_block, do_block, dq_block, q_turned, do_turned,
                    lse_ptr + row, delta_ptr + row, keys, bounds[part], bounds[part + 1], n_queries, n_keys, dim,
                    sm_scale, CAUSAL, WINDOW, part != 1, BM, BY_KEYS, PART,
                )  # fmt: skip
        dk_block = block_at(dk_base, (n_keys, dim), (dim, 1), key, BN, BD)
        dv_block = block_at(dv_base, (n_keys, dim), (dim, 1), key, BN, BD)
        tl.store(dk_block, dk.to(dk_ptr.dtype.element_ty), boundary_check=(0, 1))
        tl.store(dv_block, dv.to(dv_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def sum_splits_kernel(parts_ptr, dq_ptr, size, N_SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """dq = the sum of N_SPLITS arrays of `size` elements, BLOCK of them; program id (block)."""
    indices = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = indices < size
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(N_SPLITS):
        total += tl.load(parts_ptr + indices, mask=inside, other=0.0)
        parts_ptr += size
    tl.store(dq_ptr + indices, total.to(dq_ptr.dtype.element_ty), mask=inside)


def flash_attention_backward(
    do: Array,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    causal: bool = False,
    sm_scale: float | None = None,
    *,
    window: int | None = None,
    deterministic: bool | None = None,
    target: str | None = None,
) -> tuple[Array, Array, Array]:
    """The gradients dq, dk, dv of sum(do * o), where o = flash_attention(q, k, v, causal, sm_scale, window=window).

    `do` and `o` have q's shape and dtype. `lse` is the natural logarithm of each query's sum of exponentials, float32
    [batch, heads, queries]; `flash_attention_with_lse` gives it with `o`. Any strides; float32 inside. The results are
    contiguous, of the kind and dtype of the arrays. `deterministic`: whether no sum may depend on the order in which
    programs run; None is True for numpy's arrays, and for tensors `torch.are_deterministic_algorithms_enabled()`.
    Otherwise some of dq are added up by atomics where that is faster. `target` is what it runs on ("xe:pvc", say), None
    where the arrays lie. Raises `ArgumentError` for arrays that do not fit.
    """
    arrays, deterministic = (do, q, k, v, o, lse), _is_deterministic(q, deterministic)
    key = key_of(flash_attention_backward, arrays, causal, sm_scale, window, deterministic, target)
    if (made := again(key, arrays)) is not None:
        return made[0], made[1], made[2]
    require_no_gradient("flash_attention_backward", *arrays)
    require_arrays(do=do, q=q, k=k, v=v, o=o)
    check_shapes(q, k, v)
    check_window(q, k, causal, window)
    check_results(do, q, o, lse)
    dq, dk, dv = (empty(x.shape, x) for x in (q, k, v))
    lse = lse.contiguous() if is_torch(lse) else np.ascontiguousarray(lse)
    given = do, q, k, v, o, lse, dq, dk, dv, causal, sm_scale
    launches = _launches(*given, target_of(target, q), window_of(window, k), deterministic=deterministic)
    run = [launch for launch in launches if 0 not in launch.grid]
    for launch in run:
        launch.run()
    if len(run) == len(launches):
        named = {name: x for launch in launches[::-1] for name, x in launch.named().items() if name in SCRATCH}
        remember(key, arrays, (dq, dk, dv), [x for x in named.values() if x is not None and x is not dq], launches)
    return dq, dk, dv


def _is_deterministic(x: Array, asked: bool | None) -> bool:
    """Whether results may not differ from run to run: what was asked for, or what torch asks of its own functions."""
    if asked is not None or not is_torch(x):
        return asked is not False
    return sys.modules["torch"].are_deterministic_algorithms_enabled()


def _launches(
    do: Array, q: Array, k: Array, v: Array, o: Array, lse: Array, dq: Array, dk: Array, dv: Array,
    causal: bool, sm_scale: float | None, target: str | None, window: int, *, deterministic: bool,
) -> list[Launch]:  # fmt: skip
    from mltriton.kernels.attention_backward_added import added_launches, is_added  # They need this module.
    from mltriton.kernels.attention_backward_blocks import block_launches, steps_on
    from mltriton.kernels.attention_backward_shares import in_shares

    if (steps := steps_on(target, q)) is not None:
        if not deterministic and is_added(q, k, causal, window, steps[0]):
            return added_launches(do, q, k, v, o, lse, dq, dk, dv, sm_scale, steps[0], target)
        made = block_launches(do, q, k, v, o, lse, dq, dk, dv, causal, sm_scale, steps, target, window)
        return [made[0], *in_shares(made[1])]
    batch, kv_heads, n_keys, dim = k.shape
    blocks = stages = None
    if (family := family_of_warps(target)) and batch * n_keys:
        blocks = choose_warp_blocks(n_keys, batch * kv_heads, dim, item_size(k), family)
        stages = stages_on(target, STAGE_BLOCKS * blocks.queries * block_dim(dim) * item_size(k))
    launches = backward_launches(do, q, k, v, o, lse, dq, dk, dv, causal, sm_scale, blocks, window)
    return [launch.on(target, blocks and blocks.warps, stages) for launch in launches]


SCRATCH = ("delta_ptr", "lse2_ptr", "dq_ptr", "sums_ptr", "shares_ptr")  # what one launch writes for another
STAGE_BLOCKS = 12  # of queries, and of their gradients, that a step takes from shared memory in one order or another


def backward_launches(
    do: Array, q: Array, k: Array, v: Array, o: Array, lse: Array, dq: Array, dk: Array, dv: Array,
    causal: bool, sm_scale: float | None = None, blocks: BackwardBlocks | None = None, window: int = 0,
) -> list[Launch]:  # fmt: skip
    """The launches that fill dq, dk and dv, in order. `blocks` are chosen when None; `window` is 0 where none is."""
    batch, heads, n_queries, dim = q.shape
    kv_heads, n_keys = k.shape[1:3]
    blocks = blocks or choose_backward_blocks(n_queries, n_keys, batch * kv_heads, causal)
    size = batch * heads * n_queries * dim
    in_place = blocks.splits == 1 and dtype_name(dq) == "float32"
    parts = dq if in_place else empty((blocks.splits, *q.shape), q, "float32")
    delta = empty(q.shape[:3], q, "float32")
    shape = {"BM": blocks.queries, "BD": block_dim(dim)}
    part = min(blocks.part, block_dim(dim))
    prepare = Launch(
        prepare_backward_kernel,
        (triton.cdiv(n_queries, blocks.queries), batch * heads),
        (do, o, delta, parts, strides_of(do), strides_of(o), heads, n_queries, dim, size),
        {"N_SPLITS": blocks.splits, **shape},
    )
    main = Launch(
        attention_backward_kernel,
        (blocks.splits, batch * kv_heads),
        (
            do, q, k, v, lse, delta, parts, dk, dv, scale_of(dim, sm_scale),
            strides_of(do), strides_of(q), strides_of(k), strides_of(v),
            kv_heads, heads // kv_heads, n_queries, n_keys, dim, size,
        ),
        {
            "CAUSAL": bool(causal),
            "WINDOW": window,
            "BN": blocks.keys,
            "BY_KEYS": blocks.warps is not None,
            "PART": part,
            **shape,
        },
    )  # fmt: skip
    block = 4096
    finish = Launch(
        sum_splits_kernel, (triton.cdiv(size, block),), (parts, dq, size), {"N_SPLITS": blocks.splits, "BLOCK": block}
    )
    return [prepare, main] if in_place else [prepare, main, finish]


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: causal, two heads on one, two splits, sizes that no block divides."""
    do, q, k, v, o = (rng.standard_normal((2, heads, 50, 24), np.float32) for heads in (2, 2, 1, 1, 2))
    lse = 10 + rng.standard_normal((2, 2, 50), np.float32)
    results = (np.zeros_like(x) for x in (q, k, v))
    launches = backward_launches(do, q, k, v, o, lse, *results, causal=True, blocks=BackwardBlocks(16, 32, 2))
    for scratch in ("delta_ptr", "dq_ptr"):
        launches[0].named()[scratch][...] = 1.0
    return example_of(name, *launches)
