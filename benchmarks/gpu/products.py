"""Products and attention of tutorials, and the library's own, against upstream's Triton and torch (cuBLAS, cuDNN)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import mltriton as triton
from mltriton import kernels
from mltriton.tools.gpu_bench import compared_on_gpu, load_both
from mltriton.tools.side_by_side import OURS, Measurement

SOURCE = Path(__file__).parent / "sources" / "products.py"
SHAPES = (*((size,) * 3 for size in (2048, 4096, 8192, 512, 1024)), (4096, 4096, 14336), (8192, 28672, 4096))
LARGE = ((16384, 16384, 4096), (3072, 3072, 3072))  # and a size of few rounds
OF_BYTES = (2048, 4096, 8192)
FEW_ROWS = ((16, 4096, 4096), (8, 14336, 4096), (1, 4096, 14336))
FEW_BLOCKS = ((256, 256, 16384), (64, 4096, 4096))
BATCHES = ((8, 1024, 1024, 1024), (64, 256, 256, 256))
GROUPS = ((1024, 2048, 1024), (300, 2048, 1024), (1000, 2048, 1024), (64, 2048, 1024))  # of experts' tokens, say
ATTENTION = ((4, 16, 4096, 128), (4, 32, 4096, 64), (1, 16, 16384, 128))
GRADIENTS = ((16, 16, 1024, 128), (4, 16, 4096, 128), (1, 16, 16384, 128))
SEQUENCES = ((32, 4096), (64, 8192))  # of paged decoding: how many, and their keys
TOKENS = (((4096, 0),), ((512, 7680),), (*((1, 4095),) * 32, (2048, 2048)))  # new ones of sequences, and others before


def measurements(quick: bool) -> Iterator[Measurement]:
    import torch

    torch.manual_seed(0)
    for m, n, k in SHAPES[:1] if quick else SHAPES:
        for dtype in ("float16",) if quick else ("float16", "bfloat16"):
            yield from _matmul(torch, m, n, k, getattr(torch, dtype))
    for m, n, k in () if quick else LARGE:
        yield _timed_product(torch, m, n, k)
    for size in OF_BYTES[:1] if quick else OF_BYTES:
        yield from _bytes(torch, size)
    for size in OF_BYTES[:1] if quick else OF_BYTES[:2]:
        yield _of_older_gpus(torch, size)
        yield _rounded(torch, size)
    for m, n, k in FEW_ROWS[:1] if quick else FEW_ROWS + FEW_BLOCKS:
        yield _few_blocks(torch, m, n, k)
    yield from _around(torch)
    for shape in ATTENTION[:1] if quick else ATTENTION:
        yield from _attention(torch, *shape)
    for shape in GRADIENTS[:1] if quick else GRADIENTS:
        for causal in (False, True):
            yield _gradients(torch, shape, causal)
    for count, keys in SEQUENCES[:1] if quick else SEQUENCES:
        yield _paged(torch, count, keys)
    for page in (16, 64, 128):
        for tokens in TOKENS[:1] if quick else TOKENS:
            yield _prompts(torch, page, tokens)


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


def _timed_product(torch: Any, m: int, n: int, k: int) -> Measurement:
    a, b = _halves(torch, m, k), _halves(torch, k, n) * k**-0.5
    ours, torchs = partial(kernels.matmul, a, b), partial(torch.mm, a, b)
    return _timed("matmul (library)", f"{m}x{n}x{k} float16", ours, torchs, m * n * k)


def _bytes(torch: Any, size: int) -> Iterator[Measurement]:
    """Of fp8 against cuBLASLt, whose sums are as little exact then, and of int8; K lies along memory in both."""
    one = torch.ones((), device="cuda")
    a, b = (torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    scaled = partial(torch._scaled_mm, a, b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    yield _timed("matmul of fp8", f"{size}", partial(kernels.matmul, a, b.T, out_dtype="bfloat16"), scaled, size**3)
    a, b = (torch.randint(-128, 128, (size, size), device="cuda", dtype=torch.int8) for _ in range(2))
    ours = partial(kernels.matmul, a, b.T, out_dtype="int32")
    yield _timed("matmul of int8", f"{size}", ours, partial(torch._int_mm, a, b.T), size**3)


def _of_older_gpus(torch: Any, size: int) -> Measurement:
    """The tutorial's text for Ampere (`mma.sync`), of which the driver compiles the PTX."""
    a, b = _halves(torch, size, size), _halves(torch, size, size) * size**-0.5
    c = torch.empty_like(a)
    module = load_both(SOURCE)[OURS]
    constants = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8, "num_warps": 4, "num_stages": 3, "target": "cuda:80"}
    kernel = module.matmul_kernel.warmup(a, b, c, *(size,) * 6, **constants)
    kernel.loaded.take(kernel.asm["ptx"].encode())
    ours = partial(module.matmul, a, b, c, num_warps=4, target="cuda:80")
    return _timed("matmul of cuda:80", f"{size}", ours, partial(torch.mm, a, b), size**3)


def _rounded(torch: Any, size: int) -> Measurement:
    """f32 as TF32, both operands by rows."""
    a, b = (torch.randn(size, size, device="cuda") * size**-0.25 for _ in range(2))
    c = torch.empty_like(a)
    contenders = {name: partial(of.matmul, a, b, c, rows=256) for name, of in load_both(SOURCE).items()}
    old, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, True
    try:
        by_torch = {"torch": partial(torch.mm, a, b)}
        work, problem = 2.0 * size**3, f"{size}"
        return compared_on_gpu(
            "matmul of TF32", problem, contenders | by_torch, work=work, unit="GFLOP/s", expected=by_torch["torch"]
        )
    finally:
        torch.backends.cuda.matmul.allow_tf32 = old


def _few_blocks(torch: Any, m: int, n: int, k: int) -> Measurement:
    """Products whose time is that of reading B, and such that only parts of K give enough programs for."""
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16) * k**-0.5
    c = torch.empty(m, n, device="cuda", dtype=torch.float16)
    contenders = {OURS: lambda: kernels.matmul(a, b), "torch": lambda: torch.mm(a, b, out=c)}
    work, problem = 2.0 * (m * k + k * n + m * n), f"{m}x{n}x{k}"
    return compared_on_gpu("few rows or blocks", problem, contenders, work=work, expected=lambda: a.float() @ b.float())


def _around(torch: Any) -> Iterator[Measurement]:
    """Batches, groups, and what is computed around a product."""
    for batch, m, n, k in BATCHES:
        a, b = _halves(torch, batch, m, k), _halves(torch, batch, k, n) * k**-0.5
        ours, torchs = partial(kernels.matmul, a, b), partial(torch.bmm, a, b)
        yield _timed("matmul (batches)", f"{batch}x{m}x{n}x{k}", ours, torchs, batch * m * n * k)
    left = [_halves(torch, m, k) for m, _, k in GROUPS]
    right = [_halves(torch, k, n) * k**-0.5 for _, n, k in GROUPS]
    work = sum(m * n * k for m, n, k in GROUPS)
    grouped, each = (partial(_of_all, f, left, right) for f in (kernels.grouped_gemm, partial(map, torch.mm)))
    yield _timed("grouped_gemm", f"{len(GROUPS)} groups", grouped, each, work)
    a, b, bias = _halves(torch, 4096, 4096), _halves(torch, 4096, 4096) / 64, _halves(torch, 4096)
    fused = partial(kernels.matmul, a, b, bias=bias, activation="gelu")
    yield _timed("matmul, bias, gelu", "4096x4096x4096", fused, partial(_gelu_of_sum, torch, bias, a, b), 4096**3)


def _of_all(multiply: Any, left: Any, right: Any) -> Any:
    """The first of all products."""
    return list(multiply(left, right))[0]  # noqa: RUF015 - all are computed


def _gelu_of_sum(torch: Any, bias: Any, a: Any, b: Any) -> Any:
    return torch.nn.functional.gelu(torch.addmm(bias, a, b))


def _halves(torch: Any, *shape: int) -> Any:
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def _timed(job: str, problem: str, ours: Any, torchs: Any, products: int) -> Measurement:
    contenders = {OURS: ours, "torch": torchs}
    return compared_on_gpu(job, problem, contenders, work=2.0 * products, unit="GFLOP/s", expected=torchs)


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


def _gradients(torch: Any, shape: tuple[int, int, int, int], causal: bool) -> Measurement:
    """The gradients of the library's attention and of torch's; causal attention counts as half the work."""
    batch, heads, sequence, dim = shape
    q, k, v, do = (_halves(torch, *shape) for _ in range(4))
    o, lse = kernels.flash_attention_with_lse(q, k, v, causal)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    theirs = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
    contenders = {
        OURS: lambda: kernels.flash_attention_backward(do, q, k, v, o, lse, causal)[0],
        "torch": lambda: torch.autograd.grad(theirs, leaves, do, retain_graph=True)[0],
    }
    job, problem = f"{'causal ' if causal else ''}attention, gradients", f"{batch}x{heads}x{sequence}x{dim}"
    work = 10.0 * batch * heads * sequence**2 * dim * (0.5 if causal else 1.0)
    return compared_on_gpu(job, problem, contenders, work=work, unit="GFLOP/s", expected=contenders["torch"])


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


def _prompts(
    torch: Any, page: int, tokens: Sequence[tuple[int, int]], heads: int = 32, kv_heads: int = 8, dim: int = 128
) -> Measurement:
    """New tokens of sequences in pages; torch gathers their keys."""
    counts, lens = [new for new, _ in tokens], [new + before for new, before in tokens]
    most = triton.cdiv(max(lens), page)
    q = _halves(torch, sum(counts), heads, dim)
    caches = [_halves(torch, len(tokens) * most, page, kv_heads, dim) for _ in range(2)]
    table = torch.randperm(len(tokens) * most, device="cuda").to(torch.int32).view(len(tokens), most)
    used = torch.tensor(lens, device="cuda", dtype=torch.int32)
    starts = torch.tensor([0, *accumulate(counts)], device="cuda", dtype=torch.int32)

    from torch.nn.attention.bias import causal_lower_right

    def with_torch() -> Any:
        found = []
        for own, row, new, length in zip(q.split(counts), table.long(), counts, lens, strict=True):
            k, v = (x[row].view(-1, kv_heads, dim)[:length].transpose(0, 1) for x in caches)
            k, v = (x[None].repeat_interleave(heads // kv_heads, 1) for x in (k, v))
            mask = causal_lower_right(new, length) if new > 1 else None
            rows = torch.nn.functional.scaled_dot_product_attention(own.transpose(0, 1)[None], k, v, attn_mask=mask)
            found.append(rows[0].transpose(0, 1))
        return torch.cat(found)

    ours = partial(kernels.paged_attention_varlen, q, *caches, table, used, starts)
    work = sum(new * (length - new) + new * (new + 1) / 2 for new, length in zip(counts, lens, strict=True))
    problem = f"{len(tokens)} sequences, {sum(counts)} of {sum(lens)} tokens, pages of {page}"
    return compared_on_gpu(
        "paged prefill", problem, {OURS: ours, "torch": with_torch},
        work=4.0 * heads * dim * work, unit="GFLOP/s", expected=with_torch,
    )  # fmt: skip
