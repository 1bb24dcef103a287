"""Recurrences that flash-linear-attention has no reference of, token by token; tensors are [B, T, H, D]."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def recurrence(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor | None = None,
    beta: torch.Tensor | None = None,
    scale: float | None = None,
) -> torch.Tensor:
    """o_t = scale * q_t H_t of H_t = exp(g_t) H_(t-1) + k_t (v_t), with beta the delta rule.

    q, k: [B, T, H, K]; v: [B, T, H, V]; g: [B, T, H] or [B, T, H, K], logarithms; beta: [B, T, H].
    """
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3])
    made: list[torch.Tensor] = []
    for t in range(q.shape[1]):
        if g is not None:
            decay = g[:, t].exp()
            state = state * (decay[..., None, None] if decay.dim() == 2 else decay[..., None])
        new = v[:, t]
        if beta is not None:
            new = (new - torch.einsum("bhk,bhkv->bhv", k[:, t], state)) * beta[:, t, :, None]
        state = state + k[:, t, :, :, None] * new[:, :, None, :]
        made.append(torch.einsum("bhk,bhkv->bhv", q[:, t] * scale, state))
    return torch.stack(made, 1)


def retention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A decay of its own for each head."""
    decay = torch.log1p(-(2.0 ** (-5.0 - torch.arange(q.shape[2]))))
    return recurrence(q, k, v, decay.expand(q.shape[:3]))


def _states(shape: tuple[int, ...], steps: int, step: Callable[[Tensor, int], tuple[Tensor, Tensor]]) -> Tensor:
    """What each step gives, of a state that begins with zeros: [B, T, ...]."""
    state, made = torch.zeros(shape), list[Tensor]()
    for t in range(steps):
        value, state = step(state, t)
        made.append(value)
    return torch.stack(made, 1)


def _shape(k: Tensor, v: Tensor) -> tuple[int, ...]:
    return k.shape[0], k.shape[2], k.shape[3], v.shape[3]


def _read(q: Tensor, state: Tensor) -> Tensor:
    return torch.einsum("bhk,bhkv->bhv", q, state)


def low_rank(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, gk: Tensor | None, scale: float) -> Tensor:
    """o_t = scale * q_t H_t of H_t = exp(gk_t) H_(t-1) + b_t (a_t H_(t-1)) + k_t v_t."""

    def step(state: Tensor, t: int) -> tuple[Tensor, Tensor]:
        seen = _read(a[:, t], state)
        kept = state if gk is None else state * gk[:, t, :, :, None].exp()
        state = kept + b[:, t, :, :, None] * seen[:, :, None] + k[:, t, :, :, None] * v[:, t, :, None]
        return _read(q[:, t] * scale, state), state

    return _states(_shape(k, v), q.shape[1], step)


def iplr(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The identity plus a low rank."""
    return low_rank(q, k, v, a, b, None, q.shape[-1] ** -0.5)


def dplr(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, gk: Tensor) -> Tensor:
    """A diagonal plus a low rank."""
    return low_rank(q, k, v, a, b, gk, q.shape[-1] ** -0.5)


def rwkv7(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """RWKV-7: a diagonal plus a low rank, not scaled."""
    return low_rank(r, k, v, a, b, w, 1.0)


def rwkv7_mul(r: Tensor, w: Tensor, k: Tensor, v: Tensor, kk: Tensor, a: Tensor) -> Tensor:
    """RWKV-7 of the normalised key and the rate."""
    return low_rank(r, k, v, -kk, kk * a, w, 1.0)


def rwkv4(w: Tensor, u: Tensor, k: Tensor, v: Tensor, state: Tensor) -> Tensor:
    """RWKV-4 of [B, T, C]; w: logarithm of the decay's rate."""

    sums, made = state[:, :2, 0].transpose(0, 1) * state[:, 2, 0].exp(), list[Tensor]()
    for t in range(k.shape[1]):
        now, seen = (u + k[:, t]).exp(), k[:, t].exp()
        made.append((sums[0] + now * v[:, t]) / (sums[1] + now))
        sums = sums * torch.exp(-w.exp()) + torch.stack((seen * v[:, t], seen))
    return torch.stack(made, 1)


def rwkv6(r: Tensor, k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Tensor:
    """o_t = scale * r_t (H_(t-1) + u k_t v_t) of H_t = exp(w_t) H_(t-1) + k_t v_t."""

    def step(state: Tensor, t: int) -> tuple[Tensor, Tensor]:
        new = k[:, t, :, :, None] * v[:, t, :, None]
        value = _read(r[:, t] * r.shape[-1] ** -0.5, state + u[..., None] * new)
        return value, state * w[:, t, :, :, None].exp() + new

    return _states(_shape(k, v), r.shape[1], step)


def oja(q: Tensor, k: Tensor, v: Tensor, gv: Tensor, beta: Tensor) -> Tensor:
    """H_t = H' + beta_t (k_t - H' v_t) v_t of H' = H_(t-1) exp(gv_t)."""

    def step(state: Tensor, t: int) -> tuple[Tensor, Tensor]:
        state = state * gv[:, t, :, None].exp()
        left = k[:, t] - torch.einsum("bhkv,bhv->bhk", state, v[:, t])
        state = state + (left * beta[:, t, :, None])[..., None] * v[:, t, :, None]
        return _read(q[:, t] * q.shape[-1] ** -0.5, state), state

    return _states(_shape(k, v), q.shape[1], step)


def lightnet(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keys as a running softmax over time."""
    z = k.logcumsumexp(1)
    return recurrence(q, (k - z).exp(), v, torch.cat((z[:, :1], z[:, :-1]), 1) - z)


def lightning(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Lightning attention's decays, of the first of several layers."""
    heads = q.shape[2]
    return recurrence(q, k, v, (-(8 / heads) * torch.arange(heads)).expand(q.shape[:3]))


def normalised(path: str) -> Callable[..., Tensor]:
    """A reference of fla that takes the queries and keys (the first two) of length 1."""
    module, _, name = path.rpartition(".")

    def run(q: Tensor, k: Tensor, *rest: Tensor) -> Tensor:
        unit = (F.normalize(x, dim=-1) for x in (q, k))
        return getattr(import_module(f"fla.ops.{module}"), name)(*unit, *rest)[0]

    return run


def convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """SiLU of a causal convolution over time of each channel of x: [B, T, D]."""
    padded = F.pad(x.transpose(1, 2), (weight.shape[1] - 1, 0))
    return F.silu(F.conv1d(padded, weight[:, None], bias, groups=x.shape[2])).transpose(1, 2)


def kl_div(x: Tensor, target_x: Tensor, weight: Tensor, target_weight: Tensor) -> Tensor:
    """KL divergence of two linear layers' softmax."""
    mine, theirs = F.linear(x, weight).log_softmax(-1), F.linear(target_x, target_weight).softmax(-1)
    return F.kl_div(mine, theirs.detach(), reduction="batchmean")


def group_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Four groups."""
    return F.group_norm(x, 4, weight, bias)


def rms_norm_linear(x: Tensor, norm_weight: Tensor, norm_bias: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """RMS norm and a linear layer."""
    normal = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    return F.linear(normal * norm_weight + norm_bias, weight, bias)


def rms_norm_linear_quant(x: Tensor, norm_weight: Tensor, norm_bias: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The same with rows of 8 bits and a weight of -1, 0 and 1; gradients pass through the rounding."""
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * norm_weight + norm_bias
    scale = 127.0 / y.abs().amax(-1, keepdim=True).clamp(min=1e-5)
    rounded = (y * scale).round().clamp(-128, 127) / scale
    size = 1.0 / weight.abs().mean().clamp(min=1e-5)
    ternary = (weight * size).round().clamp(-1, 1) / size
    return F.linear(y + (rounded - y).detach(), weight + (ternary - weight).detach(), bias)


def grpo(logits: Tensor, ref_logp: Tensor, input_ids: Tensor, advantages: Tensor) -> Tensor:
    """Loss of each of the L last tokens; logits: [B, L + 1, V], input_ids: [B, K + L]."""
    known = logits[:, :-1].log_softmax(-1)
    log_probability = known.gather(-1, input_ids[:, -known.shape[1] :, None])[..., 0]
    further = ref_logp - log_probability
    gain = (log_probability - log_probability.detach()).exp() * advantages[:, None]
    return 0.1 * (further.exp() - further - 1) - gain


def grouped_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention in which several heads of queries share one of keys and values."""
    turned = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(*turned, is_causal=True, enable_gqa=True).transpose(1, 2)
