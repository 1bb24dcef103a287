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
