"""NVIDIA's targets: from kernels to PTX and cubins, without a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mltriton as triton
import mltriton.language as tl
from combinations import each_pair
from mltriton.errors import AssemblyError, BackendError, DeviceError, SharedMemoryError, TargetError
from mltriton.targets.llvm.toolchain import Machine, compile_object
from mltriton.targets.multiprocessor import Multiprocessor
from mltriton.targets.nvidia import driver, ptx, ptxas
from mltriton.targets.nvidia.devices import device
from mltriton.targets.nvidia.facts import NvidiaFacts
from mltriton.targets.target import find_target
from mltriton.tools.remarks import kernel_remarks
from mltriton.tools.verify import verify_kernel

from . import kernels

TARGETS = ["cuda:80", "cuda:89", "cuda:90"]
ROW = "*fp32:16, *fp32:16, i32:16, 1024"


def compiled(kernel: Any, signature: str, target: str = "cuda:90", **options: Any) -> Any:
    made = triton.compile(kernel, signature, target=target, **options)
    assert not made.binary.metadata["remarks"]
    return made


def test_what_disassembles_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"cuobjdump": Path("/bin/true")}
    monkeypatch.setattr(ptxas, "find_tool", there.get)
    with pytest.raises(TargetError, match="nvdisasm is not installed") as caught:
        ptxas.disassemble(b"cubin")
    assert "pip install 'mltriton[cuda]'" in str(caught.value.hint)
    there |= {"nvdisasm": Path("/bin/true"), "cuobjdump": Path("/bin/false")}
    with pytest.raises(BackendError, match="cuobjdump rejects the cubin"):
        ptxas.disassemble(b"cubin")


def test_a_large_program_is_compiled_without_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def noted(text: str, machine: Machine, **how: Any) -> bytes:
        asked.append(tuple(machine.options))
        return compile_object(text, machine, **how)

    monkeypatch.setattr(ptx, "compile_object", noted)
    monkeypatch.setenv("MLTRITON_ALWAYS_COMPILE", "1")
    small = triton.compile(kernels.softmax, ROW, target="cuda:90").asm["ptx"]
    monkeypatch.setattr(ptx, "LARGE", 10)
    large = triton.compile(kernels.softmax, ROW, target="cuda:90").asm["ptx"]
    assert [*dict.fromkeys(asked)] == [(), ("-opt-disable=slsr",)]
    assert large.count(".visible .entry") == small.count(".visible .entry") == 1


def test_remarks_say_how_many_programs_share_a_multiprocessor(needs_ptxas: None) -> None:
    made = compiled(kernels.softmax, ROW)
    registers, shared = made.binary.metadata["registers"], made.metadata.shared
    expected = min(2048 // 128, 65536 // (128 * -(-registers // 8) * 8), 228 * 1024 // (shared + 1024))
    [*_, remark] = kernel_remarks(made)
    assert remark.startswith(f"{expected} programs fit on a multiprocessor: 4 warps with {registers} registers")
    count = 132 * expected + 33
    [*_, before, waves] = kernel_remarks(made, count)
    assert before == remark
    efficiency = count / (2 * 132 * expected)
    assert waves == f"{count} programs run in 2 rounds, {efficiency:.0%} of whose places are taken (wave efficiency)"


def test_how_many_multiprocessors_are_not_known_of_every_kind() -> None:
    assert Multiprocessor(228 * 1024, 1024, 65536).waves(100, 1) is None
    assert Multiprocessor(228 * 1024, 1024, 65536, number=132).waves(256, 1) == (2, 256 / 264)


@triton.jit
def in_order(x, y, BLOCK: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(y + at, value + tl.extra.cuda.smid() * 0)


def test_launches_that_overlap(needs_ptxas: None) -> None:
    signature = "*i32:16, *i32:16, 1024"
    made = compiled(in_order, signature, launch_pdl=True)
    text = made.asm["ptx"]
    places = [text.index(word) for word in ("griddepcontrol.wait", "ld.global", "griddepcontrol.launch", "st.global")]
    assert places == sorted(places)
    assert tuple(made.binary.metadata["facts"]["attributes"]) == (6,)
    plain = compiled(in_order, signature, target="cuda:80")
    assert "griddepcontrol" not in plain.asm["ptx"]
    assert not plain.binary.metadata["facts"]["attributes"]


def test_registers_of_a_lane_are_limited(needs_ptxas: None) -> None:
    shape = "*fp32:16, *fp32:16, i32:16, 8192"
    usual = compiled(kernels.softmax, shape).binary.metadata["registers"]
    fewer = triton.compile(kernels.softmax, shape, target="cuda:90", maxnreg=40)
    assert ".maxnreg 40" in fewer.asm["ptx"]
    assert fewer.binary.metadata["registers"] <= 40 < usual


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_becomes_a_cubin(target: str, needs_ptxas: None) -> None:
    made = compiled(kernels.softmax, ROW, target)
    assert made.binary.object[:4] == b"\x7fELF"
    assert made.image("cubin")[:4] == b"\x7fELF"
    assert f".target {find_target(target).device.arch}" in made.asm["ptx"]
    facts = NvidiaFacts(**made.binary.metadata["facts"])
    assert facts.num_warps == 4 and facts.shared > 0 and not facts.prints and not facts.assertions


def test_neighbours_are_accessed_by_16_bytes(needs_ptxas: None) -> None:
    ptx = compiled(kernels.add, "*fp32:16, *fp32:16, *fp32:16, i32:16, 1024").asm["ptx"]
    assert ptx.count("ld.global.v4.b32") == 2 * ptx.count("st.global.v4.b32") == 4
    assert ".maxntid 128" in ptx


# Elements of operands and of the sum, and the instruction on the newest device and on the oldest.
PRODUCTS = [
    ("fp16", "fp32", "m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16.row.col.f32.f16.f16.f32"),
    ("fp16", "fp16", "m16n8k16.row.col.f16.f16.f16.f16", "m16n8k16.row.col.f16.f16.f16.f16"),
    ("bf16", "fp32", "m16n8k16.row.col.f32.bf16.bf16.f32", "m16n8k16.row.col.f32.bf16.bf16.f32"),
    ("fp32", "fp32", "m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k8.row.col.f32.tf32.tf32.f32"),
    ("i8", "i32", "m16n8k32.row.col.s32.s8.s8.s32", "m16n8k32.row.col.s32.s8.s8.s32"),
    ("u8", "i32", "m16n8k32.row.col.s32.u8.u8.s32", "m16n8k32.row.col.s32.u8.u8.s32"),
    ("fp64", "fp64", "m16n8k8.row.col.f64.f64.f64.f64", "m8n8k4.row.col.f64.f64.f64.f64"),
    ("fp8e4nv", "fp32", "m16n8k32.row.col.f32.e4m3.e4m3.f32", "m16n8k16.row.col.f32.f16.f16.f32"),
    ("fp8e5", "fp32", "m16n8k32.row.col.f32.e5m2.e5m2.f32", "m16n8k16.row.col.f32.f16.f16.f32"),
]


@each_pair(("case", PRODUCTS), ("precision", ["tf32", "ieee"]), ("number", [2, 3]))
def test_products_are_those_of_the_matrix_instruction(
    case: tuple[str, ...], precision: str, number: int, needs_ptxas: None
) -> None:
    if precision == "ieee" and case[0] != "fp32":
        pytest.skip("only f32 is rounded")
    signature = f"*{case[0]}:16, *{case[0]}:16, *{case[1]}:16, i32:16, 32, 64, {precision!r}"
    ptx = compiled(kernels.product, signature, {2: "cuda:90", 3: "cuda:80"}[number]).asm["ptx"]
    lines = [line.split() for line in ptx.splitlines() if "mma.sync" in line]
    assert {line[0] for line in lines} == {f"mma.sync.aligned.{case[number]}"}


def test_atomics_keep_their_order_and_scope(needs_ptxas: None) -> None:
    ptx = compiled(kernels.counted, "*i32, *i32, 256, 'release', 'cta'").asm["ptx"]
    assert "atom.release.cta.global.add.u32" in ptx


def test_prints_and_assertions_are_told_to_the_launch(needs_ptxas: None) -> None:
    made = compiled(kernels.checked, "*i32, i32, 64", debug=True)
    facts = NvidiaFacts(**made.binary.metadata["facts"])
    assert facts.prints and [about[0] for about in facts.assertions] == ["too large"]
    assert "vprintf" in made.asm["ptx"] and "cas.b32" in made.asm["ptx"]


def test_without_ptxas_the_binary_is_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    made = triton.compile(kernels.softmax, ROW.replace("1024", "2048"), target="cuda:90")
    assert made.binary.object.decode() == made.asm["ptx"]
    with pytest.raises(TargetError, match="ptxas is not installed"):
        made.image("cubin")


def test_what_does_not_fit_into_shared_memory_is_refused() -> None:
    with pytest.raises(SharedMemoryError) as raised:
        triton.compile(kernels.kept, "*fp32:16, 256", target="cuda:89")
    assert raised.value.found == f"{256 * 256 * 4} bytes" and "cuda:89" in str(raised.value)


def test_spills_are_remarks(needs_ptxas: None) -> None:
    signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, 128, 16, 'tf32'"
    made = triton.compile(kernels.product, signature, target="cuda:90", num_warps=1)
    assert "bytes of registers spilled" in made.binary.metadata["remarks"][0]


def test_ptx_that_ptxas_rejects_is_an_error(needs_ptxas: None) -> None:
    with pytest.raises(BackendError, match="ptxas rejects the generated PTX"):
        ptxas.assemble(".version 8.7\n.target sm_90a\nnonsense", find_target("cuda:90").device)


@pytest.mark.skipif(driver.is_available(), reason="there is a GPU")
def test_without_a_gpu_compiling_works_and_levels_are_verified() -> None:
    result = verify_kernel(kernels.softmax, "*fp32:16, *fp32:16, i32:16, 256", target="cuda:90")
    assert result.ok and [level.name for level in result.levels] == ["tt", "ttg", "warp", "intrinsic", "cuda:90"]
    assert result.levels[-1].not_run is not None and "compiled, not run" in str(result)
    with pytest.raises(DeviceError):
        _ = triton.compile(kernels.softmax, ROW, target="cuda:90").loaded
    with pytest.raises(DeviceError):
        triton.compile(kernels.softmax, ROW, target="cuda")


def test_inline_assembly_that_ptxas_rejects_is_an_error_at_its_line(needs_ptxas: None) -> None:
    with pytest.raises(AssemblyError, match="no assembly of the machine") as raised:
        triton.compile(kernels.assembled, "*i32, 64, 'leal 5($1), $0'", target="cuda:90")
    assert raised.value.expected == "PTX of sm_90a" and raised.value.location is not None


def test_the_target_loads_no_compiler() -> None:
    program = (
        "import sys, mltriton.targets.nvidia.target as t; t.create('90').fingerprint; "
        "print(any(name.startswith(('llvmlite', 'mltriton.passes', 'mltriton.dialects')) for name in sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize(("more", "spilled"), [(40, 40), (900, 500)])
def test_who_spills_gets_all_registers(monkeypatch: pytest.MonkeyPatch, more: int, spilled: int) -> None:
    """ptxas is asked again, and the better one of its answers is taken."""
    asked: list[bool] = []

    def answer(name: str, ptx: str, *arguments: str) -> str:
        asked.append(".maxntid 256\n.minnctapersm 1" in ptx)
        Path(arguments[-1]).write_bytes(b"alone" if asked[-1] else b"first")
        bytes_ = more if asked[-1] else 500
        start = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        return f"{start}    8 bytes stack frame, {bytes_} bytes spill stores, {bytes_} bytes spill loads\n"

    monkeypatch.setattr(ptxas, "_run", answer)
    cubin = ptxas.assemble(".visible .entry k()\n.maxntid 256\n{\n}\n", device("90"))
    assert asked == [False, True]
    assert (cubin.spilled, cubin.binary) == (spilled, b"alone" if more < 500 else b"first")
    asked.clear()
    assert ptxas.assemble(".visible .entry k()\n.maxntid 256\n.minnctapersm 1\n{\n}\n", device("90")).binary == b"alone"
    assert asked == [True]


@pytest.mark.parametrize("type_", ["i8", "i16", "i32"])
def test_integers_are_negated_as_no_neg(type_: str, needs_ptxas: None) -> None:
    """Which ptxas would take into extrema of three, where it is lost."""
    ptx = compiled(kernels.extrema_of_negated, f"*{type_}:16, *{type_}:16, 4, 32", num_warps=1).asm["ptx"]
    assert "neg.s" not in ptx
    assert ptx.count("not.b32") == 4


@pytest.mark.parametrize(
    ("registers", "shared", "spilled", "multiplies", "together"),
    [
        (164, 97 * 1024, 0, True, True),
        (164, 97 * 1024, 8, True, False),
        (200, 97 * 1024, 0, True, False),
        (200, 97 * 1024, 0, False, True),
        (164, 120 * 1024, 0, False, False),
    ],
)
def test_two_programs_share_registers_where_few_are_missing(
    monkeypatch: pytest.MonkeyPatch, registers: int, shared: int, spilled: int, multiplies: bool, together: bool
) -> None:
    """Sums of products stay in registers; of other values half may do."""

    def answer(name: str, ptx: str, *arguments: str) -> str:
        two = ".maxntid 256\n.minnctapersm 2" in ptx
        Path(arguments[-1]).write_bytes(b"two" if two else b"one")
        used, lost = (128, spilled) if two else (registers, 0)
        start = "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        return f"{start}    {lost} bytes spill stores, {lost} bytes spill loads\nptxas info : Used {used} registers\n"

    monkeypatch.setattr(ptxas, "_run", answer)
    text = ".visible .entry k()\n.maxntid 256\n{\n}\n"
    cubin = ptxas.assemble(text, device("90"), shared, multiplies=multiplies)
    assert cubin.binary == (b"two" if together else b"one")


@triton.jit
def one_of_two(x, y, out, which, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    source = x if which == 1 else y
    tl.store(out + at, tl.load(tl.where(which == 2, x, y) + at) + tl.load(source + at))


def test_one_of_two_pointers_is_aligned_as_both() -> None:
    ptx = compiled(one_of_two, "*fp32:16, *fp32:16, *fp32:16, i32, 512", num_warps=4).asm["ptx"]
    assert ptx.count("ld.global.v4") == 2
    ptx = compiled(one_of_two, "*fp32:16, *fp32, *fp32:16, i32, 512", num_warps=4).asm["ptx"]
    assert "ld.global.v4" not in ptx
