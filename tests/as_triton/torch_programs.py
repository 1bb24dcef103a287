"""Small programs for torch.compile with kernels of mltriton, against eager: `python torch_programs.py NAME...`.

Prints a line for each: its name and what was compared (`forward`, `backward`), or how it failed. Not a test itself: it
needs a process in which mltriton stands in for triton.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import randn

import mltriton.as_triton  # noqa: F401 - before torch looks for triton

Program = tuple[Callable[..., torch.Tensor], Sequence[torch.Tensor]]


def programs(n: int = 1) -> dict[str, Program]:
    """The programs and their inputs, `n` times as many rows as few; floats require gradients."""
    torch.manual_seed(0)
    rows, wide, image = randn(30 * n, 70), randn(9 * n, 1300), randn(2 * n, 4, 12, 12)
    narrow = randn(30 * n, 70)
    index = (torch.arange(64 * n) * 7 + 3) % 40
    integers = torch.arange(660 * n).view(33 * n, 20) % 101 - 50
    return {
        "pointwise": (lambda x, y: torch.sin(x) * y + torch.exp(-x.abs()) + F.gelu(x) + F.silu(y), (rows, narrow)),
        "broadcast": (lambda x, y: x * y + 1, (randn(33 * n, 1), randn(1, 65))),
        "powers": (lambda x: torch.atan2(x, x + 2).pow(2).add(1).sqrt().log1p(), (rows,)),
        "sum of all": (lambda x: x.sum(), (wide,)),
        "sums of columns": (lambda x: (x * x).sum(0) + x.std(0) + x.amax(0), (rows,)),
        "sums of rows": (lambda x: x.mean(1, keepdim=True) - x, (wide,)),
        "extremes": (lambda x: x.max(-1).values - x.amin(-1), (rows,)),
        "place of the largest": (lambda x: x.argmax(-1), (rows,)),
        "any and all": (lambda x: (x > 3).any(-1) | (x < 0).all(-1), (rows,)),
        "softmax": (lambda x: torch.softmax(x * 2, -1), (wide,)),
        "log softmax of columns": (lambda x: torch.log_softmax(x, 0), (rows,)),
        "cross entropy": (lambda x, t: F.cross_entropy(x, t), (randn(64 * n, 40), index)),
        "layer norm": (lambda x, w, b: F.layer_norm(x, (70,), w, b), (rows, randn(70), randn(70))),
        "group norm": (lambda x: F.group_norm(x, 2), (image,)),
        "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (image, randn(4), randn(4))),
        "linear": (lambda x, w, b: F.relu(F.linear(x, w, b)), (rows, randn(48, 70), randn(48))),
        "product": (lambda x, y: (x @ y).tanh() * 2, (randn(64 * n, 48), randn(48, 80))),
        "batched product": (lambda x, y: torch.bmm(x, y) * 2, (randn(4 * n, 20, 30), randn(4 * n, 30, 25))),
        "attention": (F.scaled_dot_product_attention, tuple(randn(2 * n, 2, 32, 16) for _ in range(3))),
        "gather": (lambda x, i: x[i] * 2, (randn(40, 17), index)),
        "embedding": (lambda w, i: F.embedding(i, w).sum(1), (randn(40, 17), index.view(8 * n, 8))),
        "index add": (lambda x, i: torch.zeros(40, 17).index_add(0, i, x), (randn(64 * n, 17), index)),
        "scatter": (
            lambda x, i: torch.zeros(40, 17).scatter_add(0, i.view(-1, 1).expand(-1, 17), x),
            (randn(64 * n, 17), index),
        ),
        "cat": (lambda x, y: torch.cat([x * 2, y.relu()], 1), (randn(20 * n, 30), randn(20 * n, 50))),
        "stack and turn": (lambda x, y: torch.stack([x, y]).transpose(0, 2).contiguous(), (rows, narrow)),
        "flip, roll and unfold": (lambda x: x.flip(0).roll(3, 1).unfold(1, 4, 2).sum(-1), (rows,)),
        "where and pad": (lambda x: F.pad(torch.where(x > 0, x, x * 0.1), (1, 2, 3, 4)), (rows,)),
        "running sum": (lambda x: torch.cumsum(x, -1), (randn(20 * n, 100),)),
        "long running sum": (lambda x: torch.cumsum(x, 0) * 0.1, (randn(20000 * n),)),
        "running product": (lambda x: torch.cumprod(x, -1), (randn(20 * n, 50),)),
        "around a convolution": (lambda x, w: F.relu(F.conv2d(x * 2, w, padding=1)) + 1, (image, randn(5, 4, 3, 3))),
        "pooling": (lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), (image,)),
        "interpolation": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (image,)),
        "dropout": (lambda x: F.dropout(x, 0.5) * 0 + x, (rows,)),
        "random numbers": (lambda x: (torch.rand_like(x) + torch.randn_like(x)) * 0 + x, (rows,)),
        "bfloat16": (lambda x, y: (x * y).softmax(-1), (rows.bfloat16(), narrow.bfloat16())),
        "float16": (lambda x: F.gelu(x), (rows.half(),)),
        "float64": (lambda x: torch.exp(x).sum(-1), (rows.double(),)),
        "integers": (lambda i: i * 3 // 7 + i % 5 - i.max(0).values, (integers,)),
        "masked": (lambda x, m: x.masked_fill(m, -1.0).softmax(-1), (rows, narrow > 0)),
        "buckets": (lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), (rows,)),
        "sort": (lambda x: torch.sort(x, -1).values, (randn(5 * n, 16),)),
        "largest five": (lambda x: torch.topk(x, 5, -1).values, (rows,)),
    }


def check(run: Callable[..., torch.Tensor], inputs: Sequence[torch.Tensor]) -> str:
    """Compare compiled and eager, values and gradients; what was compared."""
    ours, theirs = ([x.clone().requires_grad_(x.is_floating_point()) for x in inputs] for _ in range(2))
    found, expected = torch.compile(run)(*ours), run(*theirs)
    coarse = expected.dtype in (torch.bfloat16, torch.float16)
    near: Any = {"rtol": 1e-2, "atol": 1e-2} if coarse else {"rtol": 2e-5, "atol": 2e-5}
    torch.testing.assert_close(found, expected, **near)
    if not expected.requires_grad:
        return "forward"
    weights = torch.randn_like(expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    for our, their in zip(ours, theirs, strict=True):
        if their.grad is not None:
            torch.testing.assert_close(our.grad, their.grad, **{name: 5 * value for name, value in near.items()})
    return "forward, backward"


def main(names: Sequence[str], processes: int = 1) -> None:
    """Run programs; all where none is named. With more than one process workers of Inductor's compile."""
    logging.disable(logging.CRITICAL)
    torch._inductor.config.cpu_backend = "triton"
    torch._inductor.config.compile_threads = processes
    if processes > 1:  # Until they are ready this process compiles.
        from torch._inductor.async_compile import AsyncCompile

        AsyncCompile.wait_pool_ready()
        assert AsyncCompile.use_process_pool()
    known = programs()
    for name in names or known:
        torch._dynamo.reset()
        try:
            print(f"{name}: {check(*known[name])}", flush=True)
        except Exception as error:
            print(f"{name}: FAILED {type(error).__name__}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
