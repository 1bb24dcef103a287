"""Kernels that multiply matrices, as upstream's tutorials write them: one text for mltriton and for upstream."""

import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """f32 is rounded to TF32."""
    pid = tl.program_id(0)
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    pid_m = first + (pid % (GROUP * columns)) % size
    pid_n = (pid % (GROUP * columns)) // size
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32")
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    offs_m = pid_m * BM + tl.arange(0, BM)
    offs_n = pid_n * BN + tl.arange(0, BN)
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


def matmul(a, b, c, num_warps=8, rows=128, **options):
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, rows) * triton.cdiv(n, 128),)
    strides = a.stride(0), b.stride(0), c.stride(0)
    sizes = {"BM": rows, "BN": 128, "BK": 128 // a.element_size(), "GROUP": 8}
    matmul_kernel[grid](a, b, c, m, n, k, *strides, **sizes, num_warps=num_warps, num_stages=3, **options)
    return c


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, sequence, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """One block of queries of one head; scores in base 2."""
    head = tl.program_id(1).to(tl.int64) * sequence * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, D)
    keys = tl.arange(0, BN)
    q = tl.load(q_ptr + head + rows[:, None] * D + columns[None, :])
    k_ptrs = k_ptr + head + keys[None, :] * D + columns[:, None]
    v_ptrs = v_ptr + head + keys[:, None] * D + columns[None, :]
    largest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for _ in range(0, sequence, BN):
        s = tl.dot(q, tl.load(k_ptrs)) * scale
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(largest - new)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(q.dtype), tl.load(v_ptrs), acc)
        largest = new
        k_ptrs += BN * D
        v_ptrs += BN * D
    tl.store(o_ptr + head + rows[:, None] * D + columns[None, :], (acc / total[:, None]).to(o_ptr.dtype.element_ty))


def attention(q, k, v, o):
    """[batch, heads, sequence, dim], contiguous; sequences that 128 divides."""
    batch, heads, sequence, dim = q.shape
    grid = (sequence // 128, batch * heads)
    scale = 1.4426950408889634 * dim**-0.5
    attention_kernel[grid](q, k, v, o, sequence, scale, D=dim, BM=128, BN=64, num_warps=8, num_stages=3)
    return o
