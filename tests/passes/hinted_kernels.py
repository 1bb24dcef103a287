"""Kernels whose dots have tiling hints: what they compute does not depend on the hint."""

from __future__ import annotations

import mltriton as triton
import mltriton.language as tl


@triton.jit
def one_dot(a_ptr, b_ptr, c_ptr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TILING: tl.constexpr):
    """C [BM, BN] = A B + 1."""
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a = tl.load(a_ptr + m[:, None] * BK + k[None, :])
    b = tl.load(b_ptr + k[:, None] * BN + n[None, :])
    c = tl.dot(a, b, input_precision="ieee", tiling=TILING) + 1.0
    tl.store(c_ptr + m[:, None] * BN + n[None, :], c)


@triton.jit
def batched(
    a_ptr, b_ptr, c_ptr, B: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TILING: tl.constexpr
):
    """C [B, BM, BN] = A B, and the sums of its rows after it."""
    b, m, n, k = tl.arange(0, B), tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    x = tl.load(a_ptr + b[:, None, None] * (BM * BK) + m[None, :, None] * BK + k[None, None, :])
    y = tl.load(b_ptr + b[:, None, None] * (BK * BN) + k[None, :, None] * BN + n[None, None, :])
    z = tl.dot(x, y, input_precision="ieee", tiling=TILING)
    tl.store(c_ptr + b[:, None, None] * (BM * BN) + m[None, :, None] * BN + n[None, None, :], z)
    tl.store(c_ptr + B * BM * BN + b[:, None] * BM + m[None, :], tl.sum(z, 2))


@triton.jit
def transposed(a_ptr, b_ptr, c_ptr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TILING: tl.constexpr):
    """C [BM, BN] = (A.T B.T + 1) stored as its transpose; A [BK, BM] and B [BN, BK] are transposed in the kernel."""
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a = tl.load(a_ptr + k[:, None] * BM + m[None, :])
    b = tl.load(b_ptr + n[:, None] * BK + k[None, :])
    c = tl.dot(tl.trans(a), tl.trans(b), input_precision="ieee", tiling=TILING) + 1.0
    tl.store(c_ptr + n[:, None] * BM + m[None, :], tl.trans(c))


@triton.jit
def attention_backward(
    q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, dk_ptr, dv_ptr, n,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, DK: tl.constexpr, DQ: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """dk and dv of BN keys, and dq of all `n` queries, for o = (q k^T)^2 v: five dots, with hints for dv and dk, for
    dq and for s.
    """
    d, j = tl.arange(0, BD), tl.arange(0, BN)
    k = tl.load(k_ptr + j[:, None] * BD + d[None, :])
    v = tl.load(v_ptr + j[:, None] * BD + d[None, :])
    dk = tl.zeros((BN, BD), tl.float32)
    dv = tl.zeros((BN, BD), tl.float32)
    for start in range(0, n, BM):
        i = start + tl.arange(0, BM)
        rows = i[:, None] * BD + d[None, :]
        q = tl.load(q_ptr + rows, mask=i[:, None] < n, other=0.0)
        do = tl.load(do_ptr + rows, mask=i[:, None] < n, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee", tiling=S)
        dv = tl.dot(tl.trans(s * s), do, dv, input_precision="ieee", tiling=DK)
        dp = tl.dot(do, tl.trans(v), input_precision="ieee")
        ds = 2.0 * s * dp
        dk = tl.dot(tl.trans(ds), q, dk, input_precision="ieee", tiling=DK)
        dq = tl.dot(ds, k, input_precision="ieee", tiling=DQ)
        tl.store(dq_ptr + rows, dq, mask=i[:, None] < n)
    tl.store(dk_ptr + j[:, None] * BD + d[None, :], dk)
    tl.store(dv_ptr + j[:, None] * BD + d[None, :], dv)


@triton.jit
def control_flow(x_ptr, y_ptr, n, BM: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """Dots under a branch, in a while loop and in nested loops; `n` steps of each, FIRST and SECOND are their hints."""
    m = tl.arange(0, BM)
    at = m[:, None] * BM + m[None, :]
    x = tl.load(x_ptr + at)
    y = tl.zeros((BM, BM), tl.float32)
    step = 0
    while step < n:
        if step % 2 == 0:
            y = tl.dot(x, x, y, input_precision="ieee", tiling=FIRST)
        else:
            y = y * 0.5
        step += 1
    tl.store(y_ptr + at, y)
    z = tl.zeros((BM, BM), tl.float32)
    for outer in range(n):
        part = tl.zeros((BM, BM), tl.float32)
        for inner in range(outer + 1):
            block = tl.load(x_ptr + inner * BM * BM + at)
            part = tl.dot(block, x, part, input_precision="ieee", tiling=SECOND)
        z += part / (outer + 1)
    tl.store(y_ptr + BM * BM + at, z)


@triton.jit
def shared_operand(x_ptr, y_ptr, BM: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """Two dots with a hint each that share an operand: their results do not meet."""
    m = tl.arange(0, BM)
    at = m[:, None] * BM + m[None, :]
    x, y = tl.load(x_ptr + at), tl.load(x_ptr + BM * BM + at)
    tl.store(y_ptr + at, tl.dot(x, y, input_precision="ieee", tiling=FIRST))
    tl.store(y_ptr + BM * BM + at, tl.dot(x, x, input_precision="ieee", tiling=SECOND))


@triton.jit
def sum_of_two(x_ptr, y_ptr, BM: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """The sum of two hinted dots."""
    m = tl.arange(0, BM)
    at = m[:, None] * BM + m[None, :]
    x = tl.load(x_ptr + at)
    first = tl.dot(x, x, tl.load(y_ptr + at), input_precision="ieee", tiling=FIRST)
    second = tl.dot(x, x * 2.0, tl.load(y_ptr + BM * BM + at), input_precision="ieee", tiling=SECOND)
    tl.store(y_ptr + at, first + second)


@triton.jit
def product_of_three(x_ptr, y_ptr, BM: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """(x x)^T ((x + 1) x) : two hinted dots, the first is the left operand of the second, transposed."""
    m = tl.arange(0, BM)
    at = m[:, None] * BM + m[None, :]
    x = tl.load(x_ptr + at)
    first = tl.dot(x, x, input_precision="ieee", tiling=FIRST)
    second = tl.dot(tl.trans(first), x + 1.0, input_precision="ieee", tiling=SECOND)
    tl.store(y_ptr + at, second)
