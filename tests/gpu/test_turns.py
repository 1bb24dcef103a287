"""Products of plain pointers on a real GPU by grids of less than a round, of one, and of several: all are exact."""

from __future__ import annotations

import pytest

import mltriton as triton
import mltriton.language as tl

torch = pytest.importorskip("torch")


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    columns = tl.cdiv(N, BN)
    m = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    n = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        at = step * BK + k
        x = tl.load(a + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        y = tl.load(b + at[:, None] * N + n[None, :], mask=(at[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("rows", [1, 10, 16, 17, 40])  # blocks of 128, of which 16 lie in a row
@pytest.mark.parametrize(("columns", "stages"), [(128, 3), (128, 4), (256, 3)])
def test_grids_of_all_sizes(rows: int, columns: int, stages: int) -> None:
    m, n, k = 128 * rows - 24, columns * 16 - 16, 336
    a = torch.randint(-2, 3, (m, k), device="cuda").half()
    b = torch.randint(-1, 2, (k, n), device="cuda").half()
    wanted = (a.float() @ b.float()).half()
    for _ in range(3):  # by the slow way, then by machine code
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
        product[(rows * 16,)](a, b, c, m, n, k, 128, columns, 64, num_warps=8, num_stages=stages)
        assert torch.equal(c, wanted)
