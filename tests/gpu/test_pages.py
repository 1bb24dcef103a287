"""`paged_attention_varlen` on an NVIDIA GPU against torch in float64: pages that lanes and that the engine copies."""

from __future__ import annotations

from itertools import accumulate

import pytest

from mltriton import kernels

torch = pytest.importorskip("torch")


def random(*shape: int):
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.parametrize("page", [12, 16, 64, 128])
@pytest.mark.parametrize("dim", [64, 128])
def test_new_tokens_over_pages(dim: int, page: int, window: int | None) -> None:
    """Prompts, a chunk behind others, one token; nothing but numbers that are none behind a sequence."""
    new, lens, kv_heads = (300, 1, 0, 129), (300, 777, 9, 1000), 2
    most = -(-max(lens) // page)
    q = random(sum(new), 8, dim)
    caches = [random(len(lens) * most, page, kv_heads, dim) for _ in range(2)]
    table = torch.randperm(len(lens) * most, device="cuda").to(torch.int32).view(len(lens), most)
    for row, length in zip(table.long(), lens, strict=True):
        behind = torch.arange(length, most * page, device="cuda")
        for cache in caches:
            cache[row[behind // page], behind % page] = float("nan")
    used, starts = (torch.tensor(x, device="cuda", dtype=torch.int32) for x in (lens, [0, *accumulate(new)]))
    found = kernels.paged_attention_varlen(q, *caches, table, used, starts, window=window)
    for own, rows, row, count, length in zip(q.split(new), found.split(new), table.long(), new, lens, strict=True):
        k, v = (x[row].view(-1, kv_heads, dim)[:length].double().repeat_interleave(4, 1) for x in caches)
        scores = torch.einsum("qhd,khd->hqk", own.double(), k) * dim**-0.5
        apart = torch.arange(length - count, length, device="cuda")[:, None] - torch.arange(length, device="cuda")
        scores.masked_fill_((apart < 0) | (apart >= (window or length)), float("-inf"))
        wanted = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
        torch.testing.assert_close(rows.double(), wanted, rtol=0, atol=4e-3)
