"""Programs with a producer warp as PTX, on the emulator: results, threads, registers, and who has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.compiler import Job, options_of
from mltriton.compiler.compilation import compile_job
from mltriton.frontend.signature import parse_signature
from mltriton.kernels.attention import attention_launch
from mltriton.kernels.attention_blocks import Blocks
from mltriton.kernels.gemm_persistent import persistent_launch
from mltriton.kernels.gemm_tiles import Tile
from mltriton.targets.target import find_target
from mltriton.tools.remarks import kernel_remarks
from mltriton.tools.specialization_remarks import specialization_remarks
from persistent_product import product
from ptx_emulator.launch import install


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


def launched(rows: int, warps: int, *, asks: bool, **options: Any) -> Any:
    """Two programs walk over the tiles of a product; its kernel."""
    numbers = np.random.default_rng(0)
    a, b = (numbers.normal(size=shape).astype(np.float16) for shape in ((rows + 24, 112), (112, 72)))
    c = np.full((rows + 24, 72), np.nan, np.float16)
    sizes = (rows, 64, 32)
    kernel = product[(2,)](
        a, b, c, rows + 24, 72, 112, *sizes, ASKS=asks, num_warps=warps, num_stages=2, target="cuda:90", **options
    )
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, wanted, atol=2e-3 * np.abs(wanted).max())
    return kernel


@pytest.mark.parametrize(("rows", "warps", "registers"), [(64, 4, None), (128, 8, (240, 24)), (256, 16, (112, 24))])
def test_groups_of_warps(rows: int, warps: int, registers: tuple[int, int] | None) -> None:
    """A group more is started, which hands over registers where lanes do not have all that they may anyway; each warp
    stores its rows, and of two groups none waits for the other.
    """
    kernel = launched(rows, warps, asks=False, specialize_warps="all")
    text = kernel.asm["ptx"]
    assert f".maxntid {32 * (warps + 4)}" in text
    assert text.count(f"bar.sync \t1, {32 * warps};") == (warps > 8)
    assert "bar.warp.sync" in text
    if registers is None:
        assert "setmaxnreg" not in text
        return
    for kind, count in zip(("inc", "dec"), registers, strict=True):
        assert f"setmaxnreg.{kind}.sync.aligned.u32 {count};" in text
    at_the_start = 65536 // (32 * (warps + 4)) // 8 * 8
    assert warps * registers[0] + 4 * registers[1] <= (warps + 4) * at_the_start


@pytest.mark.parametrize(
    ("asks", "option", "has"), [(True, "auto", True), (True, "none", False), (False, "auto", False)]
)
def test_who_has_a_producer(asks: bool, option: str, has: bool) -> None:
    kernel = launched(64, 4, asks=asks, specialize_warps=option)
    assert ("ttg.warp_specialize" in kernel.asm["ttg"]) == has


def test_launches_of_one_round_have_none() -> None:
    """Two programs of 128 x 128 that copy for themselves share a multiprocessor; with a producer each has its own."""
    x = np.zeros((256, 256), np.float16)
    sizes = {"ASKS": False, "num_warps": 8, "num_stages": 3, "target": "cuda:90"}
    kernel = product.warmup(x, x, x, 256, 256, 256, 128, 128, 64, grid=(4,), **sizes)
    other = compile_job(kernel.job.in_one_round())
    facts = [made.binary.metadata["facts"] for made in (kernel, other)]
    assert [(each["num_warps"], each["beside"]) for each in facts] == [(12, 2), (8, 1)]
    assert any("none for launches of one round of 2 programs" in remark for remark in kernel_remarks(kernel))


@triton.jit
def both_operands(q, x, o, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """One block is the right operand of two products."""
    left = tl.make_tensor_descriptor(q, [BM, D], [D, 1], [BM, D])
    right = tl.make_tensor_descriptor(x, [n, D], [D, 1], [BN, D])
    result = tl.make_tensor_descriptor(o, [BM, D], [D, 1], [BM, D])
    a, acc = left.load([0, 0]), tl.zeros([BM, D], tl.float32)
    for i in tl.range(0, n, BN, warp_specialize=True):
        b = right.load([i, 0])
        acc = tl.dot(tl.minimum(tl.dot(a, b.T), 8).to(tl.float16), b, acc)
    result.store([0, 0], acc.to(tl.float16))


def test_a_block_that_two_products_read() -> None:
    """Its slot is given back once, when both have read it."""
    numbers = np.random.default_rng(0)
    q, x = (numbers.integers(-1, 2, size=(rows, 64)).astype(np.float16) for rows in (128, 320))
    o = np.full_like(q, np.nan)
    kernel = both_operands[(1,)](q, x, o, 320, 128, 64, 64, num_warps=8, num_stages=2, target="cuda:90")
    assert "ttg.warp_specialize default" in kernel.asm["ttg"]
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(o, np.minimum(q @ wide.T, 8) @ wide)


@pytest.mark.parametrize(("dim", "warps", "delayed"), [(64, 8, False), (64, 4, True), (128, 8, True)])
def test_products_are_delayed_where_no_other_program_computes_meanwhile(dim: int, warps: int, delayed: bool) -> None:
    q, k, v = (np.zeros((1, 1, 256, dim), np.float16) for _ in range(3))
    launch = attention_launch(q, k, v, q.copy(), False, blocks=Blocks(16 * warps, 64, warps))
    launch = launch.on("cuda:90", warps, 3)
    launch = launch._replace(constants=launch.constants | {"specialize_warps": "none"})
    text = launch.compiled().asm["ttg"]
    assert ("ttg.slots-kept" in text) == delayed


@triton.jit
def chosen(a, b, c, rows, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, COUNTS: tl.constexpr):
    """Blocks whose places lie in memory, which the program changes where it COUNTS."""
    left = tl.make_tensor_descriptor(a, [BM, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, BN], [BN, 1], [BK, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K // BK, warp_specialize=True):
        at = tl.load(rows + k) * BK
        total = tl.dot(left.load([0, at]), right.load([at, 0]), total)
        if COUNTS:
            tl.store(rows + k, k)
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    tl.store(c + i[:, None] * BN + j[None, :], total)


@triton.jit
def dependent(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WAIT: tl.constexpr):
    """Takes what the launch before it gives; the next one may begin while this one stores."""
    left = tl.make_tensor_descriptor(a, [BM, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, BN], [BN, 1], [BK, BN])
    if WAIT == "before":
        tl.extra.cuda.gdc_wait()
    total = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK):
        if WAIT == "inside":
            tl.extra.cuda.gdc_wait()
        total = tl.dot(left.load([0, k]), right.load([k, 0]), total)
    tl.extra.cuda.gdc_launch_dependents()
    i, j = tl.arange(0, BM), tl.arange(0, BN)
    tl.store(c + i[:, None] * BN + j[None, :], total)


@pytest.mark.parametrize("wait", ["before", "inside"])
@pytest.mark.parametrize("producer", ["all", "none"])
def test_launches_that_overlap_let_the_engine_copy(producer: str, wait: str) -> None:
    """Whoever starts copies waits for the launch before, each time that the program does."""
    numbers = np.random.default_rng(0)
    a, b = (numbers.normal(size=shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    c = np.full((64, 64), np.nan, np.float32)
    options = {"launch_pdl": True, "specialize_warps": producer, "target": "cuda:90"}
    kernel = dependent[(1,)](a, b, c, 256, 64, 64, 64, wait, **options)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-3, atol=1e-3)
    text = kernel.asm["ptx"]
    first = [text.index(word) for word in ("griddepcontrol.wait", "cp.async.bulk.tensor.2d.shared", "wgmma.mma_async")]
    assert text.count("griddepcontrol.wait") == (2 if producer == "all" else 1)
    assert producer == "all" or wait == "inside" or first == sorted(first)
    assert text.count("griddepcontrol.launch_dependents") == 1
    if producer == "all":
        copies = text[text.rindex("griddepcontrol.wait") :]
        assert "cp.async.bulk.tensor.2d.shared" in copies
        assert "cp.async.bulk.tensor.2d.shared" not in text[: text.rindex("griddepcontrol.wait")]


def test_a_producer_looks_up_where_blocks_lie() -> None:
    numbers = np.random.default_rng(0)
    a, b = (numbers.normal(size=shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    c, rows = np.full((64, 64), np.nan, np.float32), np.array([3, 2, 0, 3], np.int32)
    kernel = chosen[(1,)](a, b, c, rows, 256, 64, 64, 64, False, target="cuda:90")
    assert "ttg.warp_specialize" in kernel.asm["ttg"]
    taken = np.concatenate([np.arange(64) + 64 * row for row in rows])
    np.testing.assert_allclose(c, a.astype(np.float32)[:, taken] @ b[taken], rtol=1e-3, atol=1e-3)


def test_why_a_program_has_none() -> None:
    signature = "*fp16:16,*fp16:16,*fp32:16,*i32:16,i32:16,64,64,64,True"
    told = kernel_remarks(triton.compile(chosen, signature, target="cuda:90"))
    assert any("no producer warp: the place of a block depends on tt.load" in remark for remark in told)


@triton.jit
def multiplied(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A loop that adds up products, and nothing else."""
    left = tl.make_tensor_descriptor(a, [BM, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, BN], [BN, 1], [BK, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(left.load([0, k]), right.load([k, 0]), total)
    tl.make_tensor_descriptor(c, [BM, BN], [BN, 1], [BM, BN]).store([0, 0], total)


@pytest.mark.parametrize(
    ("block", "warps", "stages", "has"),
    [
        ((128, 128, 64), 8, 3, True),
        ((64, 256, 64), 8, 3, True),
        ((128, 128, 64), 8, 4, True),  # Programs that have a multiprocessor to themselves
        ((128, 256, 64), 8, 3, True),  # take turns.
        ((128, 64, 64), 8, 4, False),  # Two programs share a multiprocessor, of which one would not be faster.
        ((128, 128, 64), 4, 3, False),
    ],
)
def test_sums_have_one_where_blocks_would_come_late(
    block: tuple[int, int, int], warps: int, stages: int, has: bool
) -> None:
    entries = parse_signature(f"*fp16:16,*fp16:16,*fp32:16,i32:16,{','.join(map(str, block))}", multiplied.arg_names)
    job = Job(multiplied, entries, find_target("cuda:90"), options_of(num_warps=warps, num_stages=stages))
    *turns, told = specialization_remarks(job)
    assert bool(turns) == has
    assert (told.what == "producer warp") == has


def test_products_that_share_an_operand_share_slots() -> None:
    a = np.zeros((1, 512, 512), np.float16)
    launch = persistent_launch(a, a, a, Tile(128, 192, 64, 8), 2)
    assert launch is not None
    job = launch.on("cuda:90", 8, 4).compiled().job
    [told] = specialization_remarks(job)
    assert "in slots of 4 x 128x64xf16 + 64x128xf16 + 64x64xf16 and" in told.how


def test_what_a_producer_has() -> None:
    signature = "*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,128,64,32,False,True"
    told = kernel_remarks(triton.compile(product, signature, target="cuda:90", num_warps=8, num_stages=2))
    wanted = "copies for 8 warps, in slots of 3 x 32x64xf16 + 128x32xf16 and 240 to 24 registers"
    assert any(f"producer warp: {wanted}" in remark for remark in told)


@triton.jit
def attend(q, k, v, out, keys, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """A product that takes what another gives."""
    queries = tl.make_tensor_descriptor(q, [BM, D], [D, 1], [BM, D])
    left = tl.make_tensor_descriptor(k, [keys, D], [D, 1], [BN, D])
    right = tl.make_tensor_descriptor(v, [keys, D], [D, 1], [BN, D])
    x, total = queries.load([0, 0]), tl.zeros((BM, D), tl.float32)
    for first in range(0, keys, BN):
        p = tl.exp2(tl.dot(x, left.load([first, 0]).T))
        total = tl.dot(p.to(tl.float16), right.load([first, 0]), total)
    rows, columns = tl.arange(0, BM), tl.arange(0, D)
    tl.store(out + rows[:, None] * D + columns[None, :], total)


@pytest.mark.parametrize(("dim", "keys", "has"), [(64, 64, False), (64, 128, True), (128, 64, True)])
def test_two_programs_that_take_turns_have_no_producer(dim: int, keys: int, has: bool) -> None:
    signature = f"*fp16:16,*fp16:16,*fp16:16,*fp32:16,i32:16,{dim},128,{keys}"
    kernel = triton.compile(attend, signature, target="cuda:90", num_warps=8, num_stages=3)
    assert ("ttg.warp_specialize" in kernel.asm["ttg"]) == has
    wanted = "two programs without a producer share a multiprocessor"
    assert has or any(wanted in remark for remark in kernel_remarks(kernel))


@triton.jit
def rounded(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ASKS: tl.constexpr):
    """f32 by rows, as TF32: lanes read one operand from shared memory."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=ASKS):
        total = tl.dot(left.load([m, k]), right.load([k, n]), total, input_precision="tf32")
    rows, columns = m + tl.arange(0, BM), n + tl.arange(0, BN)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize(("block", "has"), [((256, 128, 32), True), ((128, 128, 32), False)])
def test_a_producer_where_lanes_read_what_is_multiplied(block: tuple[int, int, int], has: bool) -> None:
    """Unless two programs share a multiprocessor."""
    signature = f"*fp32:16,*fp32:16,*fp32:16,i32:16,i32:16,i32:16,{','.join(map(str, block))},False"
    kernel = triton.compile(rounded, signature, target="cuda:90", num_warps=8, num_stages=3)
    assert ("ttg.warp_specialize" in kernel.asm["ttg"]) == has


def test_lanes_read_what_a_producer_copied() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((136, 96), (96, 72)))
    c = np.zeros((136, 72), np.float32)
    made = rounded[2, 2](a, b, c, 136, 72, 96, 128, 64, 32, True, target="cuda:90", num_warps=8, num_stages=3)
    assert "ttg.warp_specialize" in made.asm["ttg"]
    np.testing.assert_array_equal(c, a @ b)
