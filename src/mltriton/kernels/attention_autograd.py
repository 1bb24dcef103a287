# pyright: basic
# torch's own types are incomplete here.
"""`flash_attention` for torch's automatic differentiation.

Level: user. The only module of the library that needs torch; `flash_attention` imports it for tensors that require a
gradient. Keeps q, k, v, o and the log-sum-exp between the passes, never the matrix of scores.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from mltriton.kernels.attention import flash_attention_with_lse
from mltriton.kernels.attention_backward import flash_attention_backward


class FlashAttention(torch.autograd.Function):
    """`FlashAttention.apply(q, k, v, causal, sm_scale, target)` is `flash_attention`, to be differentiated once."""

    @staticmethod
    def forward(
        ctx: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        causal: bool,
        sm_scale: float | None,
        target: str | None = None,
    ) -> torch.Tensor:
        o, lse = flash_attention_with_lse(q, k, v, causal, sm_scale, target=target)
        ctx.save_for_backward(q, k, v, o, lse)
        ctx.options = {"causal": causal, "sm_scale": sm_scale, "target": target}
        return o

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (do,) = grad_outputs
        gradients = flash_attention_backward(do, *ctx.saved_tensors, **ctx.options)
        return *gradients, *[None] * len(ctx.options)
