"""Whole kernels as users write them, launched on this machine's CPU: shapes of tutorials and of kernel libraries."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@triton.jit
def softmax_kernel(
    out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr, num_stages: tl.constexpr
):
    start = tl.program_id(0)
    step = tl.num_programs(0)
    for row in tl.range(start, n_rows, step, num_stages=num_stages):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < n_cols
        x = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * out_stride + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)


def test_fused_softmax_over_a_persistent_grid():
    x = normal(37, 100)
    out = np.empty_like(x)
    softmax_kernel[(4,)](out, x, x.strides[0] // 4, out.strides[0] // 4, 37, 100, BLOCK=128, num_stages=2)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 2}, num_stages=2, num_warps=2),
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4}),
    ],
    key=["M", "N", "K"],
    warmup=1,
    rep=1,
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)

    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float32)

    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, c, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


@pytest.mark.parametrize("activation", ["", "leaky_relu"])
def test_tuned_matmul_with_an_activation(activation):
    a, b = normal(70, 50), normal(50, 90)
    c = np.empty((70, 90), np.float32)

    def grid(meta):
        return (triton.cdiv(70, meta["BLOCK_M"]) * triton.cdiv(90, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, c, 70, 90, 50, 50, 1, 90, 1, 90, 1, ACTIVATION=activation)
    expected = a.astype(np.float64) @ b
    if activation:
        expected = np.where(expected >= 0, expected, 0.01 * expected)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def test_seeded_dropout():
    x = np.ones(5000, np.float32)
    first, again, other = (np.empty_like(x) for _ in range(3))
    for out, seed in ((first, 7), (again, 7), (other, 8)):
        dropout_kernel[(triton.cdiv(5000, 256),)](x, out, 5000, 0.25, seed, BLOCK=256)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert 0.2 < (first == 0).mean() < 0.3
    np.testing.assert_allclose(first[first != 0], 1 / 0.75, rtol=1e-6)


@triton.jit
def layer_norm_kernel(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    X += row * stride
    Y += row * stride
    _mean = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        _mean += tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    rstd = 1 / tl.sqrt(tl.sum(_var, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        x_hat = (tl.load(X + cols, mask=mask, other=0.0).to(tl.float32) - mean) * rstd
        tl.store(Y + cols, x_hat * tl.load(W + cols, mask=mask) + tl.load(B + cols, mask=mask), mask=mask)


def test_layer_norm():
    x, w, b = normal(9, 150), normal(150), normal(150)
    y, mean, rstd = np.empty_like(x), np.empty(9, np.float32), np.empty(9, np.float32)
    layer_norm_kernel[(9,)](x, y, w, b, mean, rstd, 150, 150, 1e-5, BLOCK=64)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, wide.mean(1), rtol=1e-4, atol=1e-6)


@triton.jit
def column_sums_kernel(X, Sums, Locks, Count, rows, N, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows are added to one of GROUPS partial sums, each under a lock."""
    row = tl.program_id(0)
    lock_id = row % GROUPS
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    partial = tl.load(X + row * N + cols, mask=mask, other=0.0)
    Locks += lock_id
    Count += lock_id
    target = Sums + lock_id * N + cols
    while tl.atomic_cas(Locks, 0, 1) == 1:
        pass
    if tl.load(Count) == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial += tl.load(target, mask=mask)
    tl.store(target, partial, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Locks, 0)


def test_partial_sums_under_locks():
    x = normal(64, 20)
    sums, locks, count = np.full((4, 20), np.nan, np.float32), np.zeros(4, np.int32), np.zeros(4, np.int32)
    column_sums_kernel[(64,)](x, sums, locks, count, 64, 20, GROUPS=4, BLOCK=32)
    np.testing.assert_allclose(sums.sum(0), x.astype(np.float64).sum(0), rtol=1e-4, atol=1e-4)
    assert locks.sum() == 0


@triton.jit
def rotate_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.debug_barrier()
    tl.store(out + (i + 5) % BLOCK, v)


def test_a_block_rotated_in_place_behind_a_barrier():
    x = normal(256)
    turned = np.roll(x, 5)
    rotate_kernel[(1,)](x, x, BLOCK=256)
    np.testing.assert_array_equal(x, turned)


@triton.jit
def attention_inner(acc, l_i, m_i, q, k_ptrs, v_ptrs, n, stride, scale, STAGE: tl.constexpr, BN: tl.constexpr, rows):
    for start in range(0, n, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptrs + start * stride, mask=columns[:, None] < n, other=0.0)
        qk = tl.dot(q, k.T, input_precision="ieee") * scale
        valid = columns[None, :] < n
        if STAGE == 1:
            valid = valid & (rows[:, None] >= columns[None, :])
        qk = tl.where(valid, qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs + start * stride, mask=columns[:, None] < n, other=0.0)
        acc = tl.dot(p, v, acc, input_precision="ieee")
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def attention_kernel(
    Q, K, V, Out, n, stride, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    dims = tl.arange(0, D)
    q = tl.load(Q + rows[:, None] * stride + dims[None, :], mask=rows[:, None] < n, other=0.0)
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32) + 1.0
    l_i *= 0.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    keys = tl.arange(0, BN)[:, None] * stride + dims[None, :]
    acc, l_i, m_i = attention_inner(
        acc, l_i, m_i, q, K + keys, V + keys, n, stride, scale * 1.44269504, 1 if CAUSAL else 0, BN, rows
    )
    tl.store(Out + rows[:, None] * stride + dims[None, :], acc / l_i[:, None], mask=rows[:, None] < n)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    n, d = 75, 32
    q, k, v = (normal(n, d) for _ in range(3))
    out = np.empty_like(q)
    attention_kernel[(triton.cdiv(n, 32),)](q, k, v, out, n, d, d**-0.5, CAUSAL=causal, BM=32, BN=32, D=d)
    scores = q.astype(np.float64) @ k.T * d**-0.5
    if causal:
        scores[~np.tri(n, dtype=bool)] = -np.inf
    p = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-4)


@triton.jit
def grouped_matmul_kernel(a_ptrs, b_ptrs, c_ptrs, sizes, group_count, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """Matrices of many sizes; each program takes tiles in turn, whatever group they belong to."""
    tile = tl.program_id(0)
    done = 0
    for g in range(group_count):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        tiles_n = tl.cdiv(n, BLOCK)
        tiles = tl.cdiv(m, BLOCK) * tiles_n
        while tile >= done and tile < done + tiles:
            a = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float32))
            b = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float32))
            c = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float32))
            inside = tile - done
            rows = inside // tiles_n * BLOCK + tl.arange(0, BLOCK)
            columns = inside % tiles_n * BLOCK + tl.arange(0, BLOCK)
            inner = tl.arange(0, BLOCK)
            acc = tl.zeros((BLOCK, BLOCK), tl.float32)
            for start in range(0, k, BLOCK):
                at = start + inner
                left = tl.load(a + rows[:, None] * k + at[None, :], (rows[:, None] < m) & (at[None, :] < k), 0.0)
                right = tl.load(b + at[:, None] * n + columns[None, :], (at[:, None] < k) & (columns[None, :] < n), 0.0)
                acc += tl.dot(left, right, input_precision="ieee")
            tl.store(c + rows[:, None] * n + columns[None, :], acc, (rows[:, None] < m) & (columns[None, :] < n))
            tile += PROGRAMS
        done += tiles


def test_grouped_matmul_through_pointers_in_memory():
    sizes = np.array([(20, 30, 40), (17, 5, 9), (50, 16, 16)], np.int32)
    a = [normal(m, k) for m, n, k in sizes]
    b = [normal(k, n) for m, n, k in sizes]
    c = [np.empty((m, n), np.float32) for m, n, k in sizes]
    pointers = [np.array([x.ctypes.data for x in group], np.int64) for group in (a, b, c)]
    grouped_matmul_kernel[(3,)](*pointers, sizes, 3, PROGRAMS=3, BLOCK=16)
    for x, y, z in zip(a, b, c, strict=True):
        np.testing.assert_allclose(z, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-4)


@triton.heuristics(
    {"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "IS_VARLEN": lambda args: args["lengths"] is not None}
)
@triton.jit(do_not_specialize=["n"])
def cumulative_kernel(
    x, out, lengths, n, BLOCK: tl.constexpr, REVERSE: tl.constexpr, EVEN: tl.constexpr, IS_VARLEN: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    if IS_VARLEN:
        length = tl.load(lengths + row)
        if length <= 0:
            return
    else:
        length = n
    carry = 0.0
    for start in range(tl.cdiv(length, BLOCK)):
        if REVERSE:
            offsets = length - 1 - (start * BLOCK + tl.arange(0, BLOCK))
            mask = offsets >= 0
        else:
            offsets = start * BLOCK + tl.arange(0, BLOCK)
            mask = offsets < length
        value = tl.load(x + row * n + offsets, mask=mask, other=0.0)
        sums = tl.cumsum(value, 0) + carry
        carry += tl.sum(value, 0)
        tl.store(out + row * n + offsets, sums, mask=mask)


@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums_of_ragged_rows(reverse):
    x = normal(4, 50)
    lengths = np.array([50, 0, 17, 32], np.int32)
    out = np.zeros_like(x)
    cumulative_kernel[(4,)](x=x, out=out, lengths=lengths, n=50, BLOCK=16, REVERSE=reverse)
    for row, length in enumerate(lengths):
        part = x[row, :length].astype(np.float64)
        expected = part[::-1].cumsum()[::-1] if reverse else part.cumsum()
        np.testing.assert_allclose(out[row, :length], expected, rtol=1e-4, atol=1e-5)
        assert not out[row, length:].any()
    full = np.zeros_like(x)
    cumulative_kernel[(4,)](x, full, None, 50, BLOCK=16, REVERSE=reverse)
    np.testing.assert_allclose(full[1], (x[1, ::-1].cumsum()[::-1] if reverse else x[1].cumsum()), rtol=1e-4, atol=1e-5)


def test_torch_tensors_and_numpy_arrays_share_a_kernel():
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 30)
    out = np.empty((5, 30), np.float32)
    softmax_kernel[(2,)](out, x, 30, 30, 5, 30, BLOCK=32, num_stages=1)
    np.testing.assert_allclose(out, torch.softmax(x, 1).numpy(), rtol=1e-5)
