"""Operations of flash-linear-attention (fla-core), each with the recurrence that it computes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from fla_further import AS_CUDA as AS_CUDA
from fla_further import NEAR as NEAR
from fla_further import NEAR_BFLOAT16, Operation, further
from fla_loops import recurrence, retention
from torch import randn

PACKAGES = ("fla-core==0.6.0", "einops==0.8.2")


def _call(module: str, name: str, **always: Any) -> Callable[..., Any]:
    """The first of what `fla.MODULE.NAME` gives."""

    def run(*inputs: Any) -> Any:
        found = getattr(import_module(f"fla.{module}"), name)(*inputs, **always)
        return found[0] if isinstance(found, tuple) else found

    return run


def _swish(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def _hgrn(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    state, made = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = g[:, t].exp() * state + x[:, t]
        made.append(state)
    return torch.stack(made, 1)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    found = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=True)
    return found.transpose(1, 2)


def _norm_gate(x: torch.Tensor, g: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w * F.silu(g)


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name; inputs of floats require gradients."""
    torch.manual_seed(0)
    q, k, v = randn(1, 128, 2, 32), randn(1, 128, 2, 32), randn(1, 128, 2, 32)
    unit = F.normalize(k, dim=-1)
    g, gk = F.logsigmoid(randn(1, 128, 2)), F.logsigmoid(randn(1, 128, 2, 32)) / 4
    beta = torch.rand(1, 128, 2)
    rows = randn(6, 257)
    return {
        **{
            f"linear_attn, {form}": (
                _call("ops.linear_attn", f"{form}_linear_attn", normalize=False),
                recurrence,
                (q, k, v),
            )
            for form in ("chunk", "fused_recurrent")
        },
        **{
            f"retention, {form}": (_call("ops.retention", f"{form}_retention"), retention, (q, k, v))
            for form in ("chunk", "fused_recurrent")
        },
        **{
            f"simple_gla, {form}": (_call("ops.simple_gla", f"{form}_simple_gla"), recurrence, (q, k, v, g))
            for form in ("chunk", "fused_recurrent")
        },
        **{
            f"gla, {form}": (_call("ops.gla", f"{form}_gla"), recurrence, (q, k, v, gk))
            for form in ("chunk", "fused_recurrent")
        },
        "delta_rule, chunk": (
            _call("ops.delta_rule", "chunk_delta_rule"),  # refuses float32
            lambda q, k, v, beta: recurrence(q.float(), k.float(), v.float(), None, beta.float()).bfloat16(),
            tuple(x.bfloat16() for x in (q, unit, v, beta)),
            NEAR_BFLOAT16,
        ),
        "delta_rule, fused_recurrent": (
            _call("ops.delta_rule", "fused_recurrent_delta_rule"),
            lambda q, k, v, beta: recurrence(q, k, v, None, beta),
            (q, unit, v, beta),
        ),
        "gated_delta_rule, chunk": (
            _call("ops.gated_delta_rule", "chunk_gated_delta_rule"),
            recurrence,
            (q, unit, v, g, beta),
        ),
        "kda, chunk": (_call("ops.kda", "chunk_kda"), recurrence, (q, unit, v, gk, beta)),
        "hgrn, chunk": (_call("ops.hgrn", "chunk_hgrn"), _hgrn, (randn(1, 128, 64), F.logsigmoid(randn(1, 128, 64)))),
        "hgrn, fused_recurrent": (
            _call("ops.hgrn", "fused_recurrent_hgrn"),
            _hgrn,
            (randn(1, 128, 64), F.logsigmoid(randn(1, 128, 64))),
        ),
        "attn, parallel": (_call("ops.attn", "parallel_attn"), _attention, (q, k, v)),
        "modules.l2norm": (_call("modules.l2norm", "l2norm"), lambda x: F.normalize(x, dim=-1), (rows,)),
        "modules.rms_norm": (
            lambda x, w: _call("modules.layernorm", "rms_norm", eps=1e-5)(x, w, None),
            lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * w,
            (rows, randn(257)),
        ),
        "modules.layer_norm": (
            lambda x, w, b: _call("modules.layernorm", "layer_norm", eps=1e-5)(x, w, b),
            lambda x, w, b: F.layer_norm(x, (257,), w, b),
            (rows, randn(257), randn(257)),
        ),
        "modules.rms_norm_gated": (
            lambda x, g, w: _call("modules.fused_norm_gate", "rms_norm_gated", eps=1e-5)(x, g, w, None),
            _norm_gate,
            (rows, randn(6, 257), randn(257)),
        ),
        "modules.swiglu": (_call("modules.activations", "swiglu"), lambda x, y: F.silu(x) * y, (rows, randn(6, 257))),
        "modules.cross_entropy": (
            _call("modules.fused_cross_entropy", "cross_entropy_loss"),
            lambda x, t: F.cross_entropy(x, t, reduction="none"),
            (rows, torch.randint(0, 257, (6,))),
        ),
        **further(),
    }
