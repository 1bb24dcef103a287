"""Matrix products with something around them: bias and gelu, an added matrix, exp of A; long sums over K; groups.

The shapes are those that the Triton backend for Intel GPUs measures, reduced to what a few cores do in a second.
Against torch, and its functions behind numpy's product (OpenBLAS).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from mltriton.errors import OptionError
from mltriton.kernels import grouped_gemm, matmul, split_k_matmul
from mltriton.tools import jobs
from mltriton.tools.side_by_side import OURS, Measurement, compared

Array = Any
Contenders = dict[str, Callable[[], Array]]
Make = Callable[[Array, Array], Contenders]

# batch, M, N, K
SHAPES = (
    (1, 1024, 1024, 1024), (1, 2048, 2048, 2048), (1, 1, 5120, 13824), (1, 4, 4096, 12288), (1, 512, 2048, 2048),
    (1, 512, 2048, 8192), (1, 512, 8192, 2048), (1, 2048, 256, 2048), (4, 2048, 128, 1024), (4, 2048, 1024, 128),
    (64, 8, 128, 2048), (64, 8, 2048, 128),
)  # fmt: skip
LONG_SUMS = (
    (1, 16, 16, 65536), (1, 32, 32, 16384), (1, 64, 64, 16384), (1, 128, 128, 8192), (1, 256, 256, 8192),
    (1, 128, 2048, 8192), (1, 768, 768, 1024),
)  # fmt: skip
# problems, M, N, K; and of sizes as different as those of a mixture of experts
GROUPS = ((8, 128, 1024, 1024), (16, 128, 512, 512), (32, 64, 1024, 1024), (64, 32, 512, 512), (128, 16, 256, 256))
UNEVEN = tuple((m, 512, 512) for m in (1, 3, 5, 0, 17, 40, 8, 300, 2, 90, 33, 64))


def measurements(quick: bool) -> Iterator[Measurement]:
    if not jobs.has_torch():
        raise OptionError("gemm_fused compares with torch, which is not installed", hint="pip install torch")
    for dtype in ("float32", "bfloat16"):
        for name, make in {"bias, gelu": _gelu, "add": _add, "exp": _exp}.items():
            for shape in ((1, 128, 128, 128), (2, 64, 32, 64)) if quick else SHAPES:
                yield _product(name, make, shape, dtype)
        for shape in LONG_SUMS[1:2] if quick else LONG_SUMS:
            yield _product("long sum", _sum, shape, dtype)
            yield _product("long sum, not shared", _whole_sum, shape, dtype)
        for count, *size in ((4, 32, 64, 64),) if quick else GROUPS:
            yield _group((tuple(size),) * count, f"{count} x {'x'.join(map(str, size))}", dtype)
        yield _group(UNEVEN, "12 x 0..300x512x512", dtype)


def _product(name: str, make: Make, shape: tuple[int, int, int, int], dtype: str) -> Measurement:
    batch, m, n, k = shape
    leading = (batch,) if batch > 1 else ()
    a, b = jobs.random((*leading, m, k), dtype, 0), jobs.random((*leading, k, n), dtype, 1) / math.sqrt(k)
    sizes = "x".join(map(str, shape[batch == 1 :]))
    return compared(f"{name} {dtype}", sizes, make(a, b), 2.0 * batch * m * n * k)


def _with_numpy(a: Array, b: Array, behind: Callable[[Array], Array]) -> Contenders:
    """torch's functions behind torch's product, and behind numpy's where it has the dtype."""
    import torch

    contenders: Contenders = {"torch": lambda: behind(torch.matmul(a, b))}
    if a.dtype == torch.float32:
        left, right = a.numpy(), b.numpy()
        contenders["numpy"] = lambda: behind(torch.from_numpy(left @ right))  # pyright: ignore[reportUnknownMemberType]
    return contenders


def _gelu(a: Array, b: Array) -> Contenders:
    import torch
    from torch.nn.functional import gelu

    bias = jobs.random((b.shape[-1],), str(a.dtype).removeprefix("torch."), 2)
    ours: Contenders = {OURS: lambda: matmul(a, b, bias=bias, activation="gelu")}
    if a.ndim == 2:
        ours["torch.addmm"] = lambda: gelu(torch.addmm(bias, a, b))
    return ours | _with_numpy(a, b, lambda c: gelu(c.add_(bias)))


def _add(a: Array, b: Array) -> Contenders:
    import torch

    d = jobs.random((*a.shape[:-1], b.shape[-1]), str(a.dtype).removeprefix("torch."), 2)
    together = torch.addmm if a.ndim == 2 else torch.baddbmm
    fused: Contenders = {OURS: lambda: matmul(a, b, add=d), "torch.addmm": lambda: together(d, a, b)}
    return fused | _with_numpy(a, b, lambda c: c.add_(d))


def _exp(a: Array, b: Array) -> Contenders:
    import torch

    return {OURS: lambda: matmul(a, b, prologue="exp"), "torch": lambda: torch.matmul(torch.exp(a), b)}


def _sum(a: Array, b: Array) -> Contenders:
    ours: Contenders = {OURS: lambda: matmul(a, b)}
    return ours | _with_numpy(a, b, lambda c: c)


def _whole_sum(a: Array, b: Array) -> Contenders:
    """What sharing the sums gains over one program for each block, and over parts that a second kernel adds."""
    return {
        OURS: lambda: matmul(a, b),
        "not shared": lambda: matmul(a, b, split_k=1),
        "split in 2": lambda: split_k_matmul(a, b, 2),
    }


def _group(sizes: tuple[tuple[int, ...], ...], title: str, dtype: str) -> Measurement:
    import torch

    a = [jobs.random((m, k), dtype, i) for i, (m, _, k) in enumerate(sizes)]
    b = [jobs.random((k, n), dtype, i + 1) / math.sqrt(k) for i, (_, n, k) in enumerate(sizes)]
    contenders: Contenders = {
        OURS: lambda: grouped_gemm(a, b),
        "torch": lambda: [torch.mm(x, y) for x, y in zip(a, b, strict=True)],
    }
    if dtype == "float32":
        numpy = [(x.numpy(), y.numpy()) for x, y in zip(a, b, strict=True)]
        contenders["numpy"] = lambda: [x @ y for x, y in numpy]
    return compared(f"grouped {dtype}", title, contenders, sum(2.0 * m * n * k for m, n, k in sizes))
