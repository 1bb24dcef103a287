"""Layer norm of the tutorial: forward, and backward in two stages that share sums behind locks."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_value

torch = pytest.importorskip("torch")


@triton.jit
def _layer_norm_fwd_fused(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.0).to(tl.float32)
        x_hat = (x - mean) * rstd
        y = x_hat * w + b
        tl.store(Y + cols, y, mask=mask)


@triton.jit
def _layer_norm_bwd_dx_fused(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, GROUP_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE_N)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    lock_id = row % GROUP_SIZE_M
    Lock += lock_id
    Count = Lock + GROUP_SIZE_M
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = (x - mean) * rstd
    wdy = w * dy
    xhat = tl.where(mask, xhat, 0.0)
    wdy = tl.where(mask, wdy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(DX + cols, dx, mask=mask)
    partial_dw = (dy * xhat).to(w.dtype)
    partial_db = (dy).to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        partial_dw += tl.load(DW, mask=mask)
        partial_db += tl.load(DB, mask=mask)
    tl.store(DW, partial_dw, mask=mask)
    tl.store(DB, partial_db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def _layer_norm_bwd_dwdb(DW, DB, FINAL_DW, FINAL_DB, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    pid = tl.program_id(0)
    cols = pid * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    dw = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    db = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for i in range(0, M, BLOCK_SIZE_M):
        rows = i + tl.arange(0, BLOCK_SIZE_M)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        offs = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + offs, mask=mask, other=0.0)
        db += tl.load(DB + offs, mask=mask, other=0.0)
    sum_dw = tl.sum(dw, axis=0)
    sum_db = tl.sum(db, axis=0)
    tl.store(FINAL_DW + cols, sum_dw, mask=cols < N)
    tl.store(FINAL_DB + cols, sum_db, mask=cols < N)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, normalized_shape, weight, bias, eps):
        y = torch.empty_like(x)
        M, N = x.shape
        mean, rstd = torch.empty(M), torch.empty(M)
        BLOCK_SIZE = min(1024, triton.next_power_of_2(N))
        _layer_norm_fwd_fused[(M,)](
            x, y, weight, bias, mean, rstd, x.stride(0), N, eps, BLOCK_SIZE=BLOCK_SIZE, num_warps=4, num_ctas=1
        )
        ctx.save_for_backward(x, weight, bias, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w, _, mean, rstd = ctx.saved_tensors
        M, N = x.shape
        group = 8
        locks = torch.zeros(2 * group, dtype=torch.int32)
        _dw, _db = torch.zeros(2, group, N)
        dw, db, dx = torch.empty_like(w), torch.empty_like(w), torch.empty_like(dy)
        _layer_norm_bwd_dx_fused[(M,)](
            dx, dy, _dw, _db, x, w, mean, rstd, locks, x.stride(0), N,
            BLOCK_SIZE_N=triton.next_power_of_2(N), GROUP_SIZE_M=group, num_warps=8,
        )  # fmt: skip
        _layer_norm_bwd_dwdb[lambda meta: (triton.cdiv(N, meta["BLOCK_SIZE_N"]),)](
            _dw, _db, dw, db, min(group, M), N, BLOCK_SIZE_M=32, BLOCK_SIZE_N=128, num_ctas=1
        )
        return dx, None, dw, db, None


@each_value(("m, n", [(151, 1000), (3, 64), (1000, 77)]), ("dtype", ["float32", "float16"]))
def test_layer_norm_forward_and_backward(dtype: str, m: int, n: int):
    x = (-2.3 + 0.5 * torch.randn(m, n)).to(getattr(torch, dtype)).requires_grad_()
    weight, bias = (torch.rand(n).to(x.dtype).requires_grad_() for _ in range(2))
    dy = 0.1 * torch.randn(m, n).to(x.dtype)
    y = LayerNorm.apply(x, (n,), weight, bias, 1e-5)
    y.backward(dy)
    wide = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    expected = torch.nn.functional.layer_norm(wide[0], (n,), wide[1], wide[2], 1e-5)
    expected.backward(dy.double())
    tolerance = 1e-4 if dtype == "float32" else 1e-2
    torch.testing.assert_close(y.double(), expected, atol=tolerance, rtol=tolerance)
    for ours, theirs in zip((x, weight, bias), wide, strict=True):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, atol=tolerance, rtol=tolerance)


@triton.jit
def batch_statistics(x_ptr, mean_ptr, m2_ptr, N, C, BLOCK: tl.constexpr, BLOCK_C: tl.constexpr):
    """Welford's update along rows, per channel, merged with a combine function of three values."""
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    rows = tl.arange(0, BLOCK)
    inside = (rows[:, None] < N) & (c[None, :] < C)
    x = tl.load(x_ptr + rows[:, None] * C + c[None, :], mask=inside, other=0.0)
    count = inside.to(tl.float32)
    mean, m2, _weight = tl.reduce((x, tl.zeros_like(x), count), 0, welford_combine)
    tl.store(mean_ptr + c, mean, mask=c < C)
    tl.store(m2_ptr + c, m2, mask=c < C)


@triton.jit
def welford_combine(mean_1, m2_1, weight_1, mean_2, m2_2, weight_2):
    delta = mean_2 - mean_1
    new_weight = weight_1 + weight_2
    ratio = tl.where(new_weight == 0.0, 0.0, weight_2 / new_weight)
    return mean_1 + delta * ratio, m2_1 + m2_2 + delta * delta * weight_1 * ratio, new_weight


def test_welford_reduction_along_rows():
    x = torch.randn(50, 37) + 100
    mean, m2 = torch.empty(37), torch.empty(37)
    batch_statistics[(3,)](x, mean, m2, 50, 37, BLOCK=64, BLOCK_C=16)
    torch.testing.assert_close(mean.double(), x.double().mean(0), atol=1e-4, rtol=0)
    torch.testing.assert_close(m2.double() / 49, x.double().var(0), atol=0, rtol=1e-3)
