"""`mltriton verify`: inputs, comparison, levels, and that a wrong pass is found and named."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import mltriton as triton
import mltriton.language as tl
from levels import check_levels, check_passes
from mltriton.commands import app
from mltriton.dialects import arith, tt
from mltriton.errors import OptionError, SignatureError
from mltriton.executor import to_bfloat16
from mltriton.executor.faults import OutOfBounds
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.module import Module
from mltriton.ir.parser import parse_module
from mltriton.ir.passes import Pass
from mltriton.ir.types import BF16, F32, I8, I32
from mltriton.passes.registry import PASSES
from mltriton.targets.generic.spec import GENERIC
from mltriton.targets.target import Binary, Lowered, Target
from mltriton.tools.launches import parse_grid
from mltriton.tools.level_runs import compare
from mltriton.tools.samples import ArrayText, Copy, allocate, parse_argument, random_values
from mltriton.tools.verify import verify_kernel, verify_module

KERNELS = """
import mltriton as triton
import mltriton.language as tl


@triton.jit
def add(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(o_ptr + i, tl.load(x_ptr + i, m) + tl.load(y_ptr + i, m), m)


@triton.jit
def scale(x_ptr, o_ptr, n, m, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i) * factor)


@triton.jit
def overrun(x_ptr, o_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i - 1))


def mltriton_verify(name, rng):
    if name != "scale":
        return None
    return {"x_ptr": "64:fp32", "o_ptr": "64:fp32", "n": 5, "m": 6, "factor": 0.5, "BLOCK": 64}, (1,), {"num_warps": 2}
"""


@pytest.fixture
def kernels(tmp_path: Path) -> str:
    file = tmp_path / "kernels_to_verify.py"
    file.write_text(KERNELS)
    return str(file)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("x=128x64:fp32", "x", ArrayText((128, 64), "fp32")),
        ("x=128x64", "x", ArrayText((128, 64))),
        ("x=7:f16", "x", ArrayText((7,), "fp16")),
        ("n=1000", "n", 1000),
        ("n=-1", "n", -1),
        ("s=0.5", "s", 0.5),
        ("flag=True", "flag", True),
        ("how='ieee'", "how", "ieee"),
    ],
)
def test_arguments_as_text(text: str, name: str, value: Any) -> None:
    assert parse_argument(text) == (name, value)


@pytest.mark.parametrize("text", ["x", "x=", "x=12y", "x=3:float", "1x=3", "x=fp32"])
def test_arguments_that_cannot_be_read(text: str) -> None:
    with pytest.raises(OptionError):
        parse_argument(text)


def test_grids_as_text() -> None:
    assert parse_grid("8") == (8,)
    assert parse_grid("8, 4,1") == (8, 4, 1)
    assert parse_grid(None) is None
    for wrong in ("8;4", "0", "8,0", "1,1,1,1"):
        with pytest.raises(OptionError, match="expected one to three positive integers"):
            parse_grid(wrong)


@pytest.mark.parametrize("type", [F32, BF16, I8, I32])
def test_random_values_are_never_zero(type: Any) -> None:
    values = random_values(np.random.default_rng(0), type, (50, 50))
    assert values.shape == (50, 50)
    assert (values != 0).all()


def test_a_copy_has_its_own_guarded_memory_and_the_same_strides() -> None:
    base = np.arange(64, dtype=np.int32)
    source = base.reshape(8, 8)[2:6, ::2]
    copy = Copy(source)
    np.testing.assert_array_equal(copy.array, source)
    assert copy.array.strides == source.strides
    assert (copy.array.ctypes.data - source.ctypes.data) % 64 == 0
    copy.array[...] = 0
    assert base[16] == 16
    assert copy.is_guarded
    np.ndarray(4, np.uint8, copy._after)[0] = 1
    assert not copy.is_guarded


def test_allocation_is_aligned_unless_asked_otherwise() -> None:
    values = np.arange(5, dtype=np.float32)
    assert allocate(values).ctypes.data % 64 == 0
    assert allocate(values, misaligned=True).ctypes.data % 64 == 4


def test_comparison_of_floats() -> None:
    a = np.array([1.0, -2.0, np.nan, np.inf], np.float32)
    assert compare("x", F32, a, a).ok
    assert compare("x", F32, a, a * np.float32(1 + 1e-6)).ok
    different = compare("x", F32, a, np.array([1.0, -2.5, np.nan, np.inf], np.float32))
    assert (different.ok, different.first, different.expected, different.found) == (False, (1,), -2.0, -2.5)
    assert different.max_abs == 0.5
    assert different.max_rel == 0.25
    assert not compare("x", F32, a, np.array([1.0, -2.0, 0.0, np.inf], np.float32)).ok
    assert not compare("x", F32, a, np.array([1.0, -2.0, np.nan, -np.inf], np.float32)).ok


def test_comparison_of_bit_patterns_and_integers() -> None:
    one = to_bfloat16(np.array([1.0, 1.0]))
    assert compare("x", BF16, one, to_bfloat16(np.array([1.0, 1.01]))).ok
    assert compare("x", BF16, one, to_bfloat16(np.array([1.0, 1.5]))).first == (1,)
    difference = compare("x", I32, np.array([[1, 2]], np.int32), np.array([[1, 3]], np.int32))
    assert (difference.first, difference.expected, difference.found) == ((0, 1), 2, 3)


def test_a_small_error_in_a_small_element_of_large_sums_is_allowed() -> None:
    wanted = np.array([1000.0, 1e-3], np.float32)
    assert compare("x", F32, wanted, wanted + np.float32(1e-3)).ok
    assert not compare("x", F32, wanted, wanted + np.float32(1.0)).ok


def test_arrays_are_as_long_as_the_kernel_reaches(kernels: str) -> None:
    result = verify_kernel(f"{kernels}:add", "*fp32, *fp32:16, *bf16:16, i32, 256", grid=(9,), target="generic")
    assert result.ok, str(result)
    assert [level.name for level in result.levels] == ["tt", "ttg", "warp", "intrinsic"]
    assert "x_ptr=512:fp32" in result.inputs[0]
    assert result.notes == ("chosen: n = 321",)
    assert [d.buffer for d in result.levels[1].differences] == ["o_ptr"]


def test_several_unknown_integers_are_chosen(kernels: str) -> None:
    signature = "*fp32, *fp32, i32, i32, fp32, 64"
    assert verify_kernel(f"{kernels}:scale", signature, target="generic").notes == ("chosen: n = 81, m = 83",)
    assert verify_kernel(f"{kernels}:scale", signature, args=["m=3"], target="generic").notes == ("chosen: n = 81",)


PRODUCTS = """
import mltriton as triton
import mltriton.language as tl


@triton.jit
def inner(c_ptr, acc, M, N, s_cm, s_cn, offs_m, offs_n):
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * s_cm + offs_n[None, :] * s_cn, acc, inside)


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid = tl.program_id(0)
    num_n = tl.cdiv(N, BLOCK_N)
    offs_m = pid // num_n * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid % num_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
        a = tl.load(a_ptrs, (offs_m[:, None] < M) & (offs_k[None, :] < K), 0.0)
        b = tl.load(b_ptrs, (offs_k[:, None] < K) & (offs_n[None, :] < N), 0.0)
        acc += tl.dot(a, b)
    inner(c_ptr, acc, M, N, stride_cm, stride_cn, offs_m, offs_n)


@triton.jit
def described(a_ptr, o_ptr, M, N, s_am, s_an, s_om, s_on, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    p = tl.make_block_ptr(a_ptr, (M, N), (s_am, s_an), (i, j), (BM, BN), (1, 0))
    o = tl.make_block_ptr(o_ptr, (N, M), (s_on, s_om), (j, i), (BN, BM), (0, 1))
    tl.store(o, tl.trans(tl.load(p, boundary_check=(0, 1))), boundary_check=(0, 1))


@triton.jit
def sequences(x, y, cu_seqlens, N, BT: tl.constexpr, BN: tl.constexpr):
    bos = tl.load(cu_seqlens + tl.program_id(0))
    eos = tl.load(cu_seqlens + tl.program_id(0) + 1)
    o_t, o_n = tl.program_id(1) * BT + tl.arange(0, BT), tl.arange(0, BN)
    inside = (o_t < eos - bos)[:, None] & (o_n < N)
    at = (bos + o_t)[:, None] * N + o_n
    tl.store(y + at, tl.load(x + at, inside) + 1, inside)
"""
POINTERS, SIZES = "*fp32:16, *fp32:16, *fp32:16", "i32, i32, i32"


@pytest.fixture
def products(tmp_path: Path) -> str:
    file = tmp_path / "products_to_verify.py"
    file.write_text(PRODUCTS)
    return str(file)


@pytest.mark.parametrize(
    ("kernel", "signature", "wanted"),
    [
        ("gemm", f"{POINTERS}, {SIZES}, i32, i32, i32, i32, i32, i32, 32, 16, 16", "stride_ak=3"),
        ("gemm", f"{POINTERS}, {SIZES}, i32:16, 1, 1, i32:16, i32:16, 1, 32, 16, 16", "stride_ak=1"),
        (
            "gemm",
            f"{POINTERS}, i32:16, i32:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 1, 32, 16, 16",
            "M=48, N=32, K=32",
        ),
        ("described", "*fp32, *fp32, i32, i32, i32, i32, i32, i32, 16, 16", "s_an=1, "),
        ("sequences", "*fp32, *fp32, *i32, i32, 16, 16", "N=21"),
    ],
)
def test_a_kernel_needs_no_more_than_a_signature(products: str, kernel: str, signature: str, wanted: str) -> None:
    result = verify_kernel(f"{products}:{kernel}", signature)
    assert result.ok, str(result)
    assert wanted in result.inputs[0]


def test_chosen_sizes_reach_every_boundary_and_strides_keep_elements_apart(products: str) -> None:
    signature = f"{POINTERS}, {SIZES}, i32, i32, i32, i32, i32, i32, 32, 16, 16"
    text = verify_kernel(f"{products}:gemm", signature, target="generic").inputs[0]
    found = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)(?:,|$)", text)}
    for size, block in (("M", 32), ("N", 16), ("K", 16)):
        assert block < found[size] < 2 * block
        assert found[size] % 2
    assert len({found["M"], found["N"], found["K"]}) == 3
    assert found["stride_cm"] > found["stride_cn"] * found["N"]
    assert text.startswith("grid (4,), ")


def test_what_is_given_stays_as_it_is(products: str) -> None:
    signature = f"{POINTERS}, {SIZES}, i32, i32, i32, i32, i32, i32, 32, 16, 16"
    result = verify_kernel(f"{products}:gemm", signature, args=["M=7", "stride_am=100"], grid=(2,), target="generic")
    assert result.ok, str(result)
    assert "M=7, " in result.inputs[0]
    assert "stride_am=100, " in result.inputs[0]
    assert result.inputs[0].startswith("grid (2,), ")


def test_the_kernel_s_own_example(kernels: str) -> None:
    result = check_levels(f"{kernels}:scale", target="generic", inputs=2)
    assert "2 warps" in result.title
    assert len(result.levels) == 8
    assert result.inputs[0].startswith("grid (1,), x_ptr=64:fp32, o_ptr=64:fp32, n=5, m=6, factor=0.5")
    with pytest.raises(SignatureError, match="nothing to run add with"):
        verify_kernel(f"{kernels}:add", target="generic")


def test_arrays_of_the_caller_are_left_alone(kernels: str) -> None:
    x, y, out = np.ones(100, np.float32), np.ones(100, np.float32), np.zeros(100, np.float32)
    args = {"x_ptr": x, "y_ptr": y, "o_ptr": out, "n": 100, "BLOCK": 64}
    check_levels(f"{kernels}:add", args, (2,), target="generic")
    assert not out.any()


@pytest.mark.parametrize("args", [{"z": 1}, {"x_ptr": "100:fp32"}, {"x_ptr": "100:fp32", "n": 3}])
def test_arguments_must_fit_the_kernel(kernels: str, args: dict[str, Any]) -> None:
    with pytest.raises((OptionError, SignatureError)):
        verify_kernel(f"{kernels}:add", args=args, target="generic")


def test_a_program_that_is_wrong_at_tt_fails_there(kernels: str) -> None:
    args = {"x_ptr": "64:fp32", "o_ptr": "64:fp32", "BLOCK": 64}
    result = verify_kernel(f"{kernels}:overrun", args=args, grid=(1,), target="generic")
    assert [level.name for level in result.levels] == ["tt"]
    assert isinstance(result.levels[0].fault, OutOfBounds)
    assert "begins 4 bytes before x_ptr" in str(result)


MODULE = """
tt.func @double(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %n: i32) {
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %ns = tt.splat %n : i32 -> tensor<16xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<16xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %xp = tt.addptr %xs, %i : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  %v = tt.load %xp, %m : tensor<16x!tt.ptr<i32>>
  %two = arith.constant dense<2> : tensor<16xi32>
  %w = arith.muli %v, %two : tensor<16xi32>
  %ys = tt.splat %y : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
  %yp = tt.addptr %ys, %i : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
  tt.store %yp, %w, %m : tensor<16x!tt.ptr<i32>>
  tt.return
}"""


@dataclass(frozen=True)
class Harmless(Pass):
    """Changes nothing."""

    name = "harmless"

    def run(self, module: Module) -> Module:
        return module


@dataclass(frozen=True)
class Miscompile(Pass):
    """Turns products into sums."""

    name = "miscompile"

    def run(self, module: Module) -> Module:
        for op in module.walk():
            if isinstance(op, arith.MulI):
                assert op.block is not None
                made = arith.AddI(op.operands, [op.result.type], loc=op.loc)
                op.block.insert_before(op, made)
                op.replace_by(made.results)
        return module


@dataclass(frozen=True)
class Overrun(Pass):
    """Moves every range on by one."""

    name = "overrun"

    def run(self, module: Module) -> Module:
        for op in module.walk():
            if isinstance(op, tt.MakeRange):
                op.attributes |= {"start": IntegerAttr(op.start + 1, I32), "end": IntegerAttr(op.end + 1, I32)}
        return module


@dataclass(frozen=True)
class Break(Pass):
    """Fails."""

    name = "break"

    def run(self, module: Module) -> Module:
        raise ValueError("broken")


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for cls in (Harmless, Miscompile, Overrun, Break):
        monkeypatch.setitem(PASSES, cls.name, f"{__name__}:{cls.__name__}")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.usefixtures("passes")
def test_the_pass_that_miscompiles_is_named() -> None:
    result = verify_module(parse_module(MODULE), "harmless,miscompile,harmless", args={"n": 11})
    assert [level.ok for level in result.levels] == [True, True, False, False]
    assert result.first_wrong is not None
    assert result.first_wrong.name == "miscompile"
    (difference,) = result.first_wrong.differences
    assert difference.buffer == "y"
    assert difference.first is not None
    assert difference.wrong <= 11
    assert "first disagreement: miscompile" in str(result)
    assert f"first at {difference.first}: expected {difference.expected}, found {difference.found}" in str(result)


@pytest.mark.usefixtures("passes")
def test_a_pass_that_breaks_bounds_is_named() -> None:
    result = verify_module(parse_module(MODULE), "harmless,overrun", args={"n": 17, "x": 16, "y": 16})
    assert result.first_wrong is not None
    assert result.first_wrong.name == "overrun"
    assert isinstance(result.first_wrong.fault, OutOfBounds)


@pytest.mark.usefixtures("passes")
def test_a_pass_that_fails_is_a_result() -> None:
    result = verify_module(parse_module(MODULE), "harmless,break,harmless", args={"n": 16})
    assert [level.name for level in result.levels] == ["before", "harmless", "break"]
    assert "ValueError: broken" in str(result.levels[-1].fault)


@pytest.mark.usefixtures("passes")
def test_check_passes_shows_the_report() -> None:
    check_passes(parse_module(MODULE), "harmless", {"n": 3})
    with pytest.raises(AssertionError, match="first disagreement: miscompile"):
        check_passes(parse_module(MODULE), "miscompile", {"n": 3})


@pytest.mark.usefixtures("passes")
def test_ir_files_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "double.mlir"
    file.write_text(MODULE)
    good = CliRunner().invoke(app, ["verify", str(file), "-p", "harmless", "-a", "n=5"])
    assert (good.exit_code, "all levels agree" in good.output) == (0, True)
    bad = CliRunner().invoke(app, ["verify", str(file), "-p", "harmless,miscompile", "-a", "n=5"])
    assert (bad.exit_code, "first disagreement: miscompile" in bad.output) == (1, True)


def test_kernels_on_the_command_line(kernels: str) -> None:
    command = [
        "verify",
        f"{kernels}:add",
        "-s",
        "*fp32, *fp32, *fp32, i32, 128",
        "-t",
        "generic",
        "-g",
        "4",
        "-a",
        "n=500",
    ]
    result = CliRunner().invoke(app, [*command, "--each-pass"])
    assert result.exit_code == 0, result.output
    assert "distribute-to-warps" in result.output
    assert "n=500" in result.output


class NativeKernel:
    """Stands for machine code of `add`: adds float32 arrays at raw addresses, slot 3 elements each, with a mistake."""

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def run(self, grid: tuple[int, int, int], slots: Any) -> None:
        assert grid == (2, 1, 1)
        *addresses, n = (slot.bits for slot in slots[:4])
        arrays = [np.ctypeslib.as_array((ctypes.c_float * (n + 1)).from_address(address)) for address in addresses]
        arrays[2][:n] = arrays[0][:n] + arrays[1][:n]
        if self.mistake == "value":
            arrays[2][77] *= 2
        if self.mistake == "overrun":
            arrays[2][n] = 1.0


@dataclass(frozen=True)
class NativeTarget(Target):
    """The generic GPU with machine code."""

    mistake: str
    name = "generic"
    spec = GENERIC

    @property
    def fingerprint(self) -> str:
        return self.mistake

    texts: ClassVar[dict[str, Any]] = {"asm": lambda lowered: lowered.text}

    def lower(self, module: Module) -> Lowered:
        return Lowered(str(module))

    def assemble(self, lowered: Lowered, module: Module) -> Binary:
        return Binary(lowered.text.encode(), {})

    def load(self, binary: Binary, name: str) -> NativeKernel:
        return NativeKernel(self.mistake)


@pytest.mark.parametrize(
    ("mistake", "report"),
    [("none", "all levels agree"), ("value", r"o_ptr: .*first at \(77,\)"), ("overrun", "wrote outside o_ptr")],
)
def test_machine_code_runs_last(
    kernels: str, mistake: str, report: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("mltriton.tools.verify.find_target", lambda name: NativeTarget(mistake))
    args = {"x_ptr": "100:fp32", "y_ptr": "100:fp32", "o_ptr": "100:fp32", "n": 100, "BLOCK": 64}
    result = verify_kernel(f"{kernels}:add", args=args, grid=(2,), target="generic")
    assert [level.name for level in result.levels] == ["tt", "ttg", "warp", "intrinsic", "generic"]
    assert [level.ok for level in result.levels] == [True, True, True, True, mistake == "none"]
    assert re.search(report, str(result))


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, n, k, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [BLOCK, k], [n, 1], [BLOCK, BLOCK])
    b = tl.make_tensor_descriptor(b_ptr, [k, BLOCK], [n, 1], [BLOCK, BLOCK])
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for i in range(0, n, BLOCK):
        total += tl.dot(a.load([0, i]), b.load([i, 0]))
    tl.store(c_ptr + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], total)


@pytest.mark.parametrize("k", [64, 0])
def test_a_launch_without_tensor_maps_is_verified_without(k: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(64, 64)).astype(np.float16) for _ in range(2))
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": np.ones((64, 64), np.float32), "n": 64, "k": k, "BLOCK": 64}
    result = verify_kernel(product_kernel, args=arguments, grid=(1,), target="cuda:90", each_pass=k == 0)
    assert result.ok
    assert [level.is_reference for level in result.levels].count(True) == 1
    assert len(result.levels) >= 4
