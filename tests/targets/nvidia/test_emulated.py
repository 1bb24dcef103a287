"""Kernels for NVIDIA's GPUs, run by the PTX emulator: results, copies ahead, operands in every order.

All tests of the language and of the tutorials run so, too: `pytest tests/language --target cuda:90 --emulated`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton import kernels as library
from mltriton.compiler import compile_job
from mltriton.errors import DeviceAssertionError, SharedMemoryError
from mltriton.targets.nvidia.facts import NvidiaFacts
from mltriton.tools.remarks import kernel_remarks
from ptx_emulator.launch import install
from ptx_emulator.memory import EmulationError

from . import kernels

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[3]
Array = Any


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


@triton.jit
def product(
    a, b, c, K, sam, sak, sbk, sbn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    along = tl.arange(0, BK)
    left, right = a + rows[:, None] * sam + along[None, :] * sak, b + along[:, None] * sbk + columns[None, :] * sbn
    total = tl.zeros((BM, BN), c.dtype.element_ty)
    for k in range(0, K, BK):
        inside = k + along < K
        x = tl.load(left, mask=inside[None, :], other=0)
        y = tl.load(right, mask=inside[:, None], other=0)
        total = tl.dot(x, y, total, input_precision=PRECISION, out_dtype=c.dtype.element_ty)
        left += BK * sak
        right += BK * sbk
    tl.store(c + rows[:, None] * (BN * tl.num_programs(1)) + columns[None, :], total)


@pytest.mark.parametrize(
    ("dim", "causal", "kv_heads", "window"), [(128, True, 1, None), (64, False, 2, None), (64, True, 2, 20)]
)
def test_gradients_of_attention(dim: int, causal: bool, kv_heads: int, window: int | None) -> None:
    """Blocks and statistics of queries that a producer copies; lengths that no block divides, heads that share keys."""
    q, do = (torch.randn(1, 2, 70, dim, dtype=torch.float16) for _ in range(2))
    k, v = (torch.randn(1, kv_heads, 90, dim, dtype=torch.float16) for _ in range(2))
    wide = [x.double().requires_grad_() for x in (q, k, v)]
    shared = [x.repeat_interleave(2 // kv_heads, 1) for x in wide[1:]]
    scores = wide[0] @ shared[0].mT * dim**-0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(70, 90, dtype=torch.bool).tril(), -torch.inf)
    if window is not None:
        scores = scores.masked_fill(torch.ones(70, 90, dtype=torch.bool).tril(-window), -torch.inf)
    o, lse = scores.softmax(-1) @ shared[1], scores.logsumexp(-1)
    wanted = torch.autograd.grad(o, wide, do.double())
    given = (do, q, k, v, o.detach().half(), lse.detach().float())
    found = library.flash_attention_backward(*given, causal, window=window, target="cuda:90")
    for gradient, exact in zip(found, wanted, strict=True):
        assert ((gradient.double() - exact).norm() / exact.norm()).item() < 1e-3


@triton.jit
def regrouped(x, o, shift, R: tl.constexpr, C: tl.constexpr):
    """Eight columns after the other, all rows of each beside them; and the same once more from `shift` on."""
    row, column = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    values = tl.load(x + row * C + column)
    tl.store(o + column // 8 * (8 * R) + row * 8 + column % 8, values)
    moved = column + shift
    tl.store(o + R * C + row * C + moved // 4 * 4 + moved % 4 - shift, values)


@pytest.mark.parametrize("shift", [0, 3, -5])
def test_quotients_of_neighbours(shift: int) -> None:
    """Lanes and registers divide by powers of two apart: what registers have in common is computed once."""
    x = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)
    o = np.zeros((2, 32 * 64), np.float32)
    kernel = regrouped[(1,)](x, o, shift, 32, 64, target="cuda:90")
    np.testing.assert_array_equal(o[0].reshape(8, 32, 8).transpose(1, 0, 2).reshape(32, 64), x)
    np.testing.assert_array_equal(o[1].reshape(32, 64), x)
    addresses = re.findall(r"st\.global\.b32 \t\[(%rd\d+)", kernel.asm["ptx"])
    assert addresses.count(addresses[0]) == len(addresses) // 2


def ordered(x: Array, order: str) -> Array:
    """The same matrix with its rows or its columns together."""
    return x.contiguous() if order == "rows" else x.T.contiguous().T


def multiplied(a: Array, b: Array, c: Array, blocks: tuple[int, int, int], precision: str, **options: Any) -> None:
    (m, k), (_, n) = a.shape, b.shape
    bm, bn, bk = blocks
    arguments = (a, b, c, k, *a.stride(), *b.stride(), bm, bn, bk, precision)
    product[(m // bm, n // bn)](*arguments, **{"target": "cuda:90", **options})


# Elements of operands and sum, tolerance, and how large numbers are.
KINDS: dict[str, tuple[Any, Any, float]] = {
    "f16": (torch.float16, torch.float32, 1e-5),
    "f16 sums": (torch.float16, torch.float16, 2e-2),
    "bf16": (torch.bfloat16, torch.float32, 1e-5),
    "tf32": (torch.float32, torch.float32, 5e-3),
    "ieee": (torch.float32, torch.float32, 1e-5),
    "i8": (torch.int8, torch.int32, 0.0),
    "f64": (torch.float64, torch.float64, 1e-12),
    "e4m3": (torch.float8_e4m3fn, torch.float32, 1e-5),
    "e5m2": (torch.float8_e5m2, torch.float32, 1e-5),
}


def check_product(kind: str, orders: str, target: str) -> None:
    dtype, sums, tolerance = KINDS[kind]
    random = torch.Generator().manual_seed(3)
    numbers = [torch.randn((64, 96), generator=random), torch.randn((96, 32), generator=random)]
    scale = 20 if dtype == torch.int8 else 1
    a, b = (ordered((x * scale).to(dtype), order) for x, order in zip(numbers, orders.split(), strict=True))
    c = torch.zeros((64, 32), dtype=sums)
    multiplied(a, b, c, (32, 32, 32), "ieee" if kind == "ieee" else "tf32", target=target)
    wanted = a.to(torch.float64) @ b.to(torch.float64)
    assert (c.to(torch.float64) - wanted).abs().max() <= tolerance * wanted.abs().max()


@pytest.mark.parametrize("orders", ["rows rows", "rows columns", "columns rows", "columns columns"])
@pytest.mark.parametrize("kind", KINDS)
def test_products(kind: str, orders: str) -> None:
    check_product(kind, orders, "cuda:90")


@pytest.mark.parametrize("kind", ["f64", "e4m3", "e5m2"])
def test_products_by_the_instructions_of_older_devices(kind: str) -> None:
    check_product(kind, "rows rows", "cuda:80")


@pytest.mark.parametrize(
    ("k", "stages", "warps"), [(16, 2, 8), (16, 4, 2), (80, 1, 2), (80, 4, 1), (100, 2, 2), (100, 3, 8)]
)
def test_copies_ahead(k: int, stages: int, warps: int) -> None:
    random = torch.Generator().manual_seed(k)
    a, b = (torch.randn(shape, generator=random).half() for shape in ((64, k), (k, 64)))
    c = torch.zeros((64, 64))
    multiplied(a, b, c, (64, 32, 16), "tf32", num_stages=stages, num_warps=warps)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-4, atol=1e-4)


def test_operands_come_by_copies_and_ldmatrix() -> None:
    a, b, c = torch.randn(64, 64).half(), torch.randn(64, 64).half(), torch.zeros(64, 64)
    arguments = (a, b, c, 64, *a.stride(), *b.stride(), 64, 64, 32, "tf32")
    made = product.warmup(*arguments, grid=(1, 1), target="cuda:89")
    ptx = made.asm["ptx"]
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in ptx and "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in ptx
    assert "cp.async.cg.shared.global" in ptx and "ld.global" not in ptx
    assert "ld.shared" not in ptx[: ptx.rindex("mma.sync")]  # behind them the result is on its way to memory
    assert NvidiaFacts(**made.binary.metadata["facts"]).shared >= 3 * 2 * 64 * 32 * 2


def test_products_through_descriptors() -> None:
    """Copied ahead, too, whole rows and parts of blocks."""
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((80, 160), (160, 96)))
    c = library.matmul(a, b, "descriptor", target="cuda:90")
    np.testing.assert_allclose(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=2e-2)


def test_attention_through_block_pointers() -> None:
    rng = np.random.default_rng(10)
    q, k, v = (rng.standard_normal((1, 2, 160, 32)).astype(np.float16) for _ in range(3))
    found = library.flash_attention(q, k, v, causal=True, target="cuda:90").astype(np.float64)
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = np.where(np.tril(np.ones((160, 160), bool)), q @ k.swapaxes(-1, -2) / np.sqrt(32), -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(found, p / p.sum(-1, keepdims=True) @ v, atol=3e-3)


@triton.jit
def turned(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    block = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
    largest = tl.max(block, 1)
    total = tl.cumsum(block, 0)
    tl.store(y + columns[:, None] * ROWS + rows[None, :], tl.trans(total + largest[:, None]))


@pytest.mark.parametrize("shape", [(16, 16), (64, 32), (32, 128), (8, 4)], ids=str)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.float64], ids=lambda d: d.__name__)
def test_blocks_that_cross_warps(dtype: Any, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(6).integers(-4, 5, shape).astype(dtype)
    y = np.zeros(shape[::-1], dtype)
    turned[(1,)](x, y, *shape, target="cuda:90")
    np.testing.assert_array_equal(y, (np.cumsum(x, 0, dtype=dtype) + x.max(1, keepdims=True)).T)


def test_an_access_outside_of_the_arrays_is_found() -> None:
    x, y, z = (np.ones(100, np.float32) for _ in range(3))
    with pytest.raises(EmulationError, match="outside of all arrays"):
        kernels.add[(1,)](x, y, z, 4096, 4096, target="cuda:90")


def test_assertions(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(64, dtype=np.int32)
    kernels.checked[(1,)](x, 64, 64, target="cuda:90", debug=True)
    assert "pid (0, 0, 0) idx (63) value: 63" in capsys.readouterr().out
    with pytest.raises(DeviceAssertionError, match="too large"):
        kernels.checked[(1,)](x, 60, 64, target="cuda:90", debug=True)


@triton.jit
def exponentials(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.exp(tl.load(x + at)))


def test_exponentials_over_their_whole_range() -> None:
    rng = np.random.default_rng(8)
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, 88.8, -104.0, 1e-40, -87.4]
    x = np.concatenate([rng.uniform(-105, 90, 1015), special]).astype(np.float32)
    y = np.zeros_like(x)
    exponentials[(1,)](x, y, 1024, target="cuda:90")
    with np.errstate(over="ignore"):
        wanted = np.exp(x.astype(np.float64)).astype(np.float32)
    finite = np.isfinite(wanted)
    assert (np.isnan(y) == np.isnan(wanted)).all() and (y[~finite & ~np.isnan(wanted)] == np.inf).all()
    assert (np.abs(y[finite] - wanted[finite]) <= 2 * np.spacing(wanted[finite])).all()


@triton.jit
def row_of_powers(x, y, total, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + at)
    below = row - tl.max(row, 0)
    tl.store(y + at, tl.exp(below))
    again = tl.load(x + at)
    tl.store(total, tl.sum(tl.exp(again - tl.max(again, 0)), 0))


def test_powers_of_at_most_one() -> None:
    rng = np.random.default_rng(9)
    special = [-np.inf, 0.0, -0.0, -87.4, -103.0, -104.0, -1e30, -200.0]
    x = np.concatenate([rng.uniform(-87, 0, 1016), special]).astype(np.float32)
    y, total = np.zeros_like(x), np.zeros(1, np.float32)
    row_of_powers[(1,)](x, y, total, 1024, target="cuda:90")
    wanted = np.exp(x.astype(np.float64)).astype(np.float32)
    normal = wanted >= np.finfo(np.float32).tiny
    assert (np.abs(y[normal] - wanted[normal]) <= 2 * np.spacing(wanted[normal])).all()
    assert (y[~normal] >= 0).all() and (y[~normal] <= np.finfo(np.float32).tiny).all()
    np.testing.assert_allclose(total[0], np.exp(x.astype(np.float64)).sum(), rtol=1e-6)
    for last, others in ((np.nan, np.nan), (np.inf, 0.0)):
        x[-1] = last
        row_of_powers[(1,)](x, y, total, 1024, target="cuda:90")
        assert np.isnan(y[-1])
        np.testing.assert_array_equal(y[:-1] if last == np.inf else y[-1:], others)


@triton.jit
def assembled(x, y, BLOCK: tl.constexpr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr, PACK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    made = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [value], dtype=value.dtype, is_pure=True, pack=PACK)
    tl.store(y + at, made)


ASSEMBLY: dict[str, tuple[Any, str, str, int, Callable[[Array], Array]]] = {
    "i32": (np.int32, "mad.lo.s32 $0, $1, $1, 3;", "=r,r", 1, lambda x: x * x + 3),
    "f32": (np.float32, "{ .reg .f32 t; neg.f32 t, $1; add.f32 $0, t, $1; }", "=f,f", 1, lambda x: x - x),
    "bytes": (np.uint8, "xor.b32 $0, $1, 0x01020304;", "=r,r", 4, lambda x: x ^ np.tile([4, 3, 2, 1], len(x) // 4)),
}


@pytest.mark.parametrize("kind", ASSEMBLY)
def test_inline_assembly_is_ptx(kind: str) -> None:
    dtype, text, constraints, pack, wanted = ASSEMBLY[kind]
    x = np.random.default_rng(5).integers(0, 100, 256).astype(dtype)
    y = np.zeros_like(x)
    assembled[(1,)](x, y, 256, text, constraints, pack, target="cuda:90")
    np.testing.assert_array_equal(y, wanted(x).astype(dtype))


@triton.jit
def counted(counters, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Nobody takes the first three; the others are alike; the last is of 16-bit numbers, two at a time."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    text: tl.constexpr = "atom.relaxed.gpu.global.add.u32 $0, [$1], 1;"
    for _ in range(3):
        tl.inline_asm_elementwise(text, "=r,l", [counters + at], tl.int32, is_pure=False, pack=1)
    a = tl.inline_asm_elementwise(text, "=r,l", [counters + at], tl.int32, is_pure=False, pack=1)
    b = tl.inline_asm_elementwise(text, "=r,l", [counters + at], tl.int32, is_pure=False, pack=1)
    both: tl.constexpr = "{ not.b32 $0, $2; mov.b32 $1, $2; }"
    small = tl.load(counters + at).to(tl.int16)
    c, d = tl.inline_asm_elementwise(both, "=r,=r,r", [small], (tl.int16, tl.int16), is_pure=False, pack=2)
    tl.store(out + at, 1000 * a + 100 * b + 10 * d.to(tl.int32) - c.to(tl.int32))


def test_assembly_that_is_not_pure_runs_each_time_and_in_order() -> None:
    counters, out = np.ones((16, 32), np.int32), np.zeros((16, 32), np.int32)
    counted[(1,)](counters, out, 16, 32, target="cuda:90")
    np.testing.assert_array_equal(counters, 6)
    np.testing.assert_array_equal(out, 4000 + 500 + 60 + 7)


def run_language(tests: list[str], cache: Path, *options: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "--target", "cuda:90"]
    environment = os.environ | {"MLTRITON_CACHE_DIR": str(cache)}
    command += ["--emulated", *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_operations_on_shapes(tmp_path: Path) -> None:
    run_language(["tests/language/test_shapes.py"], tmp_path, "--num-warps", "2")


def test_attention_through_pointers(tmp_path: Path) -> None:
    """Backward, loops take blocks of keys whose columns lie together in both orders."""
    chosen = "forward_and_backward and float16-True and not bfloat16"
    run_language(["tests/tutorials/test_attention.py"], tmp_path, "-k", chosen)


@pytest.mark.slow
@pytest.mark.parametrize("warps", [1, 4, 8])
def test_the_language_and_the_tutorials(warps: int, tmp_path: Path) -> None:
    run_language(
        ["tests/language", "tests/tutorials", "tests/warps/test_kernels.py", "tests/warps/test_language.py"],
        tmp_path,
        "--num-warps",
        str(warps),
    )


@pytest.mark.parametrize(("n", "accesses"), [(48, 1), (52, 8), (64, 1)])
def test_neighbours_of_remainders_are_loaded_together(n: int, accesses: int) -> None:
    """In pieces of 16 bytes where the divisor is a multiple of so many elements."""
    x, out = torch.randn(12, n).half(), torch.zeros(32, 128).half()
    made = kernels.wrapped[(2, 2)](x, out, 12, n, 16, 64, target="cuda:90")
    rows, columns = torch.arange(32) % 12, torch.arange(128) % n
    assert torch.equal(out, x[rows][:, columns])
    assert made.asm["ptx"].count("ld.global") == accesses


@pytest.mark.parametrize("step", [1, 2, 4, 8])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_fewer_products_than_an_instruction_adds_up(step: int, dtype: type) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((32, 3 * step), (3 * step, 32)))
    c = np.zeros((32, 32), np.int32 if dtype is np.int8 else np.float32)
    kernels.product[1,](a, b, c, 3 * step, BLOCK=32, STEP=step, PRECISION="tf32", target="cuda:90", num_warps=2)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))


@triton.jit
def strided(x, y, table, N: tl.constexpr, BY: tl.constexpr):
    """Rows and their distance are found in memory."""
    size = tl.multiple_of(tl.load(table).to(tl.int32), BY)
    stride = tl.multiple_of(tl.load(table + 1), BY)
    base = x + tl.maximum(tl.multiple_of(tl.load(table + 2), BY), 0)
    row, column = tl.arange(0, 8)[:, None], tl.arange(0, N)[None, :]
    block = tl.load(base + row * stride + column, mask=column < size, other=0)
    tl.store(y + row * N + column, block)


@pytest.mark.parametrize(("by", "size"), [(8, 40), (1, 37)])
def test_promises_of_what_memory_holds_reach_accesses(by: int, size: int) -> None:
    x, table = np.arange(4096, dtype=np.int16), np.array([size, 72, 16], np.int64)
    y = np.full((8, 64), -1, np.int16)
    made = strided[1,](x, y, table, 64, by, target="cuda:90", num_warps=1)
    wanted = x[16 : 16 + 8 * 72].reshape(8, 72)[:, :64] * (np.arange(64) < size)
    assert (y == wanted).all()
    assert ("ld.global.v4.b32" in made.asm["ptx"]) == (by == 8)


@triton.jit
def promised(x, y, table, count, WHERE: tl.constexpr, BY: tl.constexpr):
    """Sums 64 neighbours of each of `count` rows, whose addresses only a promise says something of."""
    line = tl.arange(0, 64)
    start, step = tl.load(table), tl.load(table + 1)
    total = tl.zeros((64,), tl.int32)
    if WHERE == "for":
        at = x + start + line
        for _ in range(count):
            tl.multiple_of(at, BY)
            total += tl.load(at)
            at += step
    elif WHERE == "while":
        left, at = count, x + start + line
        while left > 0:
            tl.multiple_of(at, BY)
            total += tl.load(at)
            at += step
            left -= 1
    elif WHERE == "if":
        for i in range(count):
            offset = start
            if i > 0:
                offset = start + i * step
            tl.multiple_of(offset, BY // 2)
            total += tl.load(tl.multiple_of(x, 16) + offset + line)
    elif WHERE == "after":
        offset = start
        for _ in range(count):
            offset = offset * 2 - step
        tl.multiple_of(offset, BY // 2)
        total += tl.load(tl.multiple_of(x, 16) + offset + line)
    else:
        for offset in range(start, start + count * step, step):
            offset = tl.multiple_of(offset, BY // 2)
            total += tl.load(tl.multiple_of(x, 16) + offset + line)
    tl.store(y + line, total)


@pytest.mark.parametrize("where", ["for", "while", "if", "after", "counter"])
@pytest.mark.parametrize(("by", "start", "step"), [(16, 72, 64), (1, 71, 67)])
def test_promises_of_what_control_flow_makes_reach_accesses(where: str, by: int, start: int, step: int) -> None:
    x, table = np.arange(4096, dtype=np.int16), np.array([start, step], np.int32)
    y = np.zeros(64, np.int32)
    made = promised[1,](x, y, table, 3, where, by, target="cuda:90", num_warps=1)
    rows = [step + (start - step) * 8] if where == "after" else range(start, start + 3 * step, step)
    assert (y == sum(x[i : i + 64].astype(np.int32) for i in rows)).all()
    assert ("ld.global.s16" in made.asm["ptx"]) == (by == 1)


@triton.jit
def beside(x, y, BY: tl.constexpr):
    at = x + tl.load(y) + tl.arange(0, 64)
    tl.multiple_of(at, BY)
    tl.store(y + tl.arange(0, 64), tl.load(at).to(tl.int32) + tl.load(at + 1) * 1000)


def test_a_promise_says_nothing_of_neighbours() -> None:
    x, y = np.arange(4096, dtype=np.int16), np.zeros(64, np.int32)
    y[0] = 32
    beside[1,](x, y, 16, target="cuda:90", num_warps=1)
    assert (y == x[32:96].astype(np.int32) + x[33:97] * 1000).all()


@triton.jit
def turned_product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BN, BM), tl.float32)
    for start in tl.range(0, K, BK, num_stages=STAGES):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k[:, None]) * BN + n[None, :])
        acc += tl.trans(tl.dot(x, y))
    tl.store(c + n[:, None] * BM + m[None, :], acc)


@pytest.mark.parametrize(("target", "fewer"), [("cuda:90", 1), ("cuda:80", 1)])
def test_fewer_stages_than_asked_for_where_all_else_needs_the_memory(target: str, fewer: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((64, 192), (192, 128)))
    c = np.zeros((128, 64), np.float32)
    made = turned_product[1,](a, b, c, 192, 64, 128, 64, 9, target=target, num_warps=4)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)).T)
    assert made.metadata.fewer_stages == fewer
    assert any(f"{fewer} stage less" in remark for remark in kernel_remarks(made))
    again = compile_job(replace(made.job, fewer_stages=0))
    assert again.metadata.from_cache
    assert again.job.fewer_stages == fewer
    assert again.asm["ttg"] == made.asm["ttg"]


def test_no_stages_make_room_for_what_is_too_large_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLTRITON_VERIFY_PASSES", "0")
    a, c = np.zeros((512, 64), np.float16), np.zeros((512, 256), np.float32)
    with pytest.raises(SharedMemoryError, match="more shared memory than cuda:90 has"):
        turned_product[1,](a, a[:256].T.copy(), c, 64, 256, 256, 64, 3, target="cuda:90", num_warps=8)
