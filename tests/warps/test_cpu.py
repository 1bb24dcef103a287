"""Warp-level kernels as machine code for the CPU: every number of warps, every element type, against float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import mltriton
from combinations import each_pair, each_value
from mltriton.tools.verify import verify_kernel

from . import cpu_kernels

WARPS = [1, 2, 4, 8, 32]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
NAMES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the kernels out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLTRITON_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def close(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)


@each_value(("dtype", TOLERANCE), ("warps", WARPS))
def test_softmax(dtype: torch.dtype, warps: int) -> None:
    n = 64 * warps - 13
    x = numbers(3, n, dtype=dtype)
    y = torch.zeros_like(x)
    cpu_kernels.softmax[(3,)](x, y, n, BLOCK=64, num_warps=warps)
    close(y, torch.softmax(x.double(), 1), TOLERANCE[dtype])


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.float32])
def test_reductions_and_scans(dtype: torch.dtype, warps: int) -> None:
    n = 16 * warps - 3
    x = numbers(n) * 50
    x = x.round().to(dtype) if dtype is torch.int32 else x
    out, where = torch.zeros(warps + 1, dtype=dtype), torch.zeros(1, dtype=torch.int32)
    cpu_kernels.statistics[(1,)](x, out, where, n, BLOCK=16, num_warps=warps)
    padded = torch.zeros(16 * warps, dtype=torch.float64)
    padded[:n] = x.double()
    parts = padded.view(warps, 16).sum(1).cumsum(0)
    close(out[0], parts[-1], 1e-5)
    close(out[1:], parts + padded.min(), 1e-5)
    assert where.item() == padded.argmax().item()


@each_value(("dtype", TOLERANCE), ("warps", [1, 2, 4, 8]))
def test_products(dtype: torch.dtype, warps: int) -> None:
    m, n, k = 75, 45, 150
    a, b, c = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype, seed=1), torch.zeros(m, n)
    cpu_kernels.product[(2, 2)](a, b, c, m, n, k, BM=64, BN=32, BK=32, num_warps=warps)
    close(c, a.double() @ b.double(), 1e-3)


@each_pair(("dtype", TOLERANCE), ("warps", [4, 8]), ("across", [False, True]))
def test_products_by_a_grid_of_warps(dtype: torch.dtype, warps: int, across: bool) -> None:
    m, n, k = 150, 75, 90
    a, b, c = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype, seed=1), torch.zeros(m, n)
    cpu_kernels.grid_product[(1, 2)](a, b, c, m, n, k, BM=256, BN=64, BK=32, ACROSS=across, num_warps=warps)
    close(c, a.double() @ b.double(), 1e-3)


@each_value(("dtype", TOLERANCE), ("warps", WARPS))
def test_products_through_shared_memory(dtype: torch.dtype, warps: int) -> None:
    n, k = 16 * warps, 75
    a, b, c = numbers(16, k, dtype=dtype), numbers(k, n, dtype=dtype, seed=1), torch.zeros(16, n)
    cpu_kernels.staged_product[(1,)](a, b, c, k, M=16, N=16, BK=32, num_warps=warps)
    steps = range(0, k, 32)
    halved = sum(a.double()[:, s : s + 32] @ b.double()[s : s + 32] * 0.5 ** (len(steps) - 1 - s // 32) for s in steps)
    assert isinstance(halved, torch.Tensor)
    close(c, halved, 1e-3)


@each_pair(("dtype", TOLERANCE), ("warps", [1, 4, 8]), ("n", [7, 201]))
def test_attention_of_one_query(dtype: torch.dtype, warps: int, n: int) -> None:
    heads, d, g = 2, 32, 2
    q = numbers(heads * g, d, dtype=dtype)
    k, v = (numbers(heads, n, d, dtype=dtype, seed=seed) for seed in (1, 2))
    o = torch.zeros_like(q)
    cpu_kernels.decode[(heads,)](q, k, v, o, n, d**-0.5, D=d, G=g, BLOCK=16, num_warps=warps)
    scores = torch.einsum("hgd,hnd->hgn", q.double().view(heads, g, d), k.double()) * d**-0.5
    expected = torch.einsum("hgn,hnd->hgd", torch.softmax(scores, -1), v.double()).reshape(heads * g, d)
    close(o, expected, 2 * TOLERANCE[dtype])


@each_pair(("dtype", TOLERANCE), ("warps", [1, 4]), ("n", [64, 75]))
def test_attention_on_keys_that_all_warps_share(dtype: torch.dtype, warps: int, n: int) -> None:
    """Full blocks of keys are read where they lie, the last one is copied within its mask."""
    m, d = 256, 32
    q, k, v = numbers(m, d, dtype=dtype), *(numbers(n, d, dtype=dtype, seed=seed) for seed in (1, 2))
    o = torch.zeros_like(q)
    cpu_kernels.attention[(1,)](q, k, v, o, n, d**-0.5, M=m, D=d, BLOCK=32, num_warps=warps)
    expected = torch.softmax(q.double() @ k.double().T * d**-0.5, -1) @ v.double()
    close(o, expected, 2 * TOLERANCE[dtype])


@pytest.mark.parametrize("warps", WARPS)
def test_atomics_and_integers(warps: int) -> None:
    n = 301
    x = torch.randint(0, 16, (n,), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    out, counts = torch.zeros(warps, 16, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    cpu_kernels.kinds[(1,)](x, out, counts, n, BLOCK=32, KINDS=16, num_warps=warps)
    expected = torch.bincount(x, minlength=16).int()
    assert torch.equal(counts, expected)
    assert torch.equal(out, expected.expand(warps, 16))


def _arguments(name: str, warps: int) -> tuple[dict[str, Any], tuple[int, ...]]:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    if name == "softmax":
        n = 32 * warps - 5
        return {"x": floats(2, n), "y": np.zeros((2, n), "f"), "n": n, "BLOCK": 32}, (2,)
    if name == "statistics":
        n = 8 * warps - 1
        out = {"out": np.zeros(warps + 1, "f"), "where": np.zeros(1, "i4")}
        return {"x": floats(n), **out, "n": n, "BLOCK": 8}, (1,)
    if name == "staged_product":
        n = 16 * warps
        blocks = {"M": 16, "N": 16, "BK": 16}
        return {"a": floats(16, 40), "b": floats(40, n), "c": np.zeros((16, n), "f"), "K": 40, **blocks}, (1,)
    sizes = {"M": 33, "N": 20, "K": 40, "BM": 32, "BN": 16, "BK": 16}
    return {"a": floats(33, 40), "b": floats(40, 20), "c": np.zeros((33, 20), "f"), **sizes}, (2, 2)


@each_value(("name", ["softmax", "statistics", "product", "staged_product"]), ("warps", [1, 4, 8]))
def test_every_level_agrees_and_reads_no_memory_that_nothing_has_written(name: str, warps: int) -> None:
    args, grid = _arguments(name, warps)
    result = verify_kernel(
        getattr(cpu_kernels, name), args=args, grid=grid, target="cpu", num_warps=warps, uninitialised=True
    )
    assert result.ok, str(result)


def test_scratch_memory_is_stated() -> None:
    kernel = mltriton.compile(cpu_kernels.softmax, "*fp32, *fp32, i32", constexprs={"BLOCK": 64}, num_warps=8)
    assert kernel.metadata.num_warps == 8
    assert 8 * 64 * 4 <= kernel.metadata.scratch_bytes < 2 * 8 * 64 * 4


def test_sums_across_warps_are_carried_by_the_loop_over_the_warps() -> None:
    """Exponentials are kept from piece to piece, and nothing else: no buffer of largest elements or of sums."""
    kernel = mltriton.compile(cpu_kernels.softmax, "*fp32, *fp32, i32", constexprs={"BLOCK": 64}, num_warps=8)
    text = kernel.asm["warp"]
    assert text.count("ttg.local_alloc") == 1
    assert text.count("iter_args") == 2


def decode_for_four_warps() -> str:
    signature = "*fp32, *fp32, *fp32, *fp32, i32, fp32"
    constants = {"D": 32, "G": 2, "BLOCK": 16}
    return mltriton.compile(cpu_kernels.decode, signature, constexprs=constants, num_warps=4).asm["warp"]


def test_what_some_warps_receive_is_combined_once_and_without_poison() -> None:
    text = decode_for_four_warps()
    assert "} else {" not in text
    assert text.count("scf.if") == 3  # what warp 0 alone does, and an iteration of a warp


def test_iterations_that_warps_share_out_are_done_in_the_order_of_memory() -> None:
    """Blocks of 16 keys, four warps: a loop in steps of 64 whose iterations are one of each warp that has one left."""
    lines = [line.strip() for line in decode_for_four_warps().splitlines()]
    at = next(number for number, line in enumerate(lines) if line.startswith("scf.for %start"))
    assert "step %c64_i32" in lines[at]
    following = [line.split(" ")[0] for line in lines[at + 1 :] if line.startswith("scf.")]
    assert following[:2] == ["scf.for", "scf.if"]


@pytest.mark.parametrize(("across", "outer"), [(True, "column"), (False, "row")])
def test_warps_with_the_same_columns_share_the_right_operand(across: bool, outer: str) -> None:
    """It is loaded for all of them, outside the loop over them."""
    constants = {"BM": 256, "BN": 64, "BK": 32, "ACROSS": across}
    signature = "*bf16, *bf16, *fp32, i32, i32, i32"
    kernel = mltriton.compile(cpu_kernels.grid_product, signature, constexprs=constants, num_warps=8)
    loops = [line.strip() for line in kernel.asm["warp"].splitlines()]
    inner = "row" if outer == "column" else "column"
    start = next(number for number, line in enumerate(loops) if line.startswith(f"scf.for %warp_{outer}"))
    end = next(number for number, line in enumerate(loops) if line.startswith(f"scf.for %warp_{inner}"))
    assert start < end
    assert any(line.startswith("%right = tt.load") for line in loops[start:end])
