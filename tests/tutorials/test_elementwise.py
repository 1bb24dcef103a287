"""One pass over memory: addition, softmax, dropout, RMS norm, rotary embedding, SwiGLU, masks, views and casts."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl

torch = pytest.importorskip("torch")


@triton.jit
def add_kernel(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int32", "int64"])
@pytest.mark.parametrize("n", [1, 97, 98432])
def test_add_is_exact(dtype: str, n: int):
    x, y = ((torch.randn(n) * 8).to(getattr(torch, dtype)) for _ in range(2))
    output = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, y, output, n, BLOCK_SIZE=1024)
    assert torch.equal(output, x + y)


def test_add_numpy():
    x, y = np.random.default_rng(0).random((2, 1000), dtype=np.float32)
    output = np.empty_like(x)
    add_kernel[(4,)](x, y, output, 1000, 256)
    np.testing.assert_array_equal(output, x + y)


@triton.jit
def softmax_kernel(
    output_ptr,
    input_ptr,
    input_row_stride,
    output_row_stride,
    n_rows,
    n_cols,
    BLOCK_SIZE: tl.constexpr,
    num_stages: tl.constexpr,
):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        row_start_ptr = input_ptr + row_idx * input_row_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        mask = col_offsets < n_cols
        row = tl.load(row_start_ptr + col_offsets, mask=mask, other=-float("inf"))
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        denominator = tl.sum(numerator, axis=0)
        softmax_output = numerator / denominator
        output_row_start_ptr = output_ptr + row_idx * output_row_stride
        tl.store(output_row_start_ptr + col_offsets, softmax_output, mask=mask)


@pytest.mark.parametrize("programs", [1, 7])
@pytest.mark.parametrize("columns", [1, 127, 781, 2048])
def test_softmax(programs: int, columns: int):
    x = torch.randn(83, columns + 5)[:, :columns]
    y = torch.empty(83, columns)
    block = triton.next_power_of_2(columns)
    softmax_kernel[(programs, 1, 1)](
        y, x, x.stride(0), y.stride(0), 83, columns, BLOCK_SIZE=block, num_stages=4, num_warps=8
    )
    torch.testing.assert_close(y.double(), torch.softmax(x.double(), 1), atol=1e-6, rtol=1e-5)


@triton.jit
def _seeded_dropout(x_ptr, output_ptr, n_elements, p, seed, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    random = tl.rand(seed, offsets)
    x_keep = random > p
    output = tl.where(x_keep, x / (1 - p), 0.0)
    tl.store(output_ptr + offsets, output, mask=mask)


def dropout(x, p: float, seed: int):
    output = torch.empty_like(x)
    _seeded_dropout[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK_SIZE"]),)](
        x, output, x.numel(), p, seed, BLOCK_SIZE=1024
    )
    return output


def test_dropout_repeats_with_its_seed_and_drops_the_share_asked_for():
    x = torch.randn(100_000)
    first, again, other = dropout(x, 0.3, 123), dropout(x, 0.3, 123), dropout(x, 0.3, 512)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    kept = first != 0
    assert abs(kept.double().mean().item() - 0.7) < 0.01
    torch.testing.assert_close(first[kept], x[kept] / 0.7)


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    y_ptr += row * stride
    _var = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        _var += x * x
    rstd = tl.rsqrt(tl.sum(_var, axis=0) / N + eps)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        w = tl.load(w_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rms_norm(dtype: str):
    x = torch.randn(37, 1500).to(getattr(torch, dtype))
    w = torch.randn(1500).to(x.dtype)
    y = torch.empty_like(x)
    rms_norm_kernel[(37,)](x, w, y, x.stride(0), 1500, 1e-6, BLOCK=512)
    expected = torch.nn.functional.rms_norm(x.double(), (1500,), w.double(), 1e-6)
    tolerance = {"float32": 1e-5, "bfloat16": 8e-3, "float16": 1e-3}[dtype]
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)


@triton.jit
def rope_kernel(
    q_ptr, q_row_stride, cos_ptr, cos_stride, sin_ptr, sin_stride, seqlen,
    head_dim: tl.constexpr, n_heads: tl.constexpr, BACKWARD: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    group = tl.program_id(1)
    cols = tl.arange(0, BLOCK)
    half_head_dim = head_dim // 2
    mask = cols < half_head_dim
    sin1 = tl.load(sin_ptr + (row % seqlen) * sin_stride + cols, mask=mask, other=0)
    cos1 = tl.load(cos_ptr + (row % seqlen) * cos_stride + cols, mask=mask, other=0)
    if BACKWARD:
        sin1 = -sin1
    head_start = group * GROUP
    head_end = min((head_start + GROUP), n_heads)
    for k in range(head_start, head_end):
        offs_q1 = row * q_row_stride + k * head_dim + cols
        offs_q2 = row * q_row_stride + k * head_dim + cols + half_head_dim
        q1 = tl.load(q_ptr + offs_q1, mask=mask, other=0).to(sin1.dtype)
        q2 = tl.load(q_ptr + offs_q2, mask=mask, other=0).to(sin1.dtype)
        tl.store(q_ptr + offs_q1, q1 * cos1 - q2 * sin1, mask=mask)
        tl.store(q_ptr + offs_q2, q2 * cos1 + q1 * sin1, mask=mask)


@pytest.mark.parametrize("head_dim", [64, 80])
def test_rope_in_place_and_back(head_dim: int):
    batch, seqlen, heads = 2, 9, 6
    angle = torch.randn(seqlen, head_dim // 2)
    cos, sin = angle.cos(), angle.sin()
    x = torch.randn(batch * seqlen, heads * head_dim)
    q = x.clone()
    arguments = (q.stride(0), cos, cos.stride(0), sin, sin.stride(0), seqlen, head_dim, heads)
    rope_kernel[(batch * seqlen, triton.cdiv(heads, 4))](q, *arguments, False, triton.next_power_of_2(head_dim // 2), 4)
    x1, x2 = x.double().view(batch, seqlen, heads, 2, head_dim // 2).unbind(3)
    c, s = (t.double()[None, :, None] for t in (cos, sin))
    expected = torch.stack([x1 * c - x2 * s, x2 * c + x1 * s], 3).view_as(x)
    torch.testing.assert_close(q.double(), expected, atol=1e-6, rtol=1e-5)
    rope_kernel[(batch * seqlen, triton.cdiv(heads, 4))](q, *arguments, True, triton.next_power_of_2(head_dim // 2), 4)
    torch.testing.assert_close(q, x, atol=1e-5, rtol=1e-5)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu_kernel(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    program_id = tl.program_id(0).to(tl.int64)
    a_ptr += program_id * stride
    b_ptr += program_id * stride
    c_ptr += program_id * stride
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    a_row = tl.load(a_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    b_row = tl.load(b_ptr + col_offsets, mask=mask, other=0)
    c_row = silu(a_row).cast(b_row.dtype) * b_row
    tl.store(c_ptr + col_offsets, c_row, mask=mask)


def test_swiglu():
    a, b = torch.randn(2, 13, 300, dtype=torch.bfloat16)
    c = torch.empty_like(a)
    swiglu_kernel[(13,)](a, b, c, 300, n_cols=300, BLOCK_SIZE=512)
    expected = torch.nn.functional.silu(a.double()) * b.double()
    torch.testing.assert_close(c.double(), expected, atol=1e-2, rtol=1e-2)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, sxm, sxn, sym, syn, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tile = tl.load(x_ptr + rm[:, None] * sxm + rn[None, :] * sxn, mask=mask)
    tl.store(y_ptr + rn[:, None] * sym + rm[None, :] * syn, tile.T, mask=mask.T)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_transpose_of_strided_views(dtype: str):
    x = (torch.randn(70, 131) * 2).to(getattr(torch, dtype))
    for view in (x, x.T, x[::2, ::3], x[3:, 5:]):
        m, n = view.shape
        y = torch.zeros((n, m), dtype=x.dtype)
        transpose_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 16))](view, y, m, n, *view.stride(), *y.stride(), 32, 16)
        assert torch.equal(y, view.T)


@triton.jit
def select_kernel(flag_ptr, x_ptr, y_ptr, any_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    flag = tl.load(flag_ptr + i, mask=i < n, other=False)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    positive = x > 0
    tl.store(y_ptr + i, flag & ~positive | (flag ^ positive) & (x < 1), mask=i < n)
    tl.store(any_ptr, tl.max(flag.to(tl.int32), 0) != 0)


def test_bool_tensors():
    x = torch.randn(100)
    flag = torch.rand(100) > 0.5
    y, some = torch.zeros(100, dtype=torch.bool), torch.zeros(1, dtype=torch.bool)
    select_kernel[(1,)](flag, x, y, some, 100, BLOCK=128)
    positive = x > 0
    assert torch.equal(y, flag & ~positive | (flag ^ positive) & (x < 1))
    assert some.item()


@triton.jit
def cast_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n).to(y_ptr.dtype.element_ty), mask=i < n)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("wide", ["float32", "float16", "bfloat16"])
def test_every_fp8_value_widens_exactly(dtype: str, wide: str):
    x = torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))
    y = torch.empty(256, dtype=getattr(torch, wide))
    cast_kernel[(1,)](x, y, 256, BLOCK=256)
    torch.testing.assert_close(y, x.to(y.dtype), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_fp8_store_rounds_as_torch(dtype: str):
    x = torch.randn(1000) * 4
    y = torch.empty(1000, dtype=getattr(torch, dtype))
    cast_kernel[(8,)](x, y, 1000, BLOCK=128)
    assert torch.equal(y.view(torch.uint8), x.to(y.dtype).view(torch.uint8))
