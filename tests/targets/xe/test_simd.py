"""Kernels of the language in SIMD form (one program for each warp) (`codegen="simd"`), emulated, against numpy."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned
from mltriton.errors import BackendError, OptionError
from mltriton.ir.parser import parse_module
from mltriton.kernels.attention import Blocks, attention_launch
from mltriton.kernels.attention_backward import backward_launches, choose_warp_blocks
from mltriton.kernels.attention_paged import choose_block_form, paged_attention_launches
from mltriton.kernels.gemm import matmul_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.kernels.launch import Launch
from mltriton.kernels.normalization import softmax_launch
from mltriton.targets.registry import spec
from mltriton.targets.xe.codegens import BY_NAME
from mltriton.targets.xe.devices import device

pytestmark = pytest.mark.usefixtures("queue")
TARGET = "xe:pvc"
RNG = np.random.default_rng(3)
Array = np.ndarray[Any, Any]


def run(launch: Launch, **options: Any) -> None:
    launch.kernel[launch.grid](*launch.arguments, **launch.constants, **options, target=TARGET, codegen="simd")


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def operand(*shape: int, dtype: type) -> Array:
    if dtype is np.int8:
        return aligned(RNG.integers(-100, 100, shape).astype(dtype))
    return aligned(RNG.standard_normal(shape).astype(dtype))


@pytest.mark.parametrize(
    ("shape", "dtype", "result", "warps", "turned"),
    [
        ((77, 136, 88), np.float16, np.float32, 4, False),
        ((50, 96, 64), np.float16, np.float16, 8, True),
        ((70, 100, 75), np.int8, np.int32, 4, False),
        ((64, 64, 48), np.float32, np.float32, 4, False),
        ((64, 64, 64), np.int8, np.int32, 2, False),
    ],
)
def test_products(shape: tuple[int, int, int], dtype: type, result: type, warps: int, turned: bool) -> None:
    """By block accesses where the hardware takes the matrices, and register by register where it does not."""
    m, n, k = shape
    a, b = operand(1, m, k, dtype=dtype), operand(1, k, n, dtype=dtype)
    if turned:
        b = aligned(b.swapaxes(1, 2)).swapaxes(1, 2)
    c = np.zeros((1, m, n), result)
    launch = matmul_launch(a, b, c, tile=Tile(64, 64, 32, 1))
    run(launch, num_warps=warps)
    right = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - right).max() <= (1e-3 if result is np.float16 else 1e-5) * np.abs(right).max()


@pytest.mark.parametrize(
    ("target", "expected"),
    [(TARGET, "one of simt, simd"), ("cpu", "the target cpu has no codegen")],
)
def test_an_unknown_form_of_code_is_named(target: str, expected: str) -> None:
    a = operand(1, 16, 16, dtype=np.float16)
    launch = matmul_launch(a, a, np.zeros_like(a), tile=Tile(16, 16, 16, 1))
    with pytest.raises(OptionError, match="no codegen") as caught:
        launch.kernel.warmup(*launch.arguments, **launch.constants, target=target, codegen="vector", num_warps=1)
    assert expected in str(caught.value)


@triton.jit
def scaled_sum(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    first, second = tl.load(a + at, mask=inside, other=1), tl.load(b + at, mask=inside)
    tl.store(c + at, tl.where(first > second, first + second, second - first), mask=inside)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
@pytest.mark.parametrize("warps", [1, 4])
def test_masked_loads_and_stores(dtype: type, warps: int) -> None:
    a, b = (RNG.integers(-50, 50, 1003).astype(dtype) for _ in range(2))
    c = np.full(1010, 77, dtype)
    scaled_sum[(4,)](a, b, c, 1003, 256, target=TARGET, codegen="simd", num_warps=warps)
    assert (c[:1003] == np.where(a > b, a + b, b - a)).all()
    assert (c[1003:] == 77).all()


@pytest.mark.parametrize("warps", [1, 4])
def test_rows_are_reduced_over_lanes_and_warps(warps: int) -> None:
    x = RNG.standard_normal((5, 300)).astype(np.float32)
    y = np.zeros_like(x)
    run(softmax_launch(x, y), num_warps=warps)
    np.testing.assert_allclose(y, softmax(x.astype(np.float64)), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("dim", "causal"), [(32, True), (64, False)])
def test_attention(dim: int, causal: bool) -> None:
    q, k, v = (operand(1, 2, 48, dim, dtype=np.float16) for _ in range(3))
    o = aligned(np.zeros_like(q))
    run(attention_launch(q, k, v, o, causal=causal, blocks=Blocks(32, 32)), num_warps=4)
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / np.sqrt(dim)
    if causal:
        scores = np.where(np.tril(np.ones((48, 48), bool)), scores, -np.inf)
    np.testing.assert_allclose(o, softmax(scores) @ v.astype(np.float64), atol=4e-3)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_attention(causal: bool) -> None:
    """Warps exchange the gradients of scores by rows of 64 words."""
    do, q, k, v = (operand(1, 2, 50, 64, dtype=np.float16) for _ in range(4))
    dq, dk, dv = (aligned(np.zeros_like(x)) for x in (q, k, v))
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 8
    if causal:
        scores = np.where(np.tril(np.ones((50, 50), bool)), scores, -np.inf)
    lse, shares = np.log(np.exp(scores).sum(-1)), softmax(scores)
    o = aligned((shares @ v.astype(np.float64)).astype(np.float16))
    blocks = choose_warp_blocks(50, 2, 64, q.itemsize)
    for launch in backward_launches(do, q, k, v, o, lse.astype(np.float32), dq, dk, dv, causal, blocks=blocks):
        run(launch, num_warps=blocks.warps)
    wide = do.astype(np.float64)
    by_scores = shares * (wide @ v.astype(np.float64).swapaxes(-1, -2) - (wide * o).sum(-1, keepdims=True)) / 8
    turned = by_scores.swapaxes(-1, -2)
    for found, right in ((dq, by_scores @ k), (dk, turned @ q), (dv, shares.swapaxes(-1, -2) @ wide)):
        assert np.abs(found - right).max() <= 3e-3 * np.abs(right).max()


@pytest.mark.parametrize("page", [16, 13])
def test_paged_attention_by_warps(page: int) -> None:
    """Pages in any order, read by blocks, or key by key; sequences that end inside a page."""
    lengths, heads, groups, dim = [50, 19], 4, 2, 32
    keys, values = (operand(8, page, groups, dim, dtype=np.float16) for _ in range(2))
    q = operand(2, heads, dim, dtype=np.float16)
    o, table = aligned(np.zeros_like(q)), RNG.permutation(8).reshape(2, 4).astype(np.int32)
    limits = spec(TARGET).block_load
    assert limits is not None
    form = choose_block_form(q, keys, values, True, limits)
    for launch in paged_attention_launches(q, keys, values, table, np.array(lengths, np.int32), o, form=form):
        run(launch)
    for sequence, length in enumerate(lengths):
        for head in range(heads):
            group = head // (heads // groups)
            k, v = (x[table[sequence]].reshape(-1, groups, dim)[:length, group].astype(float) for x in (keys, values))
            right = softmax(k @ q[sequence, head].astype(float) / np.sqrt(dim)) @ v
            np.testing.assert_allclose(o[sequence, head], right, atol=4e-3)


def test_address_payloads_are_refused() -> None:
    a = operand(1, 16, 16, dtype=np.float16)
    launch = matmul_launch(a, a, np.zeros_like(a), tile=Tile(16, 16, 16, 1))
    options = {"target": TARGET, "codegen": "simd", "address_payloads": True, "num_warps": 1}
    with pytest.raises(BackendError, match="SIMD kernels have no address payloads"):
        launch.kernel.warmup(*launch.arguments, **launch.constants, **options)


@triton.jit
def counted(x, sums, chosen, bins, total, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(value, 0, reverse=True))
    tl.store(chosen + at, tl.gather(value, (at * 5) % N, 0))
    tl.atomic_add(bins + value, 1, mask=value < 20)
    tl.atomic_max(total, tl.sum(value.to(tl.float32), 0))


@pytest.mark.parametrize("warps", [1, 2])
def test_scans_gathers_and_atomics(warps: int) -> None:
    x = RNG.integers(0, 37, 128).astype(np.int32)
    sums, chosen = np.zeros(128, np.int32), np.zeros(128, np.int32)
    bins, total = np.zeros(37, np.int32), np.zeros(1, np.float32)
    counted[(1,)](x, sums, chosen, bins, total, 128, target=TARGET, codegen="simd", num_warps=warps)
    assert (sums == x[::-1].cumsum()[::-1]).all()
    assert (chosen == x[np.arange(128) * 5 % 128]).all()
    assert (bins == np.bincount(x[x < 20], minlength=37)).all()
    assert total[0] == x.sum()


@triton.jit
def narrow_updates(bins, x, before, marks, n, N: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.store(before + at, tl.atomic_add(bins + at % BINS, value, mask=at < n), mask=at < n)
    tl.store(x + at, tl.atomic_cas(marks + at, value, value + 1), mask=at < n)


@pytest.mark.parametrize("codegen", ["simt", "simd"])
@pytest.mark.parametrize(("dtype", "warps"), [("float16", 2), ("bfloat16", 1), ("float64", 1)])
def test_atomics_that_take_loops(codegen: str, dtype: str, warps: int) -> None:
    """Lanes of one message meet in a bin; of two neighbours in a word one is replaced."""
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    x = torch.from_numpy(RNG.integers(1, 6, 100)).to(kind)
    marks = torch.zeros(128, dtype=kind)
    marks[:100:2] = x[::2]
    expected, swapped, bins = x.clone(), torch.where(marks[:100] == x, x + 1, marks[:100]), torch.zeros(3, dtype=kind)
    before = torch.zeros(100, dtype=kind)
    options = {"target": TARGET, "codegen": codegen, "num_warps": warps}
    narrow_updates[(2,)](bins, x, before, marks, 100, N=64, BINS=3, **options)
    for number in range(3):
        values, sums = expected[number::3], before[number::3]
        assert bins[number] == values.sum()
        assert sorted(sums) == sorted({float(total) for total in sums})  # Each update saw another sum.
        assert {float(bins[number])} == {float(a + b) for a, b in zip(sums, values, strict=True)} - {*map(float, sums)}
    assert (marks[:100] == swapped).all()
    assert (x[::2] == expected[::2]).all()
    assert (x[1::2] == 0).all()


@triton.jit
def functions(x, y, STRIDE: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    tl.store(y + at, tl.exp(value))
    tl.store(y + STRIDE + at, tl.exp2(value))
    tl.store(y + 2 * STRIDE + at, tl.log(value))
    tl.store(y + 3 * STRIDE + at, tl.log2(value))
    tl.store(y + 4 * STRIDE + at, tl.erf(value))
    tl.store(y + 5 * STRIDE + at, tl.floor(value))
    tl.store(y + 6 * STRIDE + at, tl.ceil(value))
    tl.store(y + 7 * STRIDE + at, tl.sqrt(value))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 3e-7), (np.float64, 1e-15)])
def test_functions(dtype: type, tolerance: float) -> None:
    x = np.linspace(-80, 88, 1024, dtype=dtype)
    x[:8] = np.inf, -np.inf, np.nan, 95, 0, -0.0, 1e-20, 0.5
    y = np.zeros((8, 1024), dtype)
    functions[(1,)](x, y, 1024, 1024, target=TARGET, codegen="simd")
    wide = x.astype(np.float64)
    erf = np.vectorize(math.erf)
    with np.errstate(all="ignore"):
        right = (np.exp, np.exp2, np.log, np.log2, erf, np.floor, np.ceil, np.sqrt)
        for found, function in zip(y, right, strict=True):
            np.testing.assert_allclose(found, function(wide).astype(dtype), rtol=tolerance, err_msg=str(function))
    assert np.signbit(y[5:, 5]).all()  # of -0


@triton.jit
def circular(x, y, n, high, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.sin(tl.load(x + at)))
    tl.store(y + N + at, tl.cos(tl.load(x + at)))
    tl.store(high + at, tl.umulhi(tl.load(n + at), tl.load(n + N - 1 - at)))  # backwards


def test_circular_functions_of_any_size_and_high_products() -> None:
    x = (RNG.standard_normal(512) * np.exp2(RNG.uniform(-10, 126, 512))).astype(np.float32)
    x[:128] = RNG.uniform(-300, 300, 128)
    x[:6] = 0, -0.0, np.inf, -np.inf, np.nan, 3.4e38
    n = RNG.integers(0, 1 << 32, 512, dtype=np.uint32)
    y, high = np.zeros((2, 512), np.float32), np.zeros(512, np.uint32)
    circular[(1,)](x, y, n, high, 512, target=TARGET, codegen="simd")
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        for found, right in zip(y, (np.sin(wide), np.cos(wide)), strict=True):
            np.testing.assert_allclose(found, right, rtol=3e-7, atol=1e-12)
    assert np.signbit(y[0, :2]).tolist() == [False, True]
    assert (high == (n.astype(np.uint64) * n[::-1] >> np.uint64(32))).all()


@triton.jit
def chained(a, b, c, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    product = tl.dot(tl.load(a + at), tl.load(b + at)).to(a.dtype.element_ty)
    tl.store(out + at, tl.dot(product.T, tl.load(c + at)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_operands_that_warps_exchange(dtype: type) -> None:
    """Through shared memory: by rows of words where lanes lie side by side there, or else an address for each lane."""
    a, b, c = (operand(32, 32, dtype=dtype) for _ in range(3))
    out = np.zeros((32, 32), np.float32)
    chained[(1,)](a, b, c, out, N=32, target=TARGET, codegen="simd", num_warps=4)
    product = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    right = product.T.astype(np.float64) @ c.astype(np.float64)
    np.testing.assert_allclose(out, right, atol=(2e-3 if dtype is np.float16 else 4e-6) * np.abs(right).max())
    llvm = chained.warmup(a, b, c, out, N=32, target=TARGET, codegen="simd", num_warps=4).asm["llvm"]
    for message in (r"load\.slm\.v\d+i32\.i1\.", r"store\.slm\.i1\.", r"load\.slm\.v\d+i32\.v16i1\."):
        assert re.search(rf"call .*@llvm\.genx\.lsc\.{message}", llvm)


def test_what_has_no_lowering_is_named_at_its_line() -> None:
    """The memory pipeline updates no bytes, and the language has none; programs as text may ask."""
    update = "%old = tt.atomic_rmw add, acq_rel, gpu, %p, %x : (!tt.ptr<i8>, i8) -> i8"
    text = f"module {{ tt.func public @bytes(%p: !tt.ptr<i8>, %x: i8) {{\n {update}\n tt.return }} }}"
    with pytest.raises(BackendError, match=r"an atomic add of i8 has no lowering") as caught:
        BY_NAME["simd"].lower(parse_module(text, "bytes.mlir"), device("pvc"))
    assert (caught.value.file, caught.value.line) == ("bytes.mlir", 2)
