"""Liger-Kernel's operations, each with what it should give in plain torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import randn

PACKAGES = ("liger-kernel==0.8.5",)
AS_CUDA = ("dyt",)  # asks a GPU for its multiprocessors in the backward pass, whatever the device
Operation = tuple[Callable[..., Any], Callable[..., Any], Sequence[Any]]


def _apply(module: str, name: str, *after: Any) -> Callable[..., Any]:
    """The autograd function `name`, with further arguments `after` the tensors."""

    def run(*inputs: Any) -> Any:
        found = getattr(import_module(f"liger_kernel.ops.{module}"), name).apply(*inputs, *after)
        return found[0] if isinstance(found, tuple) and found[0] is not None and module.endswith("entropy") else found

    return run


def _rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def _rope(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, ...]:
    def turned(x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, -1)
        return x * cos.unsqueeze(1) + torch.cat([-right, left], -1) * sin.unsqueeze(1)

    return turned(q), turned(k)


def _jsd(x: torch.Tensor, y: torch.Tensor, beta: float = 0.5) -> torch.Tensor:
    p, q = x.exp(), y.exp()
    m = (beta * q + (1 - beta) * p).log()
    return (beta * q * (y - m) + (1 - beta) * p * (x - m)).sum() / x.shape[0]


def _sparsemax(x: torch.Tensor) -> torch.Tensor:
    ordered = x.sort(-1, descending=True).values
    sums = ordered.cumsum(-1)
    places = torch.arange(1, x.shape[-1] + 1)
    count = (ordered * places > sums - 1).sum(-1, keepdim=True)
    threshold = (sums.gather(-1, count - 1) - 1) / count
    return (x - threshold).clamp(min=0)


def _linear_cross_entropy(x: torch.Tensor, w: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x @ w.T, t)


def _linear_jsd(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return _jsd(torch.log_softmax(x @ w.T, -1), torch.log_softmax(y @ v.T, -1))


def _moe(x: Any, gate_up: Any, down: Any, index: Any, weights: Any) -> torch.Tensor:
    out = torch.zeros_like(x)
    for slot in range(index.shape[1]):
        both = torch.einsum("th,tih->ti", x, gate_up[index[:, slot].long()])
        gate, up = both.chunk(2, -1)
        made = torch.einsum("ti,thi->th", F.silu(gate) * up, down[index[:, slot].long()])
        out = out + made * weights[:, slot : slot + 1]
    return out


def _fused_add_rms(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return _rms(x + r, w), x + r


def _poly(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    def norm(y: torch.Tensor) -> torch.Tensor:
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)

    return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name; inputs of floats require gradients."""
    torch.manual_seed(0)
    rows, other, weight = randn(256, 1000), randn(256, 1000), randn(1000)
    target = torch.randint(0, 1000, (256,))
    q, k = randn(2, 8, 128, 64), randn(2, 2, 128, 64)
    angles = torch.rand(2, 128, 32).repeat(1, 1, 2)
    cos, sin = angles.cos(), angles.sin()
    cos.no_gradient = sin.no_gradient = True  # type: ignore[attr-defined]
    hidden, head = randn(12, 64), randn(100, 64)
    few = torch.randint(0, 100, (12,))
    logs, others = torch.log_softmax(randn(12, 100), -1), torch.log_softmax(randn(12, 100), -1)
    experts = torch.stack([torch.randperm(4)[:2] for _ in range(12)]).to(torch.int32)
    shares, probabilities = others.exp(), logs.exp()
    for constant in (others, shares):
        constant.no_gradient = True  # type: ignore[attr-defined]
    teacher, teacher_head = randn(12, 64), randn(100, 64)
    teacher.no_gradient = teacher_head.no_gradient = True  # type: ignore[attr-defined]
    return {
        "softmax": (_apply("softmax", "LigerSoftmaxFunction"), partial(torch.softmax, dim=-1), (rows,)),
        "sparsemax": (_apply("sparsemax", "LigerSparsemaxFunction", -1), _sparsemax, (rows,)),
        "rms_norm": (_apply("rms_norm", "LigerRMSNormFunction", 1e-6), _rms, (rows, weight)),
        "fused_add_rms_norm": (
            _apply("fused_add_rms_norm", "LigerFusedAddRMSNormFunction", 1e-6),
            _fused_add_rms,
            (rows, other, weight),
        ),
        "modulated_rms_norm": (
            lambda x, w, scale, shift: _apply("modulated_rms_norm", "LigerModulatedRMSNormFunction")(
                x, w, scale, shift, 1e-6, 0.0, "llama", False
            ),
            lambda x, w, scale, shift: (1 + scale) * _rms(x, w) + shift,
            (randn(4, 64, 512), randn(512), randn(4, 1, 512), randn(4, 1, 512)),
        ),
        "layer_norm": (
            _apply("layer_norm", "LigerLayerNormFunction", 1e-6),
            lambda x, w, b: F.layer_norm(x, (1000,), w, b, 1e-6),
            (rows, weight, randn(1000)),
        ),
        "group_norm": (
            lambda x, w, b: _apply("group_norm", "LigerGroupNormFunction")(x, w, b, 8, 2, 1e-6),
            lambda x, w, b: F.group_norm(x, 2, w, b, 1e-6),
            (randn(3, 8, 33), randn(8), randn(8)),
        ),
        "poly_norm": (_apply("poly_norm", "LigerPolyNormFunction", 1e-6, False), _poly, (rows, randn(3), randn(()))),
        "dyt": (
            _apply("dyt", "LigerDyTFunction"),
            lambda x, a, g, b: g * torch.tanh(a * x) + b,
            (rows, randn(1), weight, randn(1000)),
        ),
        "swiglu": (_apply("swiglu", "LigerSiLUMulFunction"), lambda a, b: F.silu(a) * b, (rows, other)),
        "geglu": (
            _apply("geglu", "LigerGELUMulFunction"),
            lambda a, b: F.gelu(a, approximate="tanh") * b,
            (rows, other),
        ),
        "relu_squared": (_apply("relu_squared", "LigerReLUSquaredFunction"), lambda x: F.relu(x) ** 2, (rows,)),
        "cross_entropy": (
            _apply("cross_entropy", "LigerCrossEntropyFunction", None),
            F.cross_entropy,
            (rows, target),
        ),
        "fused_linear_cross_entropy": (
            _apply("fused_linear_cross_entropy", "LigerFusedLinearCrossEntropyFunction"),
            _linear_cross_entropy,
            (hidden, head, few),
        ),
        "jsd": (_apply("jsd", "LigerJSDFunction"), _jsd, (logs, others)),
        "fused_linear_jsd": (
            _apply("fused_linear_jsd", "LigerFusedLinearJSDFunction"),
            _linear_jsd,
            (hidden, head, teacher, teacher_head),
        ),
        "kl_div": (
            _apply("kl_div", "LigerKLDivLossFunction"),
            lambda x, y: F.kl_div(x, y, reduction="batchmean"),
            (logs, shares),
        ),
        "tvd": (
            _apply("tvd", "LigerTVDLossFunction"),
            lambda p, q: 0.5 * (p - q).abs().sum() / p.shape[0],
            (probabilities, shares),
        ),
        "rope": (_apply("rope", "LigerRopeFunction"), _rope, (q, k, cos, sin)),
        "fused_moe": (
            _apply("fused_moe", "LigerFusedMoEFunction"),
            _moe,
            (randn(12, 64), randn(4, 64, 64) / 8, randn(4, 64, 32) / 8, experts, torch.rand(12, 2)),
        ),
        "multi_token_attention": (
            _apply("multi_token_attention", "LigerMultiTokenAttentionFunction", None, 1, 1, 1, 1, False),
            _multi_token,
            (randn(2, 3, 16, 16), randn(3, 3, 3, 3)),
        ),
    }


def _multi_token(scores: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    keep = torch.tril(torch.ones(scores.shape[-2:], dtype=torch.bool))
    found = torch.softmax(scores.masked_fill(~keep, -1e9), -1)
    return F.conv2d(found, weight, padding=1).masked_fill(~keep, 0.0)
