"""Kernels of inference engines: mixture of experts, unpacked weights, fused norms, sampling, linear attention."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl

torch = pytest.importorskip("torch")


@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def fused_moe_kernel(
    a_ptr, b_ptr, c_ptr, topk_weights_ptr, sorted_token_ids_ptr, expert_ids_ptr, num_tokens_post_padded_ptr,
    N, K, num_valid_tokens, stride_am, stride_be, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    MUL_ROUTED_WEIGHT: tl.constexpr, top_k: tl.constexpr, compute_type: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // num_pid_n
    pid_n = pid % num_pid_n
    num_tokens_post_padded = tl.load(num_tokens_post_padded_ptr)
    if pid_m * BLOCK_M >= num_tokens_post_padded:
        return
    offs_token_id = pid_m * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    offs_token = tl.load(sorted_token_ids_ptr + offs_token_id)
    token_mask = offs_token < num_valid_tokens
    off_experts = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_token[:, None] // top_k * stride_am + offs_k[None, :])
    b_ptrs = b_ptr + off_experts * stride_be + (offs_k[:, None] + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        if EVEN_K:
            a = tl.load(a_ptrs, mask=token_mask[:, None], other=0.0)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=token_mask[:, None] & (offs_k[None, :] < K - k * BLOCK_K), other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator += tl.dot(a, b)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    if MUL_ROUTED_WEIGHT:
        moe_weight = tl.load(topk_weights_ptr + offs_token, mask=token_mask, other=0)
        accumulator = accumulator * moe_weight[:, None]
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_token[:, None] + offs_cn[None, :]
    tl.store(c_ptrs, accumulator.to(compute_type), mask=token_mask[:, None] & (offs_cn[None, :] < N))


@pytest.mark.parametrize("k", [64, 72])
def test_fused_mixture_of_experts(k: int):
    tokens, experts, top_k, n, block_m = 21, 5, 2, 40, 16
    x, w = torch.randn(tokens, k), torch.randn(experts, n, k)
    weights, ids = torch.randn(tokens, experts).softmax(1).topk(top_k)
    routed, expert_of_block = [], []
    for expert in range(experts):
        mine = (ids.flatten() == expert).nonzero().flatten().tolist()
        mine += [tokens * top_k] * (-len(mine) % block_m)
        routed += mine
        expert_of_block += [expert] * (len(mine) // block_m)
    c = torch.zeros(tokens * top_k, n)
    blocks = len(expert_of_block) + 2  # two blocks more than there is work for
    fused_moe_kernel[(blocks * triton.cdiv(n, 32),)](
        x, w, c, weights, torch.tensor(routed + [0] * 2 * block_m, dtype=torch.int32),
        torch.tensor([*expert_of_block, 0, 0], dtype=torch.int32), torch.tensor([len(routed)], dtype=torch.int32),
        n, k, tokens * top_k, x.stride(0), w.stride(0), w.stride(1), c.stride(0),
        BLOCK_M=block_m, BLOCK_N=32, BLOCK_K=32, MUL_ROUTED_WEIGHT=True, top_k=top_k, compute_type=tl.float32,
    )  # fmt: skip
    expected = torch.einsum("tk,tsnk->tsn", x.double(), w[ids].double()) * weights.double()[..., None]
    torch.testing.assert_close(c.double().view_as(expected), expected, atol=1e-4, rtol=1e-4)


@triton.jit
def awq_dequantize_kernel(q_ptr, s_ptr, z_ptr, out_ptr, K, N, GROUP: tl.constexpr, BX: tl.constexpr, BY: tl.constexpr):
    """Eight 4-bit values in each int32 in the order 0, 4, 1, 5, 2, 6, 3, 7, spread with tl.interleave."""
    cols = tl.program_id(0) * BX + tl.arange(0, BX)
    rows = tl.program_id(1) * BY + tl.arange(0, BY)
    packed = tl.load(q_ptr + rows[:, None] * (N // 8) + cols[None, :])
    values = tl.interleave(packed, packed)
    values = tl.interleave(values, values)
    values = tl.interleave(values, values)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (BY * BX, 8))
    shifts = tl.reshape(shifts, (BY, BX * 8))
    values = (values >> shifts) & 0xF
    out_cols = tl.program_id(0) * BX * 8 + tl.arange(0, BX * 8)
    group = rows // GROUP
    scales = tl.load(s_ptr + group[:, None] * N + out_cols[None, :])
    zeros = tl.load(z_ptr + group[:, None] * N + out_cols[None, :])
    tl.store(out_ptr + rows[:, None] * N + out_cols[None, :], ((values - zeros) * scales).to(out_ptr.type.element_ty))


def test_awq_dequantize():
    k, n, group = 32, 128, 16
    q = torch.randint(0, 16, (k, n))
    order = [0, 4, 1, 5, 2, 6, 3, 7]
    packed = sum(q.view(k, n // 8, 8)[:, :, i] << (4 * order[i]) for i in range(8)).to(torch.int32)
    scales, zeros = torch.rand(k // group, n).half(), torch.randint(0, 16, (k // group, n), dtype=torch.int32)
    out = torch.empty(k, n, dtype=torch.float16)
    awq_dequantize_kernel[(n // 64, k // 8)](packed, scales, zeros, out, k, n, group, BX=8, BY=8)
    expected = (q - zeros.repeat_interleave(group, 0)) * scales.double().repeat_interleave(group, 0)
    torch.testing.assert_close(out.double(), expected, atol=1e-2, rtol=1e-3)


@triton.jit
def fused_add_rms_fp8_kernel(x_ptr, res_ptr, w_ptr, out_ptr, scale_ptr, N, eps, FP8_MAX: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    res = tl.load(res_ptr + row * N + cols, mask=mask, other=0.0).to(tl.float32)
    x += res
    tl.store(res_ptr + row * N + cols, x.to(res_ptr.dtype.element_ty), mask=mask)
    x *= tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    x *= tl.load(w_ptr + cols, mask=mask, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(x)), 1e-10) / FP8_MAX
    q = tl.clamp(x / scale, -FP8_MAX, FP8_MAX).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * N + cols, q, mask=mask)
    tl.store(scale_ptr + row, scale)


def test_fused_add_rms_norm_and_fp8_quantization():
    x, residual = torch.randn(2, 9, 200).bfloat16()
    w, out, scale = torch.rand(200), torch.empty(9, 200, dtype=torch.float8_e4m3fn), torch.empty(9)
    summed = residual.clone()
    fused_add_rms_fp8_kernel[(9,)](x, summed, w, out, scale, 200, 1e-6, FP8_MAX=448.0, B=256)
    expected = x.double() + residual.double()
    torch.testing.assert_close(summed.double(), expected, atol=2e-2, rtol=8e-3)
    expected = torch.nn.functional.rms_norm(expected, (200,), w.double(), 1e-6)
    torch.testing.assert_close(out.double() * scale.double()[:, None], expected, atol=1e-3, rtol=2**-4)
    assert out.float().abs().amax(1).eq(448).all()


@triton.jit
def _max_with_index(a, i, b, j):
    take_a = (a > b) | ((a == b) & (i < j))
    return tl.where(take_a, a, b), tl.where(take_a, i, j)


@triton.jit
def gumbel_sample_kernel(logits_ptr, out_ptr, seed_ptr, V, temperature, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    seed = tl.load(seed_ptr + row)
    best = float("-inf")
    best_index = 0
    for start in range(0, V, BLOCK):
        i = start + tl.arange(0, BLOCK)
        logits = tl.load(logits_ptr + row * V + i, mask=i < V, other=float("-inf"))
        if temperature > 0:
            u = tl.rand(seed, i)
            logits = logits / temperature - tl.log(-tl.log(u + 1e-10) + 1e-10)
        value, index = tl.reduce((logits, i), 0, _max_with_index)
        if value > best:
            best, best_index = value, index
    tl.store(out_ptr + row, best_index)


def test_sampling_follows_the_distribution():
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5]).repeat(4000, 100)[:, :5].contiguous()
    out = torch.empty(4000, dtype=torch.int64)
    gumbel_sample_kernel[(4000,)](logits, out, torch.arange(4000), 5, 0.0, BLOCK=4)
    assert out.eq(2).all()
    gumbel_sample_kernel[(4000,)](logits, out, torch.arange(4000), 5, 1.0, BLOCK=4)
    seen = torch.bincount(out, minlength=5) / 4000
    torch.testing.assert_close(seen, logits[0].softmax(0), atol=0.03, rtol=0)


@triton.jit
def chunk_linear_attention_kernel(
    q, k, v, g, o, T, scale, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr
):
    """Gated linear attention in chunks: the state crosses chunks, the inside of a chunk is two dots."""
    i_v, i_h = tl.program_id(0), tl.program_id(1)
    o_t = tl.arange(0, BT)
    causal = o_t[:, None] >= o_t[None, :]
    state = tl.zeros([K, BV], dtype=tl.float32)
    for i_t in range(tl.cdiv(T, BT)):
        p_q = tl.make_block_ptr(q + i_h * T * K, (T, K), (K, 1), (i_t * BT, 0), (BT, K), (1, 0))
        p_k = tl.make_block_ptr(k + i_h * T * K, (K, T), (1, K), (0, i_t * BT), (K, BT), (0, 1))
        p_v = tl.make_block_ptr(v + i_h * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_o = tl.make_block_ptr(o + i_h * T * V, (T, V), (V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        p_g = tl.make_block_ptr(g + i_h * T, (T,), (1,), (i_t * BT,), (BT,), (0,))
        b_q = tl.load(p_q, boundary_check=(0, 1), padding_option="zero") * scale
        b_k = tl.load(p_k, boundary_check=(0, 1), padding_option="zero")
        b_v = tl.load(p_v, boundary_check=(0, 1), padding_option="zero")
        b_g = tl.cumsum(tl.load(p_g, boundary_check=(0,)), axis=0)
        b_glast = tl.sum(tl.where(o_t == BT - 1, b_g, 0.0))
        b_s = tl.dot(b_q, b_k)
        b_s = tl.where(causal, b_s * tl.exp(b_g[:, None] - b_g[None, :]), 0)
        b_o = tl.dot(b_q * tl.exp(b_g)[:, None], state) + tl.dot(b_s, b_v)
        state *= tl.exp(b_glast)
        state += tl.dot(b_k * tl.exp(b_glast - b_g)[None, :], b_v)
        tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@pytest.mark.parametrize("steps", [64, 75])
def test_gated_linear_attention_in_chunks(steps: int):
    q, k = torch.randn(2, 3, steps, 32)
    v, g = torch.randn(3, steps, 64), -torch.rand(3, steps) / 4
    o = torch.full_like(v, float("nan"))
    chunk_linear_attention_kernel[(2, 3)](q, k, v, g, o, steps, 0.2, K=32, V=64, BT=16, BV=32)
    state, expected = torch.zeros(3, 32, 64).double(), torch.empty(3, steps, 64).double()
    for t in range(steps):
        state = state * g[:, t, None, None].double().exp() + k[:, t, :, None].double() * v[:, t, None].double()
        expected[:, t] = torch.einsum("hk,hkv->hv", q[:, t].double() * 0.2, state)
    torch.testing.assert_close(o.double(), expected, atol=1e-4, rtol=1e-4)


@triton.jit
def selective_scan_kernel(
    u_ptr, delta_ptr, A_ptr, B_ptr, C_ptr, y_ptr, h_ptr, L, D, N: tl.constexpr, BD: tl.constexpr, HAS_INIT: tl.constexpr
):
    """A state-space model's recurrence, one step after the other, with a state of [channels, N] that a loop carries."""
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    n = tl.arange(0, N)
    dm = d < D
    A = tl.load(A_ptr + d[:, None] * N + n[None, :], mask=dm[:, None], other=0.0)
    if HAS_INIT:
        h = tl.load(h_ptr + d[:, None] * N + n[None, :], mask=dm[:, None], other=0.0)
    else:
        h = tl.zeros((BD, N), dtype=tl.float32)
    for t in range(L):
        u = tl.load(u_ptr + t * D + d, mask=dm, other=0.0)
        delta = tl.load(delta_ptr + t * D + d, mask=dm, other=0.0)
        delta = tl.where(delta > 20.0, delta, tl.log(1.0 + tl.exp(delta)))
        b = tl.load(B_ptr + t * N + n)
        c = tl.load(C_ptr + t * N + n)
        h = h * tl.exp(delta[:, None] * A) + (delta * u)[:, None] * b[None, :]
        tl.store(y_ptr + t * D + d, tl.sum(h * c[None, :], axis=1), mask=dm)
    tl.store(h_ptr + d[:, None] * N + n[None, :], h, mask=dm[:, None])


@pytest.mark.parametrize("has_init", [False, True])
def test_selective_scan(has_init: bool):
    length, channels, states = 40, 21, 16
    u, delta = torch.randn(2, length, channels)
    A, B, C = -torch.rand(channels, states), torch.randn(length, states), torch.randn(length, states)
    h, y = torch.randn(channels, states), torch.empty(length, channels)
    state = h.double() if has_init else torch.zeros(channels, states).double()
    selective_scan_kernel[(2,)](u, delta, A, B, C, y, h, length, channels, states, BD=16, HAS_INIT=has_init)
    step = torch.nn.functional.softplus(delta.double())
    for t in range(length):
        state = state * (step[t][:, None] * A).exp() + (step[t] * u[t])[:, None] * B[t]
        torch.testing.assert_close(y[t].double(), (state * C[t]).sum(1), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(h.double(), state, atol=1e-4, rtol=1e-4)
