"""Attention, late interaction and the loss of a vocabulary, by five libraries."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from others import Operation, constant
from torch import Tensor, rand, randint, randn


def _call(module: str, name: str, **options: Any) -> Callable[..., Any]:
    """A function of a module, which is imported when it is called."""
    return lambda *inputs: getattr(import_module(module), name)(*inputs, **options)


def _attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def _entmax(x: Tensor, alpha: float) -> Tensor:
    """Entmax by bisection; one step of Newton's method at its end gives the derivative."""
    power = 1 / (alpha - 1)
    y = (alpha - 1) * x
    low, high = (y.max(-1, keepdim=True).values.detach() - shift for shift in (1, 0))
    for _ in range(60):
        middle = (low + high) / 2
        over = (y.detach() - middle).clamp(min=0).pow(power).sum(-1, keepdim=True) >= 1
        low, high = torch.where(over, middle, low), torch.where(over, high, middle)
    left = (y - low).clamp(min=0)
    slope = torch.where(left > 0, power * left.clamp(min=1e-30).pow(power - 1), 0).sum(-1, keepdim=True).detach()
    threshold = low + (left.pow(power).sum(-1, keepdim=True) - 1) / slope
    return (y - threshold).clamp(min=0).pow(power)


def _sparse_attention(q: Tensor, k: Tensor, v: Tensor, alpha: float = 1.5, causal: bool = True) -> Tensor:
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:]).tril().bool(), -1e4)
    return _entmax(scores, alpha) @ v


def _best(q: Tensor, d: Tensor) -> Tensor:
    """Of each query and document the sum over the query's tokens of the best product with a token of the document."""
    return torch.einsum("ild,jtd->ijlt", q, d).max(-1).values.sum(-1)


def _packed(q: Tensor, d: Tensor, ends_q: Tensor, ends_d: Tensor) -> Tensor:
    queries, documents = q.tensor_split(ends_q[1:-1].long()), d.tensor_split(ends_d[1:-1].long())
    return torch.stack([torch.stack([(a @ b.T).max(-1).values.sum() for b in documents]) for a in queries])


def _pairs(q: Tensor, d: Tensor, ends_q: Tensor, ends_d: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return _packed(q, d, ends_q, ends_d)[first.long(), second.long()]


def _masked_best(q: Tensor, d: Tensor, kept: Tensor) -> Tensor:
    products = torch.einsum("ild,jtd->ijlt", q, d).masked_fill(~kept[None, :, None], float("-inf"))
    return products.max(-1).values.sum(-1)


def _projected(q: Tensor, hidden: Tensor, weight: Tensor) -> Tensor:
    return _best(q, F.normalize(hidden @ weight.T, dim=-1))


def _centroids(scores: Tensor, codes: Tensor, lengths: Tensor) -> Tensor:
    gathered = scores[codes.long()].masked_fill((torch.arange(codes.shape[1]) >= lengths[:, None])[..., None], -1e30)
    return gathered.max(1).values.sum(-1)


def _residual(q: Tensor, codes: Tensor, packed: Tensor, lengths: Tensor, centroids: Tensor, weights: Tensor) -> Tensor:
    buckets = torch.stack([(packed.int() >> shift) & 3 for shift in (0, 2, 4, 6)], -1).flatten(-2)
    tokens = F.normalize(centroids[codes.long()] + weights[buckets.long()], dim=-1)
    return _masked_best(F.normalize(q, dim=-1), tokens, torch.arange(codes.shape[1]) < lengths[:, None])


def _tokens(*shape: int) -> Tensor:
    """Unit vectors whose products are the same in tf32, so that the best token is the same."""
    return F.normalize(randn(*shape), dim=-1).bfloat16().float()


def _late() -> dict[str, Operation]:
    q, d = _tokens(5, 20, 64), _tokens(7, 90, 64)
    kept = rand(7, 90) < 0.7
    kept[:, 0] = True
    ends_q, ends_d = (torch.tensor(x, dtype=torch.int32) for x in ([0, 9, 30, 37], [0, 40, 41, 133, 180]))
    flat_q, flat_d = _tokens(37, 64), _tokens(180, 64)
    first, second = torch.tensor([0, 2, 1, 0], dtype=torch.int32), torch.tensor([3, 1, 0, 0], dtype=torch.int32)
    lengths, codes = torch.tensor([90, 3, 40, 77, 1], dtype=torch.int32), randint(0, 50, (5, 90), dtype=torch.int32)
    packed = randint(0, 256, (5, 90, 16), dtype=torch.uint8)
    name = "late_interaction_kernels"
    one, book = _tokens(1, 20, 64), constant(_tokens(50, 64), 0.1 * randn(4))
    return {
        "late_interaction: maxsim": (_call(name, "maxsim"), _best, (q, d)),
        "late_interaction: maxsim, lowmem": (_call(name, "maxsim", backward="lowmem"), _best, (q, d), 1e-3),
        "late_interaction: maxsim, masked": (
            lambda q, d, kept: _call(name, "maxsim")(q, d, None, kept),
            _masked_best,
            (q, d, kept),
        ),
        "late_interaction: maxsim_varlen": (_call(name, "maxsim_varlen"), _packed, (flat_q, flat_d, ends_q, ends_d)),
        "late_interaction: score_pairs": (
            _call(f"{name}.score_pairs", "score_pairs_packed"),
            _pairs,
            (flat_q, flat_d, ends_q, ends_d, first, second),
        ),
        "late_interaction: maxsim_from_hidden": (
            _call(f"{name}.fused_head", "maxsim_from_hidden"),
            _projected,
            (q, randn(7, 3, 96), randn(64, 96) / 8),
            5e-3,
        ),
        "late_interaction: plaid_approx_score": (
            _call(f"{name}.plaid", "plaid_approx_score"),
            _centroids,
            (*constant(randn(50, 20)), codes, lengths),
        ),
        "late_interaction: maxsim_residual": (
            _call(f"{name}.plaid", "maxsim_residual", nbits=2),
            _residual,
            (one, codes, packed, lengths, *book),
            1e-3,
        ),
    }


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    q, k, v = (randn(2, 4, 128, 64) for _ in range(3))
    rows = 2 * randn(33, 300)
    targets = randint(0, 1000, (130,))
    hidden, head = randn(130, 256).bfloat16() / 4, randn(1000, 256).bfloat16() / 4
    return {
        "cut_cross_entropy": (
            _call("cut_cross_entropy", "linear_cross_entropy"),
            lambda e, c, t: F.cross_entropy(e.float() @ c.float().T, t),
            (hidden, head, targets),
            2e-2,
        ),
        "cut_cross_entropy, softcap": (
            _call("cut_cross_entropy", "linear_cross_entropy", softcap=5.0, reduction="sum", filter_eps=None),
            lambda e, c, t: F.cross_entropy(5 * torch.tanh(e.float() @ c.float().T / 5), t, reduction="sum"),
            (hidden, head, targets),
            2e-2,
        ),
        "sageattention": (_call("sageattention", "sageattn"), _attention, constant(q, k, v), 5e-2),
        "sageattention, causal": (
            _call("sageattention", "sageattn", is_causal=True),
            partial(_attention, causal=True),
            constant(q, k, v),
            5e-2,
        ),
        "adasplash: entmax 1.5": (_call("adasplash", "triton_entmax"), partial(_entmax, alpha=1.5), (rows,)),
        "adasplash: sparsemax": (_call("adasplash", "triton_sparsemax"), partial(_entmax, alpha=2.0), (rows,)),
        "adasplash: entmax 1.3": (
            _call("adasplash", "triton_entmax_v1", alpha=1.3, n_iter=30, fast_math=False),
            partial(_entmax, alpha=1.3),
            (rows,),
            1e-3,
        ),
        "adasplash: attention": (
            _call("adasplash", "adasplash_v2", niter=4),
            _sparse_attention,
            [randn(2, 4, 256, 64) for _ in range(3)],
            5e-3,
        ),
        "adasplash: attention, first version": (
            _call("adasplash", "adasplash_v1", alpha=1.5, is_causal=False),
            partial(_sparse_attention, causal=False),
            [randn(2, 4, 256, 64) for _ in range(3)],
            5e-3,
        ),
        "jvp_flash_attention": (
            _call("jvp_flash_attention.jvp_attention", "attention", USE_TMA=False, warp_specialize=False),
            _attention,
            [randn(2, 4, 128, 64) for _ in range(3)],
            5e-3,
        ),
        "jvp_flash_attention, causal": (
            _call("jvp_flash_attention.jvp_attention", "attention", causal=True),
            partial(_attention, causal=True),
            [randn(2, 4, 128, 64) for _ in range(3)],
            5e-3,
        ),
        "jvp_flash_attention, tangents": (
            lambda *x: torch.func.jvp(
                lambda q, k, v: import_module("jvp_flash_attention.jvp_attention").JVPAttn.fwd_dual(q, k, v),
                x[:3],
                x[3:],
            ),
            lambda *x: torch.func.jvp(lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v, x[:3], x[3:]),
            constant(*(randn(2, 4, 128, 64) for _ in range(6))),
            5e-3,
        ),
        **_late(),
    }
