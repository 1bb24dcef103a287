"""Products of four warps on Hopper: results of the emulated PTX, planted races, what ptxas says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.dialects import math, scf, ttg, ttng
from mltriton.dialects.gpu import Barrier
from mltriton.errors import VerificationError
from mltriton.executor import Options, run
from mltriton.executor.faults import Fault, Unfinished
from mltriton.ir.parser import parse_module
from mltriton.ir.verifier import verify
from mltriton.targets.nvidia.devices import device
from mltriton.targets.nvidia.ptxas import assemble
from ptx_emulator import launch
from ptx_emulator.launch import install
from ptx_emulator.memory import EmulationError

torch = pytest.importorskip("torch")
Array = Any


@triton.jit
def product(
    a, b, c, M, N, K, sam, sak, sbk, sbn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr, PRECISION: tl.constexpr = "ieee"
):  # fmt: skip
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    along = tl.arange(0, BK)
    left = a + (rows % M)[:, None] * sam + along[None, :] * sak
    right = b + along[:, None] * sbk + (columns % N)[None, :] * sbn
    total = tl.zeros((BM, BN), SUM)
    for k in range(0, K, BK):
        x = tl.load(left, mask=(k + along < K)[None, :], other=0)
        y = tl.load(right, mask=(k + along < K)[:, None], other=0)
        total = tl.dot(x, y, total, out_dtype=SUM, input_precision=PRECISION)
        left += BK * sak
        right += BK * sbk
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


@triton.jit
def attention(q, k, v, out, keys, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    row, column, at = tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    x = tl.load(q + row[:, None] * D + column[None, :])
    largest, total = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    for start in range(0, keys, BN):
        scores = tl.dot(x, tl.load(k + (start + at)[None, :] * D + column[:, None])) * scale
        new = tl.maximum(largest, tl.max(scores, 1))
        weights, alpha = tl.exp2(scores - new[:, None]), tl.exp2(largest - new)
        total = total * alpha + tl.sum(weights, 1)
        values = tl.load(v + (start + at)[:, None] * D + column[None, :])
        result = tl.dot(weights.to(tl.float16), values, result * alpha[:, None])
        largest = new
    tl.store(out + row[:, None] * D + column[None, :], (result / total[:, None]).to(tl.float16))


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    install(monkeypatch)


def ordered(x: Array, order: str) -> Array:
    """The same matrix with its rows or its columns together."""
    return x.contiguous() if order == "r" else x.T.contiguous().T


def multiplied(m: int, n: int, k: int, block: tuple[int, int, int], orders: str, dtype: str, **options: Any) -> float:
    """The largest error, of the largest result."""
    torch.manual_seed(0)
    kind, sums = getattr(torch, dtype), options.pop("sums", tl.float32)
    a, b = ordered(torch.randn(m, k).to(kind), orders[0]), ordered(torch.randn(k, n).to(kind), orders[1])
    c = torch.full((m, n), float("nan"), dtype=kind)
    grid = (triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))
    product[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *block, sums, target="cuda:90", **options)
    wanted = a.double() @ b.double()
    return ((c.double() - wanted).abs().max() / wanted.abs().max()).item()


# Sizes, block, orders in memory, warps, stages.
PRODUCTS = [
    ((200, 264, 136), (128, 256, 64), "rr", 8, 4),
    ((128, 128, 200), (128, 128, 64), "cr", 8, 3),
    ((128, 128, 200), (128, 128, 64), "rc", 8, 3),
    ((64, 64, 200), (64, 64, 64), "cc", 4, 2),
    ((64, 64, 256), (64, 64, 64), "rr", 8, 3),  # two groups side by side
    ((64, 32, 64), (64, 32, 32), "rr", 8, 3),
    ((64, 32, 64), (64, 16, 16), "rr", 4, 1),
    ((200, 64, 136), (128, 64, 64), "rr", 4, 3),  # two products below each other
    ((128, 64, 64), (128, 32, 32), "cr", 4, 3),  # their left operand from registers
    ((256, 32, 64), (256, 32, 32), "rc", 4, 2),  # four of them
    ((256, 64, 64), (256, 64, 64), "rr", 8, 3),
]


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(("sizes", "block", "orders", "warps", "stages"), PRODUCTS)
def test_products(
    sizes: tuple[int, int, int], block: tuple[int, int, int], orders: str, warps: int, stages: int
) -> None:
    assert multiplied(*sizes, block, orders, "float16", num_warps=warps, num_stages=stages) < 2e-3


@pytest.mark.usefixtures("emulator")
def test_other_elements_and_sums() -> None:
    assert multiplied(64, 64, 96, (64, 64, 32), "rr", "bfloat16", num_warps=4, num_stages=3) < 1e-2
    assert multiplied(64, 64, 96, (64, 64, 32), "rr", "float16", num_warps=4, num_stages=3, sums=tl.float16) < 1e-2


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(
    ("orders", "precision", "block", "grouped"),
    [
        ("rc", "tf32", (64, 64, 32), True),
        ("rc", "tf32", (128, 32, 16), True),
        ("rr", "tf32", (64, 64, 32), True),  # as transposes, of which the left one is read by lanes
        ("rr", "tf32", (32, 128, 16), True),
        ("cc", "tf32", (64, 64, 32), True),
        ("cr", "tf32", (64, 64, 32), False),
        ("rc", "ieee", (64, 64, 32), False),
    ],
)
def test_floats_that_may_be_rounded_are_multiplied_in_groups_where_k_lies_along_memory_of_one(
    orders: str, precision: str, block: tuple[int, int, int], grouped: bool
) -> None:
    torch.manual_seed(0)
    m, n, k = 2 * block[0] - 8, block[1], 3 * block[2] + 8
    a, b = ordered(torch.randn(m, k), orders[0]), ordered(torch.randn(k, n), orders[1])
    c = torch.full((m, n), float("nan"))
    options: dict[str, Any] = {"PRECISION": precision, "num_warps": 4, "num_stages": 3, "target": "cuda:90"}
    made = product[(2, 1)](a, b, c, m, n, k, *a.stride(), *b.stride(), *block, tl.float32, **options)
    wanted = a.double() @ b.double()
    assert ((c - wanted).abs().max() / wanted.abs().max()).item() < (2e-3 if precision == "tf32" else 1e-5)
    assert ("wgmma" in made.asm["ptx"]) == grouped


BYTES = {"i8": (torch.int8, tl.int32, torch.int32), "e4m3": (torch.float8_e4m3fn, tl.float32, torch.float32)}


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("order", ["rc", "rr"])
@pytest.mark.parametrize("kind", BYTES)
def test_bytes_are_multiplied_in_groups_where_k_lies_along_memory(kind: str, order: str) -> None:
    element, sums, result = BYTES[kind]
    torch.manual_seed(0)
    a = torch.randint(-8, 8, (128, 160)).to(element)
    b = torch.randint(-8, 8, (160, 64)).float().contiguous() if order == "rr" else torch.randint(-8, 8, (64, 160)).T
    b = b.to(element)
    c = torch.zeros((128, 64), dtype=result)
    made = product[(1, 1)](
        a, b, c, 128, 64, 160, *a.stride(), *b.stride(), 128, 64, 64, sums, num_warps=8, target="cuda:90"
    )
    assert torch.equal(c.double(), a.double() @ b.double())
    assert ("wgmma" in made.asm["ptx"]) == (order == "rc")


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(("d", "rows", "keys", "warps"), [(64, 128, 64, 8), (64, 64, 32, 4), (64, 128, 32, 4)])
def test_attention_multiplies_from_registers(d: int, rows: int, keys: int, warps: int) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(size, d).half() for size in (rows, 2 * keys, 2 * keys))
    out = torch.full((rows, d), float("nan"), dtype=torch.float16)
    scale = 0.125 * 1.4426950408889634
    attention[(1,)](q, k, v, out, 2 * keys, scale, d, rows, keys, num_warps=warps, target="cuda:90")
    wanted = torch.softmax(q.double() @ k.double().T * 0.125, 1) @ v.double()
    assert (out.double() - wanted).abs().max().item() < 3e-3


# Races: PTX with an instruction taken away.
RACES = {
    "a sum that is taken too early": ("wgmma.wait_group.sync.aligned 0;", "the sum .* is taken or set", 32),
    "a buffer that is written too early": ("wgmma.wait_group.sync.aligned 1;", "is written while a product reads", 16),
}


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize("maps", ["none", "products"])
@pytest.mark.parametrize(("instruction", "message", "step"), RACES.values(), ids=RACES)
def test_a_missing_wait_is_found_in_ptx(
    monkeypatch: pytest.MonkeyPatch, instruction: str, message: str, step: int, maps: str
) -> None:
    parse = launch.parse
    monkeypatch.setattr(launch, "parse", lambda ptx: parse(without(ptx, instruction)))
    with pytest.raises(EmulationError, match=message):
        multiplied(64, 64, 256, (64, 64, step), "rr", "float16", num_warps=4, num_stages=3, tensor_maps=maps)


def without(ptx: str, instruction: str) -> str:
    assert instruction in ptx
    return ptx.replace(instruction, "")


CONSTANTS = {"SUM": tl.float32, "PRECISION": "ieee"}
SIGNATURE = "*fp16:16,*fp16:16,*fp16:16,i32:16,i32:16,i32:16,i32:16,i32:1,i32:16,i32:1,{},{},{}"


def compiled(level: str, block: tuple[int, int, int] = (64, 64, 32), **options: Any) -> str:
    signature = SIGNATURE.format(*block)
    return triton.compile(
        product, signature=signature, constexprs=CONSTANTS, target="cuda:90", tensor_maps="none", **options
    ).asm[level]


def arguments() -> list[Any]:
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal((64, 64 * i)).astype(np.float16) for i in (4, 1))
    return [a, np.ascontiguousarray(np.tile(b, (4, 1))), np.zeros((64, 64), np.float16), 64, 64, 256, 256, 64]


@pytest.mark.parametrize("level", ["ttg", "warp", "intrinsic"])
def test_a_result_that_is_taken_early_is_found(level: str) -> None:
    module = parse_module(compiled(level, num_warps=4, num_stages=3))
    run(module, arguments(), (1, 1))
    [*_, last] = [op for op in module.walk() if isinstance(op, ttng.WarpGroupDotWait)]
    last.pendings = 1
    with pytest.raises(Unfinished, match="a result is taken of a product for which nobody has waited"):
        run(module, arguments(), (1, 1))


@pytest.fixture(scope="module")
def late() -> str:
    """A program of two on a multiprocessor, whose loop starts copies at the end of an iteration."""
    signature = SIGNATURE.format(128, 128, 64)
    made = triton.compile(
        product, signature=signature, constexprs=CONSTANTS, target="cuda:90", num_warps=4, num_stages=3
    )
    return made.asm["warp"]


def test_copies_at_the_end_of_an_iteration_wait_for_products_and_warps(late: str) -> None:
    numbers = np.random.default_rng(0)
    a, b = (numbers.standard_normal(shape).astype(np.float16) for shape in ((128, 320), (320, 128)))
    c = np.zeros((128, 128), np.float16)
    given = [a, b, c, 128, 128, 320, 320, 128]
    run(parse_module(late), given, (1, 1))
    assert np.abs(c - a.astype(np.float32) @ b.astype(np.float32)).max() < 0.1
    module = parse_module(late)
    loop = next(op for op in module.walk() if isinstance(op, scf.For))
    wait = next(op for op in loop.walk() if isinstance(op, ttng.WarpGroupDotWait))
    barrier = next(op for op in loop.walk() if isinstance(op, Barrier))
    wait.pendings = 2
    with pytest.raises(Unfinished, match="a product"):
        run(module, given, (1, 1))
    wait.pendings = 1
    barrier.erase()
    with pytest.raises(Fault):
        run(module, given, (1, 1), options=Options(order="backward"))


@pytest.mark.parametrize("level", ["ttg", "warp", "intrinsic"])
def test_a_buffer_that_is_written_early_is_found(level: str) -> None:
    module = parse_module(compiled(level, num_warps=4, num_stages=3))
    first = next(op for op in module.walk() if isinstance(op, ttng.WarpGroupDotWait))
    first.pendings = 3
    with pytest.raises(Unfinished, match="that a product reads for which nobody has waited"):
        run(module, arguments(), (1, 1))


def test_a_result_without_a_wait_is_rejected() -> None:
    module = parse_module(compiled("ttg", num_warps=4, num_stages=3))
    for wait in [op for op in module.walk() if isinstance(op, ttng.WarpGroupDotWait)]:
        wait.replace_by(wait.inputs)
    with pytest.raises(VerificationError, match="before it was waited for"):
        verify(module)


def test_stages_keep_their_meaning() -> None:
    """Copies are so many iterations ahead, less one; one buffer more is kept for the product under way."""
    for stages, waits in ((2, [0, 0]), (3, [1, 0]), (4, [2, 0])):
        module = parse_module(compiled("ttg", num_warps=4, num_stages=stages))
        buffers = [op.result.type for op in module.walk() if isinstance(op, ttg.LocalAlloc)]
        assert [type.shape[0] for type in buffers] == [stages + 1] * 2  # type: ignore[attr-defined]
        assert [op.num for op in module.walk() if isinstance(op, ttg.AsyncWait)] == waits


@pytest.mark.parametrize("maps", ["none", "products"])
def test_the_softmax_runs_beside_the_second_product(maps: str) -> None:
    signature = "*fp16:16,*fp16:16,*fp16:16,*fp16:16,i32:16,fp32,64,64,64"
    made = triton.compile(attention, signature=signature, target="cuda:90", num_warps=4, tensor_maps=maps)
    assert ("tma_copy" in made.asm["ttg"]) == (maps == "products")
    [loop] = [op for op in parse_module(made.asm["ttg"]).walk() if isinstance(op, scf.For)]
    kinds = (ttng.WarpGroupDot, ttng.WarpGroupDotWait, math.Exp2)
    order = [type(op).__name__ for op in loop.body.block.ops if isinstance(op, kinds)]
    assert order[:4] == ["WarpGroupDot", "WarpGroupDot", "WarpGroupDotWait", "Exp2"]
    assert order[-1] == "WarpGroupDotWait"


@pytest.mark.usefixtures("needs_ptxas")
def test_products_keep_their_registers_where_other_programs_would_fit() -> None:
    """What ptxas rejects with fewer registers is taken as it was."""
    ptx = compiled("ptx", (64, 256, 64), num_warps=4, num_stages=1)
    assert assemble(ptx, device("90"), 1024, multiplies=True).spilled == 0


@pytest.mark.usefixtures("needs_ptxas")
@pytest.mark.parametrize(("block", "warps"), [((128, 256, 64), 8), ((128, 128, 64), 8), ((64, 256, 64), 4)])
def test_ptxas_neither_spills_nor_serialises(block: tuple[int, int, int], warps: int) -> None:
    ptx = compiled("ptx", block, num_warps=warps, num_stages=4)
    assert ptx.count("wgmma.mma_async") == block[2] // 16
    assert "st.global.v4" in ptx  # results go through shared memory to whole lines
    cubin = assemble(ptx, device("90"), multiplies=True)
    assert cubin.spilled == 0
    assert cubin.remarks == ()
