"""Products and attention of tutorials, and the library's own, against upstream's Triton and torch (cuBLAS, cuDNN)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mltriton import kernels
from mltriton.tools.gpu_bench import compared_on_gpu, load_both
from mltriton.tools.side_by_side import OURS, Measurement

SOURCE = Path(__file__).parent / "sources" / "products.py"
SHAPES = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 14336))
ATTENTION = ((4, 16, 4096, 128), (4, 32, 4096, 64), (1, 16, 16384, 128))
SEQUENCES = ((32, 4096), (64, 8192))  # of paged decoding: how many, and their keys


def measurements(quick: bool) -> Iterator[Measurement]:
    import torch

    torch.manual_seed(0)
    for m, n, k in SHAPES[:1] if quick else SHAPES:
        for dtype in ("float16",) if quick else ("float16", "bfloat16"):
            yield from _matmul(torch, m, n, k, getattr(torch, dtype))
    for shape in ATTENTION[:1] if quick else ATTENTION:
        yield from _attention(torch, *shape)
    for count, keys in SEQUENCES[:1] if quick else SEQUENCES:
        yield _paged(torch, count, keys)


def _matmul(torch: Any, m: int, n: int, k: int, dtype: Any) -> Iterator[Measurement]:
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(k, n, device="cuda", dtype=dtype) * k**-0.5
    c = torch.empty(m, n, device="cuda", dtype=dtype)
    problem, work = f"{m}x{n}x{k} {str(dtype).removeprefix('torch.')}", 2.0 * m * n * k
    by_torch = {"torch": lambda: torch.mm(a, b, out=c)}
    tutorial = {name: lambda of=of: of.matmul(a, b, c) for name, of in load_both(SOURCE).items()}
    ours = {OURS: lambda: kernels.matmul(a, b)}
    for job, contenders in (("matmul (tutorial)", tutorial), ("matmul (library)", ours)):
        yield compared_on_gpu(
            job, problem, contenders | by_torch, work=work, unit="GFLOP/s", expected=lambda: a.float() @ b.float()
        )


def _attention(torch: Any, batch: int, heads: int, sequence: int, dim: int) -> Iterator[Measurement]:
    q, k, v = (torch.randn(batch, heads, sequence, dim, device="cuda", dtype=torch.float16) for _ in range(3))
    o = torch.empty_like(q)
    attend = torch.nn.functional.scaled_dot_product_attention
    problem, work = f"{batch}x{heads}x{sequence}x{dim}", 4.0 * batch * heads * sequence**2 * dim
    by_torch = {"torch": lambda: attend(q, k, v)}
    tutorial = {name: lambda of=of: of.attention(q, k, v, o) for name, of in load_both(SOURCE).items()}
    ours = {OURS: lambda: kernels.flash_attention(q, k, v)}
    for job, contenders in (("attention (tutorial)", tutorial), ("attention (library)", ours)):
        yield compared_on_gpu(
            job, problem, contenders | by_torch, work=work, unit="GFLOP/s", expected=lambda: attend(q, k, v)
        )


def _paged(torch: Any, count: int, keys: int, heads: int = 32, kv_heads: int = 8, dim: int = 128) -> Measurement:
    page = 16
    pages = count * keys // page
    q = torch.randn(count, heads, dim, device="cuda", dtype=torch.float16)
    caches = [torch.randn(pages, page, kv_heads, dim, device="cuda", dtype=torch.float16) for _ in range(2)]
    table = torch.randperm(pages, device="cuda").to(torch.int32).view(count, -1)
    lens = torch.full((count,), keys, device="cuda", dtype=torch.int32)

    def expected() -> Any:
        rows = []
        for i in range(count):
            k, v = (x[table[i].long()].reshape(1, keys, kv_heads, dim).transpose(1, 2) for x in caches)
            shared = q[i].reshape(1, kv_heads, heads // kv_heads, dim)
            rows.append(torch.nn.functional.scaled_dot_product_attention(shared, k, v).reshape(heads, dim))
        return torch.stack(rows)

    contenders = {OURS: lambda: kernels.paged_attention(q, *caches, table, lens)}
    work = float(sum(x.nbytes for x in caches))
    return compared_on_gpu("paged decoding", f"{count}x{keys}", contenders, work=work, expected=expected)
