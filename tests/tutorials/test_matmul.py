"""Matrix products: the tutorial's form, autotuned; persistent with descriptors, split-K, grouped, int8."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_pair, each_value

torch = pytest.importorskip("torch")


def get_configs():
    return [
        triton.Config(
            {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": 8}, num_stages=3, num_warps=4
        )
        for m, n, k in ((64, 64, 32), (32, 128, 64))
    ]


@triton.autotune(configs=get_configs(), key=["M", "N", "K"], warmup=1, rep=1)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    tl.assume(pid_n >= 0)
    tl.assume(stride_am > 0)

    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)

    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(c_ptr.dtype.element_ty)

    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


def matmul(a, b, activation: str = ""):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.full((M, N), float("nan"), dtype=a.dtype)
    matmul_kernel[lambda META: (triton.cdiv(M, META["BLOCK_SIZE_M"]) * triton.cdiv(N, META["BLOCK_SIZE_N"]),)](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), ACTIVATION=activation
    )
    return c


@each_pair(
    ("dtype", ["float32", "float16", "bfloat16"]),
    ("m, n, k", [(256, 256, 128), (301, 97, 77), (5, 3, 200)]),
    ("activation", ["", "leaky_relu"]),
)
def test_matmul(activation: str, m: int, n: int, k: int, dtype: str):
    a, b = torch.randn(m, k).to(getattr(torch, dtype)), torch.randn(n, k).to(getattr(torch, dtype)).T
    expected = a.double() @ b.double()
    expected = torch.nn.functional.leaky_relu(expected, 0.01) if activation else expected
    tolerance = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1.5e-1}[dtype]  # one rounding of sums up to 60
    torch.testing.assert_close(matmul(a, b, activation).double(), expected, atol=tolerance, rtol=0)


@triton.jit
def _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M: tl.constexpr):
    group_id = tile_id // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    return first_pid_m + (tile_id % group_size_m), (tile_id % num_pid_in_group) // group_size_m


@triton.jit
def matmul_kernel_descriptor_persistent(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
    EPILOGUE_SUBTILE: tl.constexpr, NUM_SMS: tl.constexpr,
):  # fmt: skip
    dtype = c_ptr.dtype.element_ty
    start_pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    k_tiles = tl.cdiv(K, BLOCK_SIZE_K)
    num_tiles = num_pid_m * num_pid_n

    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BLOCK_SIZE_M, BLOCK_SIZE_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BLOCK_SIZE_N, BLOCK_SIZE_K])
    c_desc = tl.make_tensor_descriptor(
        c_ptr,
        shape=[M, N],
        strides=[N, 1],
        block_shape=[BLOCK_SIZE_M, BLOCK_SIZE_N if not EPILOGUE_SUBTILE else BLOCK_SIZE_N // 2],
    )
    tile_id_c = start_pid - NUM_SMS
    num_pid_in_group = GROUP_SIZE_M * num_pid_n

    for tile_id in tl.range(start_pid, num_tiles, NUM_SMS, flatten=True):
        pid_m, pid_n = _compute_pid(tile_id, num_pid_in_group, num_pid_m, GROUP_SIZE_M)
        offs_am = pid_m * BLOCK_SIZE_M
        offs_bn = pid_n * BLOCK_SIZE_N
        accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
        for ki in range(k_tiles):
            offs_k = ki * BLOCK_SIZE_K
            a = a_desc.load([offs_am, offs_k])
            b = b_desc.load([offs_bn, offs_k])
            accumulator = tl.dot(a, b.T, accumulator)

        tile_id_c += NUM_SMS
        pid_m, pid_n = _compute_pid(tile_id_c, num_pid_in_group, num_pid_m, GROUP_SIZE_M)
        offs_cm = pid_m * BLOCK_SIZE_M
        offs_cn = pid_n * BLOCK_SIZE_N
        if EPILOGUE_SUBTILE:
            acc = tl.reshape(accumulator, (BLOCK_SIZE_M, 2, BLOCK_SIZE_N // 2))
            acc = tl.permute(acc, (0, 2, 1))
            acc0, acc1 = tl.split(acc)
            c_desc.store([offs_cm, offs_cn], acc0.to(dtype))
            c_desc.store([offs_cm, offs_cn + BLOCK_SIZE_N // 2], acc1.to(dtype))
        else:
            c_desc.store([offs_cm, offs_cn], accumulator.to(dtype))


@each_value(("m, n, k", [(256, 192, 128), (200, 136, 72)]), ("subtile", [False, True]))
def test_persistent_matmul_with_descriptors(subtile: bool, m: int, n: int, k: int):
    a, b = torch.randn(m, k).half(), torch.randn(n, k).half()
    c = torch.full((m, n), float("nan")).half()
    matmul_kernel_descriptor_persistent[(3,)](
        a, b, c, m, n, k, 64, 64, 32, GROUP_SIZE_M=2, EPILOGUE_SUBTILE=subtile, NUM_SMS=3, num_stages=3
    )
    torch.testing.assert_close(c.double(), a.double() @ b.double().T, atol=3e-2, rtol=1e-3)


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    pid_n, pid_m, pid_z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = pid_z * BK + tl.arange(0, BK)
    A = a_ptr + rm[:, None] * stride_am + rk[None, :]
    B = b_ptr + rk[:, None] * stride_bk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK * SPLIT_K)):
        k_remaining = K - k * (BK * SPLIT_K)
        a = tl.load(A, mask=(rm < M)[:, None] & (rk[None, :] < k_remaining), other=0.0)
        b = tl.load(B, mask=(rk[:, None] < k_remaining) & (rn < N)[None, :], other=0.0)
        acc += tl.dot(a, b, out_dtype=tl.float32)
        A += BK * SPLIT_K
        B += BK * SPLIT_K * stride_bk
    C = c_ptr + rm[:, None] * stride_cm + rn[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(C, acc, mask=mask)
    else:
        tl.atomic_add(C, acc, mask=mask, sem="relaxed")


@pytest.mark.parametrize("split_k", [1, 4])
def test_split_k(split_k: int):
    m, n, k = 50, 70, 1000
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.zeros(m, n)
    grid = (triton.cdiv(n, 32), triton.cdiv(m, 32), split_k)
    split_k_kernel[grid](a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), 32, 32, 64, SPLIT_K=split_k)
    # Sums of 1000 in f32 err by 1.3e-4, those of three products of tf32 for each by 2.1e-4, with as many roundings, and
    # by 9e-4 where the matrix engine cuts sums off. One product of tf32 would err by 1e-2.
    torch.testing.assert_close(c.double(), a.double() @ b.double(), atol=1.5e-3, rtol=0)


@triton.jit
def grouped_matmul_kernel(
    group_a_ptrs, group_b_ptrs, group_c_ptrs, group_gemm_sizes, g_lds, group_size,
    NUM_SM: tl.constexpr, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
):  # fmt: skip
    tile_idx = tl.program_id(0)
    last_problem_end = 0
    for g in range(group_size):
        gm = tl.load(group_gemm_sizes + g * 3)
        gn = tl.load(group_gemm_sizes + g * 3 + 1)
        gk = tl.load(group_gemm_sizes + g * 3 + 2)
        num_m_tiles = tl.cdiv(gm, BLOCK_SIZE_M)
        num_n_tiles = tl.cdiv(gn, BLOCK_SIZE_N)
        num_tiles = num_m_tiles * num_n_tiles
        while tile_idx >= last_problem_end and tile_idx < last_problem_end + num_tiles:
            k = gk
            lda = tl.load(g_lds + g * 3)
            ldb = tl.load(g_lds + g * 3 + 1)
            ldc = tl.load(g_lds + g * 3 + 2)
            a_ptr = tl.load(group_a_ptrs + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(group_b_ptrs + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(group_c_ptrs + g).to(tl.pointer_type(tl.float16))
            tile_idx_in_gemm = tile_idx - last_problem_end
            tile_m_idx = tile_idx_in_gemm // num_n_tiles
            tile_n_idx = tile_idx_in_gemm % num_n_tiles
            offs_am = tile_m_idx * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
            offs_bn = tile_n_idx * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
            offs_k = tl.arange(0, BLOCK_SIZE_K)
            a_ptrs = a_ptr + offs_am[:, None] * lda + offs_k[None, :]
            b_ptrs = b_ptr + offs_k[:, None] * ldb + offs_bn[None, :]
            accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
            for _kk in range(tl.cdiv(k, BLOCK_SIZE_K)):
                tl.multiple_of(a_ptrs, [16, 16])
                tl.multiple_of(b_ptrs, [16, 16])
                a = tl.load(a_ptrs)
                b = tl.load(b_ptrs)
                accumulator += tl.dot(a, b)
                a_ptrs += BLOCK_SIZE_K
                b_ptrs += BLOCK_SIZE_K * ldb
            c = accumulator.to(tl.float16)
            offs_cm = tile_m_idx * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
            offs_cn = tile_n_idx * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
            c_ptrs = c_ptr + ldc * offs_cm[:, None] + offs_cn[None, :]
            tl.store(c_ptrs, c)
            tile_idx += NUM_SM
        last_problem_end = last_problem_end + num_tiles


def test_grouped_matmul_through_pointers_in_memory():
    sizes = [(64, 96, 32), (128, 32, 64), (32, 32, 128)]
    group_a = [torch.randn(m, k).half() for m, n, k in sizes]
    group_b = [torch.randn(k, n).half() for m, n, k in sizes]
    group_c = [torch.full((m, n), float("nan")).half() for m, n, k in sizes]
    addresses = [torch.tensor([x.data_ptr() for x in group]) for group in (group_a, group_b, group_c)]
    flat = torch.tensor(sizes, dtype=torch.int32).flatten()
    leading = torch.tensor([(k, n, n) for m, n, k in sizes], dtype=torch.int32).flatten()
    grouped_matmul_kernel[(4,)](*addresses, flat, leading, len(sizes), 4, 32, 32, 32)
    for a, b, c in zip(group_a, group_b, group_c, strict=True):
        torch.testing.assert_close(c.double(), a.double() @ b.double(), atol=3e-2, rtol=1e-3)


@triton.jit
def quantize_rowwise(x_ptr, q_ptr, scale_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    scale = tl.max(tl.abs(x), axis=0) / 127.0
    scaled = x / scale
    rounded = tl.where(scaled >= 0, tl.floor(scaled + 0.5), tl.ceil(scaled - 0.5))
    tl.store(q_ptr + row * n_cols + cols, rounded.to(tl.int8), mask=mask)
    tl.store(scale_ptr + row, scale)


@triton.jit
def int8_matmul_kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, K, BK):
        rk = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk, mask=(rm[:, None] < M) & (rk < K), other=0)
        b = tl.load(b_ptr + rn[None, :] * K + rk[:, None], mask=(rn[None, :] < N) & (rk[:, None] < K), other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    sa = tl.load(sa_ptr + rm, mask=rm < M)
    sb = tl.load(sb_ptr + rn, mask=rn < N)
    c = acc.to(tl.float32) * sa[:, None] * sb[None, :]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], c, mask=(rm[:, None] < M) & (rn[None, :] < N))


def test_int8_quantized_matmul():
    m, n, k = 67, 45, 200
    a, b = torch.randn(m, k), torch.randn(n, k)
    qa, qb = torch.empty(m, k, dtype=torch.int8), torch.empty(n, k, dtype=torch.int8)
    sa, sb, c = torch.empty(m), torch.empty(n), torch.empty(m, n)
    quantize_rowwise[(m,)](a, qa, sa, k, BLOCK=256)
    quantize_rowwise[(n,)](b, qb, sb, k, BLOCK=256)
    int8_matmul_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](qa, qb, sa, sb, c, m, n, k, 32, 32, 64)
    exact = (qa.double() @ qb.double().T) * sa.double()[:, None] * sb.double()
    torch.testing.assert_close(c.double(), exact, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        c, a @ b.T, atol=0.8, rtol=0
    )  # 200 products, each off by up to 1/254 of its row's maximum


@triton.jit
def weight_only_kernel(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        rk = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        packed = tl.load(w_ptr + (rk[:, None] // 2) * N + rn[None, :], mask=rn[None, :] < N, other=0)
        nibble = (packed >> ((rk[:, None] % 2) * 4)) & 0xF
        scale = tl.load(s_ptr + rn, mask=rn < N, other=0.0)
        w = ((nibble.to(tl.int32) - 8).to(tl.float32) * scale[None, :]).to(x.dtype)
        acc += tl.dot(x, w)
    tl.store(y_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_int4_weights_unpacked_in_the_loop(dtype: str):
    m, n, k = 20, 48, 128
    x = torch.randn(m, k).to(getattr(torch, dtype))
    w = torch.randint(0, 16, (k, n), dtype=torch.uint8)
    scale, y = torch.rand(n) / 8, torch.empty(m, n)
    packed = w[0::2] | (w[1::2] << 4)
    weight_only_kernel[(2, 2)](x, packed, scale, y, m, n, k, 16, 32, 64)
    weights = ((w.float() - 8) * scale).to(x.dtype)
    torch.testing.assert_close(y.double(), x.double() @ weights.double(), atol=1e-4, rtol=1e-4)
