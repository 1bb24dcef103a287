"""Kernels written in Helion, which writes Triton kernels, on the CPU against plain torch.

`python helion_kernels.py [KERNEL]...` prints a line for each: the largest error. Needs helion and torch.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mltriton.as_triton  # isort: skip - before torch looks for triton
import helion
import helion.language as hl
import torch
from named_checks import check_each

Check = tuple[Any, Callable[..., Any], Sequence[Any]]


@helion.kernel
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x, y = torch.broadcast_tensors(x, y)
    out = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, y.dtype), device=x.device)
    for tile in hl.tile(out.size()):
        out[tile] = x[tile] + y[tile]
    return out


@helion.kernel
def matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    m, k = x.size()
    _, n = y.size()
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for tile_m, tile_n in hl.tile([m, n]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.addmm(acc, x[tile_m, tile_k], y[tile_k, tile_n])
        out[tile_m, tile_n] = acc.to(x.dtype)
    return out


@helion.kernel
def batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    count, m, k = a.size()
    n = b.size(2)
    out = torch.empty([count, m, n], dtype=a.dtype, device=a.device)
    for tile_b, tile_m, tile_n in hl.tile([count, m, n]):
        acc = hl.zeros([tile_b, tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.baddbmm(acc, a[tile_b, tile_m, tile_k], b[tile_b, tile_k, tile_n])
        out[tile_b, tile_m, tile_n] = acc.to(a.dtype)
    return out


@helion.kernel
def softmax(x: torch.Tensor) -> torch.Tensor:
    n, _m = x.size()
    out = torch.empty_like(x)
    for tile_n in hl.tile(n):
        out[tile_n, :] = torch.nn.functional.softmax(x[tile_n, :], dim=1)
    return out


@helion.kernel
def softmax_two_pass(x: torch.Tensor) -> torch.Tensor:
    m, n = x.size()
    out = torch.empty_like(x)
    block_m, block_n = hl.register_block_size(m), hl.register_block_size(n)
    for tile_m in hl.tile(m, block_size=block_m):
        mi = hl.full([tile_m], float("-inf"), dtype=torch.float32)
        di = hl.zeros([tile_m], dtype=torch.float32)
        for tile_n in hl.tile(n, block_size=block_n):
            values = x[tile_m, tile_n]
            mi_next = torch.maximum(mi, torch.amax(values, dim=1))
            di = di * torch.exp(mi - mi_next) + torch.exp(values - mi_next[:, None]).sum(dim=1)
            mi = mi_next
        for tile_n in hl.tile(n, block_size=block_n):
            out[tile_m, tile_n] = torch.exp(x[tile_m, tile_n] - mi[:, None]) / di[:, None]
    return out


@helion.kernel
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    m, _n = x.size()
    out = torch.empty_like(x)
    for tile_m in hl.tile(m):
        row = x[tile_m, :].to(torch.float32)
        mean, square = row.mean(dim=-1, keepdim=True), (row * row).mean(dim=-1, keepdim=True)
        out[tile_m, :] = ((row - mean) * torch.rsqrt(square - mean * mean + 1e-5) * weight[:] + bias[:]).to(x.dtype)
    return out


@helion.kernel
def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    m, _n = x.size()
    out = torch.empty_like(x)
    for tile_m in hl.tile(m):
        row = x[tile_m, :].to(torch.float32)
        scale = torch.rsqrt(torch.mean(row * row, dim=-1) + 1e-5)
        out[tile_m, :] = (row * scale[:, None] * weight[:].to(torch.float32)).to(x.dtype)
    return out


@helion.kernel
def attention(q_in: torch.Tensor, k_in: torch.Tensor, v_in: torch.Tensor) -> torch.Tensor:
    m_dim, n_dim = q_in.size(-2), k_in.size(-2)
    head = hl.specialize(q_in.size(-1))
    q = q_in.reshape([-1, m_dim, head])
    v = v_in.reshape([-1, n_dim, head])
    k = k_in.reshape([-1, n_dim, head]).transpose(1, 2)
    out = torch.empty_like(q)
    scale = 1.0 / math.sqrt(head) * 1.44269504
    for tile_b, tile_m in hl.tile([q.size(0), m_dim]):
        m_i = hl.full([tile_b, tile_m], float("-inf"), dtype=torch.float32)
        l_i = torch.full_like(m_i, 1.0)
        acc = hl.zeros([tile_b, tile_m, head], dtype=torch.float32)
        query = q[tile_b, tile_m, :]
        for tile_n in hl.tile(v.size(1)):
            qk = torch.bmm(query, k[tile_b, :, tile_n])
            m_ij = torch.maximum(m_i, torch.amax(qk, -1) * scale)
            p = torch.exp2(qk * scale - m_ij[:, :, None])
            alpha = torch.exp2(m_i - m_ij)
            l_i = l_i * alpha + torch.sum(p, -1)
            acc = torch.baddbmm(acc * alpha[:, :, None], p.to(v.dtype), v[tile_b, tile_n, :])
            m_i = m_ij
        out[tile_b, tile_m, :] = (acc / l_i[:, :, None]).to(out.dtype)
    return out.view(q_in.size())


@helion.kernel
def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    n, v = logits.shape
    losses = torch.zeros([n], dtype=logits.dtype, device=logits.device)
    flat = logits.view(-1)
    for tile_n in hl.tile(n):
        at = tile_n.index * v + labels[tile_n]
        chosen = hl.load(flat, [at])
        rows = logits[tile_n, :]
        largest = torch.amax(rows, dim=-1, keepdim=True)
        total = torch.sum(torch.exp(rows - largest), dim=-1, keepdim=True)
        losses[tile_n] = largest.squeeze(-1) + torch.log(total.squeeze(-1)) - chosen
    return losses.mean()


@helion.kernel
def embedding(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    flat = x.reshape(-1)
    _, dim = weight.size()
    out = torch.empty([flat.size(0), dim], dtype=weight.dtype, device=weight.device)
    for tile_b, tile_e in hl.tile([flat.size(0), dim]):
        out[tile_b, tile_e] = weight[flat[tile_b], tile_e]
    return out.view(*x.size(), dim)


@helion.kernel
def split_k(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    m, k = x.size()
    _, n = y.size()
    out = torch.zeros([m, n], dtype=x.dtype, device=x.device)
    for tile_m, tile_n, outer_k in hl.tile([m, n, k], block_size=[None, None, 32]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for inner_k in hl.tile(outer_k.begin, outer_k.end):
            acc = torch.addmm(acc, x[tile_m, inner_k], y[inner_k, tile_n])
        hl.atomic_add(out, [tile_m, tile_n], acc)
    return out


@helion.kernel
def column_sums(x: torch.Tensor) -> torch.Tensor:
    m, n = x.size()
    out = torch.zeros([n], dtype=torch.float32, device=x.device)
    for tile_n in hl.tile(n):
        acc = hl.zeros([tile_n], dtype=torch.float32)
        for tile_m in hl.tile(m):
            acc += x[tile_m, tile_n].to(torch.float32).sum(0)
        out[tile_n] = acc
    return out


@helion.kernel
def jagged_means(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    rows = offsets.size(0) - 1
    out = torch.zeros([rows], dtype=values.dtype, device=values.device)
    for tile in hl.tile(rows):
        start, end = offsets[tile], offsets[tile.index + 1]
        count = end - start
        longest = count.amax()
        total = hl.zeros([tile], dtype=values.dtype)
        for inner in hl.tile(0, longest):
            at = start[:, None] + inner.index[None, :]
            total = total + hl.load(values, [at], extra_mask=inner.index[None, :] < count[:, None]).sum(1)
        out[tile] = total / count.to(values.dtype)
    return out


@helion.kernel
def gelu_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(a)
    flat_a, flat_b, flat_out = a.view(-1), b.view(-1), out.view(-1)
    for tile in hl.tile(a.numel()):
        x = flat_a[tile].to(torch.float32)
        gate = 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
        flat_out[tile] = (gate * flat_b[tile].to(torch.float32)).to(a.dtype)
    return out


@helion.kernel
def running_sums(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile, :] = torch.cumsum(x[tile, :], dim=1)
    return out


def checks() -> Mapping[str, Check]:
    """Name -> kernel, plain torch, arguments."""
    F, randn = torch.nn.functional, torch.randn
    a, b, w = randn(130, 97), randn(97, 65), randn(130)
    offsets = torch.tensor([0, 3, 10, 11, 40, 77])
    heads = [randn(2, 3, 65, 32) for _ in range(3)]
    half = [randn(64, 96).bfloat16(), randn(96, 80).bfloat16()]
    return {
        "add": (add, torch.add, (a, w[:97])),
        "matmul": (matmul, torch.matmul, (a, b)),
        "matmul of bf16": (matmul, torch.matmul, half),
        "batched": (batched, torch.bmm, (randn(5, 33, 48), randn(5, 48, 40))),
        "softmax": (softmax, lambda x: F.softmax(x, 1), (a,)),
        "softmax in two passes": (softmax_two_pass, lambda x: F.softmax(x, 1), (a,)),
        "layer norm": (layer_norm, lambda x, w, b: F.layer_norm(x, (97,), w, b), (a, w[:97], randn(97))),
        "RMS norm": (rms_norm, lambda x, w: F.rms_norm(x, (97,), w, 1e-5), (a, w[:97])),
        "attention": (attention, F.scaled_dot_product_attention, heads),
        "cross entropy": (cross_entropy, F.cross_entropy, (a, torch.randint(0, 97, (130,)))),
        "embedding": (embedding, F.embedding, (torch.randint(0, 130, (7, 9)), a)),
        "split k": (split_k, torch.matmul, (a, b)),
        "column sums": (column_sums, lambda x: x.sum(0), (a,)),
        "jagged means": (
            jagged_means,
            lambda v, o: torch.stack([v[i:j].mean() for i, j in zip(o[:-1].tolist(), o[1:].tolist(), strict=True)]),
            (randn(77), offsets),
        ),
        "gated": (gelu_product, lambda a, b: F.gelu(a, approximate="tanh") * b, (a, randn(130, 97))),
        "running sums": (running_sums, lambda x: torch.cumsum(x, 1), (a,)),
    }


def check(kernel: Any, plain: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """The largest error, at most some last places of the largest value."""
    bound = kernel.bind(arguments)
    bound.set_config(bound.config_spec.default_config())  # searching would ask for the name of a GPU
    found, expected = bound(*arguments), plain(*arguments)
    error = (found.double() - expected.double()).abs().max().item() / max(expected.double().abs().max().item(), 1.0)
    assert error < (1e-2 if expected.dtype == torch.bfloat16 else 1e-5), f"error {error:.1e}"
    return f"right, error {error:.0e}"


def main() -> int:
    """Read the command line; the status is the number of failures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="KERNEL")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    known = checks()
    return check_each(given.names or known, lambda name: check(*known[name]))


if __name__ == "__main__":
    assert mltriton.as_triton
    sys.exit(main())
