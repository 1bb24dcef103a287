"""Kernels on which passes are tested."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def matmul_pointer(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C = A B, tensors of pointers; masks from the number of columns that are left."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + (m[:, None] * stride_am + k[None, :] * stride_ak)
    b_ptrs = b_ptr + (k[:, None] * stride_bk + n[None, :] * stride_bn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        left = K - step * BK
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < left) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_counter(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C = A B, tensors of pointers computed from the loop's counter."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
        b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_block_pointer(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C = A B, block pointers."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_block = tl.make_block_ptr(a_ptr, (M, K), (stride_am, stride_ak), (row, 0), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (stride_bk, stride_bn), (0, column), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (stride_cm, stride_cn), (row, column), (BM, BN), (1, 0))
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def matmul_descriptor(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C = A B, tensor descriptors; last strides are 1."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_am, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [stride_bk, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_cm, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([row, k]), b_desc.load([k, column]), acc, input_precision="ieee")
    c_desc.store([row, column], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, scale, n_queries, n_keys,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """o = softmax(q k^T * scale) v for BM queries; q, k, v and o are [.., BD] and contiguous."""
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    q_block = tl.make_block_ptr(q_ptr, (n_queries, BD), (BD, 1), (first, 0), (BM, BD), (1, 0))
    k_block = tl.make_block_ptr(k_ptr, (BD, n_keys), (1, BD), (0, 0), (BD, BN), (0, 1))
    v_block = tl.make_block_ptr(v_ptr, (n_keys, BD), (BD, 1), (0, 0), (BN, BD), (1, 0))
    o_block = tl.make_block_ptr(o_ptr, (n_queries, BD), (BD, 1), (first, 0), (BM, BD), (1, 0))
    m_i = tl.full([BM], -float("inf"), tl.float32)
    l_i = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, BD], tl.float32)
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    end = tl.minimum(n_keys, first + BM) if CAUSAL else n_keys
    for start in range(0, end, BN):
        k = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        s = tl.dot(q, k, input_precision="ieee") * scale
        keys = start + tl.arange(0, BN)
        visible = keys[None, :] < n_keys
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        s = tl.where(visible, s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision="ieee")
        m_i = m_new
        k_block = tl.advance(k_block, (0, BN))
        v_block = tl.advance(v_block, (BN, 0))
    tl.store(o_block, (acc / l_i[:, None]).to(o_ptr.dtype.element_ty), boundary_check=(0,))


@triton.jit
def softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """One row of softmax."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def softmax_rows(x_ptr, y_ptr, rows, n, BM: tl.constexpr, BLOCK: tl.constexpr):
    """BM rows of softmax, in pieces of BLOCK columns."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    i = tl.arange(0, BLOCK)
    maximum = tl.full([BM, BLOCK], -float("inf"), tl.float32)
    xs = x_ptr + r[:, None] * n + i[None, :]
    for start in range(0, n, BLOCK):
        x = tl.load(xs, mask=(r[:, None] < rows) & (i[None, :] < n - start), other=-float("inf"))
        maximum = tl.maximum(maximum, x)
        xs += BLOCK
    largest = tl.max(maximum, 1)
    total = tl.zeros([BM, BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = x_ptr + r[:, None] * n + start + i[None, :]
        x = tl.load(at, mask=(r[:, None] < rows) & (start + i[None, :] < n), other=-float("inf"))
        total += tl.exp(x - largest[:, None])
    scale = 1.0 / tl.sum(total, 1)
    for start in range(0, n, BLOCK):
        mask = (r[:, None] < rows) & (start + i[None, :] < n)
        at = r[:, None] * n + start + i[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        tl.store(y_ptr + at, tl.exp(x - largest[:, None]) * scale[:, None], mask=mask)


@triton.jit
def gemm_epilogue(
    a_ptr, b_ptr, c_ptr, d_ptr, bias_ptr, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, A_T: tl.constexpr, B_T: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """C [BM, BN] = epilogue(A B); A or B may be stored transposed; KIND is bias, gelu, matrix or none."""
    a_strides = (1, BM) if A_T else (K, 1)
    b_strides = (1, K) if B_T else (BN, 1)
    a_block = tl.make_block_ptr(a_ptr, (BM, K), a_strides, (0, 0), (BM, BK), (0, 1) if A_T else (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, BN), b_strides, (0, 0), (BK, BN), (0, 1) if B_T else (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a_block), tl.load(b_block), acc, input_precision="ieee")
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    if KIND == "bias":
        acc += tl.load(bias_ptr + tl.arange(0, BN))[None, :]
    if KIND == "gelu":
        acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.70710678))
    if KIND == "matrix":
        d_block = tl.make_block_ptr(d_ptr, (BM, BN), (BN, 1), (0, 0), (BM, BN), (1, 0))
        acc += tl.load(d_block)
    c_block = tl.make_block_ptr(c_ptr, (BM, BN), (BN, 1), (0, 0), (BM, BN), (1, 0))
    tl.store(c_block, acc)


@triton.jit
def transposed_operands(a_ptr, b_ptr, c_ptr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C [BM, BN] = A.T B.T, both loaded and then transposed; and C's transpose is added."""
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a = tl.load(a_ptr + k[:, None] * BM + m[None, :])
    b = tl.load(b_ptr + n[:, None] * BK + k[None, :])
    c = tl.dot(tl.trans(a), tl.trans(b), input_precision="ieee")
    d = tl.dot(b, a, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * BN + n[None, :], c + tl.trans(d))


@triton.jit
def three_dots(q_ptr, k_ptr, v_ptr, o_ptr, n, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    """o += ((q k^T) v) w in a loop over keys, where w is v^T v: three dots, chained."""
    m, d, j = tl.arange(0, BM), tl.arange(0, BD), tl.arange(0, BN)
    q = tl.load(q_ptr + m[:, None] * BD + d[None, :])
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, n, BN):
        rows = start + j
        k = tl.load(k_ptr + rows[:, None] * BD + d[None, :], mask=rows[:, None] < n, other=0.0)
        v = tl.load(v_ptr + rows[:, None] * BD + d[None, :], mask=rows[:, None] < n, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee")
        o = tl.dot(s.to(v.dtype), v, input_precision="ieee")
        w = tl.dot(tl.trans(v), v, input_precision="ieee")
        acc = tl.dot(o.to(v.dtype), w.to(v.dtype), acc, input_precision="ieee")
    tl.store(o_ptr + m[:, None] * BD + d[None, :], acc)


@triton.jit
def reductions(x_ptr, y_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    """Sum, maximum and index of the maximum along an axis of a [B, M, N] block; results side by side."""
    b, m, n = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + b[:, None, None] * (M * N) + m[None, :, None] * N + n[None, None, :])
    if AXIS == 0:
        where = m[:, None] * N + n[None, :]
    elif AXIS == 1:
        where = b[:, None] * N + n[None, :]
    else:
        where = b[:, None] * M + m[None, :]
    SIZE: tl.constexpr = B * M * N
    tl.store(y_ptr + where, tl.sum(x, AXIS))
    tl.store(y_ptr + SIZE + where, tl.max(x, AXIS))
    tl.store(y_ptr + 2 * SIZE + where, tl.argmax(x, AXIS).to(tl.float32))
    tl.store(y_ptr + 3 * SIZE, tl.sum(tl.sum(tl.sum(x * x, AXIS), 0), 0))


@triton.jit
def shapes(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    """Operations that move elements: reshape, permute, join, split, cat, gather, cumulative sums."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    where = m[:, None] * N + n[None, :]
    x = tl.load(x_ptr + where)
    swapped = tl.reshape(tl.permute(x, (1, 0)), (M, N))
    low, high = tl.split(tl.join(x, swapped))
    total = tl.cumsum(low, 1) + tl.cumsum(high, 0)
    line = tl.reshape(tl.cat(m, m + M, can_reorder=True), (2 * M,))
    tl.store(y_ptr + where, total)
    tl.store(y_ptr + M * N + line, line.to(tl.float32))


@triton.jit
def atomics(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """A histogram by atomics, a counter, and a scalar that every warp needs."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    old = tl.atomic_add(y_ptr + 16 + i, x, mask=i < n)
    first = tl.atomic_add(y_ptr, 5)
    tl.atomic_max(y_ptr + 1 + x % 8, i)
    tl.store(y_ptr + 16 + BLOCK + i, old + first)


@triton.jit
def carried_rows(x_ptr, y_ptr, n, BM: tl.constexpr, BN: tl.constexpr):
    """A loop without dots that carries a row maximum, a column sum and a block, and branches on a scalar."""
    m, k = tl.arange(0, BM), tl.arange(0, BN)
    largest = tl.full([BM], -float("inf"), tl.float32)
    columns = tl.zeros([BN], tl.float32)
    block = tl.zeros([BM, BN], tl.float32)
    for step in range(n):
        x = tl.load(x_ptr + step * BM * BN + m[:, None] * BN + k[None, :])
        largest = tl.maximum(largest, tl.max(x, 1))
        columns += tl.sum(x, 0)
        if step % 2 == 0:
            block += x - largest[:, None] * columns[None, :]
        else:
            block = x
    tl.store(y_ptr + m[:, None] * BN + k[None, :], block + columns[None, :])
    tl.store(y_ptr + BM * BN + m, largest)


@triton.jit
def transposed_slice(x_ptr, z_ptr, y_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """y[b, m] = sum over n of z[b, m, n] * x[n, b]: the transposed x is one slice of a block cut in all dimensions."""
    b, m, n = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N)
    x = tl.trans(tl.load(x_ptr + n[:, None] * B + b[None, :]))
    z = tl.load(z_ptr + b[:, None, None] * (M * N) + m[None, :, None] * N + n[None, None, :])
    tl.store(y_ptr + b[:, None] * M + m[None, :], tl.sum(z * x[:, None, :], 2))
