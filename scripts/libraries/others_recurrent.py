"""Recurrences and transport: mlstm_kernels, mingru_scans, flash_sinkhorn."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from others import Operation, constant
from torch import Tensor, rand, randn
from torch.nn.functional import logsigmoid, softplus


def _mlstm(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """The parallel form of an mLSTM with an exponential input gate; its normaliser is a constant for the gradients."""
    length, width = q.shape[-2:]
    sums = logsigmoid(f).cumsum(-1)
    weights = sums[..., :, None] - sums[..., None, :] + i[..., None, :]
    weights = weights.masked_fill(~torch.ones(length, length).tril().bool(), float("-inf"))
    most = weights.max(-1, keepdim=True).values.detach()
    scores = q @ k.mT / width**0.5 * (weights - most).exp()
    return scores @ v / (torch.maximum(scores.sum(-1, keepdim=True).abs(), (-most).exp()).detach() + 1e-6)


def _sigmoid_mlstm(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """The parallel form with a sigmoid input gate, normalised as mLSTMs are."""
    length, width = q.shape[-2:]
    sums = logsigmoid(f).cumsum(-1)
    weights = sums[..., :, None] - sums[..., None, :] + logsigmoid(i)[..., None, :]
    scores = q @ k.mT / width**0.5 * weights.exp() * torch.ones(length, length).tril()
    return scores @ v / (torch.maximum(scores.sum(-1, keepdim=True).abs(), torch.ones(())).detach() + 1e-6)


def _step(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor, c: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, ...]:
    scale = q.shape[-1] ** -0.5
    kept, new = logsigmoid(f) + m, i
    most = torch.maximum(kept, new)
    old, fresh = (kept - most).exp()[..., None], (new - most).exp()[..., None]
    state, norm = old * c + fresh * (k[..., :, None] * v[..., None, :]), old[..., 0] * n + fresh[..., 0] * k
    weight = torch.maximum((q * scale * norm).sum(-1, keepdim=True).abs(), (-most).exp())
    return (q * scale)[..., None, :].matmul(state)[..., 0, :] / (weight + 1e-6), state, norm, most


def _kernel(name: str, **options: Any) -> Callable[..., Any]:
    return lambda *inputs: import_module("mlstm_kernels.torch").get_mlstm_kernel(name)(*inputs, **options)


def _one_step(*inputs: Tensor) -> tuple[Tensor, ...]:
    out, states = import_module("mlstm_kernels.torch").get_mlstm_step_kernel("triton")(*inputs)
    return out, *states


def _scan(name: str) -> Callable[..., Any]:
    return lambda *inputs: getattr(import_module("mingru.triton_scans"), name)(*inputs)


def _linear(a: Tensor, b: Tensor) -> Tensor:
    states = [b[:, 0]]
    for t in range(1, a.shape[1]):
        states.append(a[:, t] * states[-1] + b[:, t])
    return torch.stack(states, 1)


def _log_scan(a: Tensor, b: Tensor) -> Tensor:
    states = [b[:, 0].exp()]
    for t in range(a.shape[1]):
        states.append(a[:, t].exp() * states[-1] + b[:, t + 1].exp())
    return torch.stack(states[1:], 1)


def _transport(x: Tensor, y: Tensor, eps: float = 2.0, steps: int = 100) -> Tensor:
    """The entropic cost of moving x to y, by steps whose last one's potentials give the gradient."""
    cost = torch.cdist(x, y).pow(2) / 2
    f, g = torch.zeros(len(x)), torch.zeros(len(y))
    with torch.no_grad():
        for _ in range(steps):
            g = -eps * ((f[:, None] - cost) / eps - torch.tensor(float(len(x))).log()).logsumexp(0)
            f = -eps * ((g[None] - cost) / eps - torch.tensor(float(len(y))).log()).logsumexp(1)
        plan = ((f[:, None] + g[None] - cost) / eps).exp() / (len(x) * len(y))
    moved = (plan * cost).sum()
    return f.mean() + g.mean() + moved - moved.detach()


def operations() -> dict[str, Operation]:
    """Operation, reference and inputs by name."""
    torch.manual_seed(0)
    gates = (randn(1, 2, 256), randn(1, 2, 256) + 3)
    inputs = (*(randn(1, 2, 256, 64) for _ in range(3)), *gates)
    state = (*(randn(3, 2, 64) for _ in range(3)), randn(3, 2, 1), randn(3, 2, 1) + 3)
    memory = (randn(3, 2, 64, 64), randn(3, 2, 64), randn(3, 2, 1))
    names = ("parallel--triton_limit_headdim", "chunkwise--triton_limit_chunk", "chunkwise--triton_xl_chunk")
    kernels = {f"mlstm_kernels: {name}": (_kernel(name), _mlstm, inputs, 5e-3) for name in names}
    coefficients = -softplus(randn(2, 50, 70))
    return {
        **kernels,
        "mlstm_kernels: chunkwise--triton_xl_chunk_siging": (
            _kernel("chunkwise--triton_xl_chunk_siging"),
            _sigmoid_mlstm,
            inputs,
            5e-3,
        ),
        "mlstm_kernels: step": (_one_step, _step, constant(*state, *memory), 5e-3),
        "mingru: parallel_scan_log": (
            _scan("parallel_scan_log_fwd"),
            _log_scan,
            (coefficients, torch.cat([randn(2, 1, 70), randn(2, 50, 70)], 1)),
        ),
        "flash_sinkhorn: cost": (
            lambda x, y: import_module("flash_sinkhorn").SamplesLoss(
                *("sinkhorn",),
                eps=2.0,
                half_cost=True,
                n_iters=100,
                allow_tf32=False,
                use_epsilon_scaling=False,
                last_extrapolation=False,
            )(x, y),
            _transport,
            (randn(100, 8), *constant(rand(90, 8))),
            5e-3,
        ),
        "flash_sinkhorn: c_transform": (
            lambda x, y, psi: import_module("flash_sinkhorn").c_transform_fwd(x, y, psi, allow_tf32=False),
            lambda x, y, psi: torch.min(torch.cdist(x, y).pow(2) - psi, 1),
            constant(randn(100, 8), randn(90, 8), randn(90)),
        ),
    }
