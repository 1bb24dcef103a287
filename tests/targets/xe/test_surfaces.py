"""Matrices outside of what 2D block accesses take: refused when compiling, at the launch, or by the kernel.

Every kind of surface outside of the limits, for every kind of access, in each place where its numbers may come from.
"""

from __future__ import annotations

import re
import warnings
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from aligned_arrays import aligned
from mltriton.errors import PerformanceWarning, TargetError
from mltriton.ir.parser import parse_module
from mltriton.passes.intrinsic.guard_block_io import GuardBlockIO
from mltriton.targets.target import Binary
from mltriton.targets.xe import block_limits
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.driver import Queue
from mltriton.targets.xe.facts import XeFacts
from mltriton.targets.xe.kernel_modules import KernelModules, packed
from mltriton.targets.xe.launch_guards import LaunchGuards, Surface
from mltriton.targets.xe.llvm.emit.kernel import KernelText, emit_kernel

PVC = device("pvc")


class Matrix(NamedTuple):
    """A matrix of f16, in elements: where it starts behind an aligned address, its sizes, and the first column read."""

    start: int = 0
    width: int = 64
    height: int = 64
    pitch: int = 64
    column: int = 16


FINE = Matrix()
OUTSIDE = {
    "base at a multiple of 16 bytes": FINE._replace(start=8),
    "base at an odd element": FINE._replace(start=1),
    "rows of 60 bytes": FINE._replace(width=30),
    "rows of more than 2^24 bytes": FINE._replace(width=2**23 + 2, pitch=2**23 + 8, height=1),
    "rows of half a word more": FINE._replace(width=63),
    "no rows": FINE._replace(height=0),
    "more than 2^24 rows": FINE._replace(height=2**24 + 1),
    "rows less than 64 bytes apart": FINE._replace(width=24, pitch=24),
    "rows more than 2^24 bytes apart": FINE._replace(pitch=2**23 + 8, height=1),
    "rows 8 bytes off a multiple of 16 apart": FINE._replace(pitch=68),
    "rows that reach into the next one": FINE._replace(pitch=56),
    "a column in the middle of a word": FINE._replace(column=17),
}
ROWS, TURNED = "order = [1, 0]", "order = [0, 1]"


class Access(NamedTuple):
    """What is accessed how: layout and block, the operation, and the function of Intel's that it becomes."""

    block: str
    layout: str
    op: str
    builtin: str

    @property
    def turned(self) -> bool:
        return self.builtin.endswith("Transpose")


def block_layout(rows: int, order: str) -> str:
    return (
        f"#ttig.subgroup_2d_block<{{warpsPerCTA = [1, 1], instrShape = [{rows}, 16], numBlocks = 1, {order}, "
        "kWidth = 2, threadsPerWarp = 16}>"
    )


_LOAD = "%v = tt.load %p {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<BLOCK, #block>>"
_STORE = """%v = arith.constant dense<1.0> : tensor<BLOCK, #block>
    tt.store %p, %v {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<BLOCK, #block>>"""
_PREFETCH = "ttig.prefetch %p : !tt.ptr<tensor<BLOCK, #block>>"
ACCESSES = {
    "load": Access("8x16xf16", block_layout(8, ROWS), _LOAD, "Subgroup2DBlockLoad"),
    "load with VNNI": Access("16x16xf16", block_layout(16, TURNED), _LOAD, "Subgroup2DBlockLoadTransform"),
    "transposing load": Access("16x16xf16", block_layout(16, TURNED), _LOAD, "Subgroup2DBlockLoadTranspose"),
    "store": Access("8x16xf16", block_layout(8, ROWS), _STORE, "Subgroup2DBlockStore"),
    "prefetch": Access("8x16xf16", block_layout(8, ROWS), _PREFETCH, "Subgroup2DBlockPrefetch"),
}
NAMES = ("start", "width", "height", "pitch", "column")


@cache
def lowered(
    access: str, numbers: Matrix | None = None, *, loaded: bool = False, failing: tuple[Surface, ...] = ()
) -> KernelText:
    """A kernel with one access to a matrix of constant sizes, or sizes from arguments, or loaded ones."""
    kind = ACCESSES[access]
    types = dict.fromkeys(NAMES, "i64") | {"column": "i32"}
    if numbers is not None:
        made = [f"    %{name} = arith.constant {getattr(numbers, name)} : {types[name]}" for name in NAMES]
    elif loaded:
        made = [f"    %{name} = tt.load %at_{name} : !tt.ptr<{types[name]}>" for name in NAMES]
    else:
        made = []
    given = (
        ""
        if numbers is not None
        else "".join(
            f", %at_{name}: !tt.ptr<{types[name]}>" if loaded else f", %{name}: {types[name]}" for name in NAMES
        )
    )
    shape, strides, offsets = "%height, %width", "%pitch, %one", "%zero, %column"
    if kind.turned:
        shape, strides, offsets = "%width, %height", "%one, %pitch", "%column, %zero"
    lines, body = "\n".join(made), kind.op.replace("BLOCK", kind.block)
    pointer = f"<tensor<{kind.block}, #block>>"
    module = f"""
#block = {kind.layout}
module attributes {{"ttg.num-warps" = 1 : i32, ttg.target = "xe:pvc", mltriton.level = "intrinsic"}} {{
  tt.func public @kernel(%x: !tt.ptr<f16>{given}) {{
    %one = arith.constant 1 : i64
    %zero = arith.constant 0 : i32
{lines}
    %base = tt.addptr %x, %start : !tt.ptr<f16>, i64
    %p = tt.make_tensor_ptr %base, [{shape}], [{strides}], [{offsets}] {{order = array<i32: 1, 0>}} : {pointer}
    {body}
    tt.return
  }}
}}
"""
    return emit_kernel(GuardBlockIO().run(parse_module(module)), PVC, failing)


def failures(kernel: KernelText, *slots: int) -> int:
    return len(LaunchGuards(kernel.checked).failing(slots))


@pytest.mark.parametrize("access", ACCESSES)
def test_sizes_within_the_limits_are_accessed_as_blocks(access: str) -> None:
    builtin = ACCESSES[access].builtin
    for kernel, slots in ((lowered(access, FINE), (4096,)), (lowered(access), (4096, *FINE))):
        assert f"{builtin}INTELi" in kernel.text
        assert "br i1" not in kernel.text
        assert failures(kernel, *slots) == 0
    assert failures(lowered(access, FINE), 4096 + 16) == 1


@pytest.mark.parametrize("kind", OUTSIDE)
@pytest.mark.parametrize("access", ACCESSES)
def test_what_is_outside_is_refused(access: str, kind: str) -> None:
    """Constants when compiling, where they say so; arguments at the launch; what is loaded by the kernel."""
    matrix, builtin = OUTSIDE[kind], f"{ACCESSES[access].builtin}INTELi"
    kernel = lowered(access, matrix)
    assert builtin not in kernel.text or (matrix.start and failures(kernel, 4096) == 1)
    assert failures(lowered(access), 4096, *matrix) == 1
    kernel = lowered(access, loaded=True)
    text = kernel.text
    assert kernel.checked == []
    assert text.index("label %if.then") < text.index(builtin, text.index("define"))


@pytest.mark.parametrize("access", ACCESSES)
def test_the_version_for_what_fails_has_no_block_access(access: str) -> None:
    guards = LaunchGuards(lowered(access).checked)
    assert f"{ACCESSES[access].builtin}INTELi" not in lowered(access, failing=guards.surfaces).text


def test_equally_aligned_arrays_are_judged_once() -> None:
    guards = LaunchGuards(lowered("load").checked)
    assert guards.failing((4096, *FINE)) is guards.failing((64 * 12345, *FINE))
    assert guards.failing((4096 + 32, *FINE)) == guards.surfaces
    assert guards.failing((4096, 0, -1 & (1 << 64) - 1, 64, 64, 16)) == guards.surfaces  # -1 in 64 bits


def warned(access: str, *slots: int) -> list[str]:
    """The lines of the warnings for a launch with these arguments."""
    kernel = lowered(access)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        guards = LaunchGuards(kernel.checked, kernel.uses, "copy")
        for _ in range(2):
            assert guards.failing(slots)
    assert all(item.category is PerformanceWarning and item.filename == __file__ for item in found)
    return [line for item in found for line in str(item.message).splitlines()]


def test_a_launch_says_once_why_it_is_slower() -> None:
    head, *lines = warned("load", 4096 + 32, *FINE)
    assert head.startswith("kernel copy accesses its argument ") and head.endswith(": it is slower (load at <text>:10)")
    assert lines == [
        "expected address a multiple of 64, found a multiple of 32",
        "Let the array start at a multiple of 64 bytes.",
    ]
    assert warned("store", 4096, *FINE._replace(pitch=FINE.pitch + 2, width=20))[1:] == [
        "expected bytes of a row at least 64, found 40",
        f"expected bytes from row to row a multiple of 16, found {2 * FINE.pitch + 4}",
        "Give rows at least 32 elements; let rows lie a multiple of 8 elements apart.",
    ]
    assert warned("load", 4096, *FINE._replace(height=0)) == []


def test_every_limit_has_advice() -> None:
    limits = block_limits.surface_limits(PVC, block_limits.Block(block_limits.Access.LOAD, 2, 16, 8))
    assert all(block_limits.advice([limit], 2) for limit in limits)
    assert block_limits.advice(limits[-1:], 2) == ("let blocks start at a column that is a multiple of 2",)


@pytest.mark.usefixtures("queue")
def test_the_warning_belongs_to_the_line_of_the_launch() -> None:
    x, y = numbers(), aligned_zeros(4096)
    launch = partial(copy[(1,)], target="xe:pvc", num_warps=1, codegen="simd")
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        launch(x, y, *FINE)
        with pytest.raises(PerformanceWarning, match=rf"kernel copy accesses.*\(load at {re.escape(__file__)}:\d+\)"):
            launch(x[4:], y, *FINE)
    with pytest.warns(PerformanceWarning, match="argument x") as found:
        launch(x[4:], y, *FINE)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerformanceWarning)
        launch(x[12:], y, *FINE)  # said before


# Emulated, where an access outside of the limits gives other data.


@triton.jit(do_not_specialize=["start", "width", "height", "pitch", "column"])
def copy(x, y, start, width, height, pitch, column):
    there = tl.make_block_ptr(x + start, (height, width), (pitch, 1), (0, column), (8, 16), (1, 0))
    here = tl.make_block_ptr(y + start, (height, width), (pitch, 1), (0, column), (8, 16), (1, 0))
    tl.store(here, tl.load(there, boundary_check=(0, 1)), boundary_check=(0, 1))


@triton.jit
def copy_loaded(x, y, table):
    start, width, height = tl.load(table), tl.load(table + 1), tl.load(table + 2)
    pitch, column = tl.load(table + 3), tl.load(table + 4)
    there = tl.make_block_ptr(x + start, (height, width), (pitch, 1), (0, column.to(tl.int32)), (8, 16), (1, 0))
    here = tl.make_block_ptr(y + start, (height, width), (pitch, 1), (0, column.to(tl.int32)), (8, 16), (1, 0))
    for _ in range(2):
        tl.store(here, tl.load(there, boundary_check=(0, 1)), boundary_check=(0, 1))


def expected(x: np.ndarray[Any, Any], matrix: Matrix) -> np.ndarray[Any, Any]:
    y = np.zeros_like(x)
    for row in range(min(8, matrix.height)):
        first = matrix.start + row * matrix.pitch + matrix.column
        last = first + max(0, min(16, matrix.width - matrix.column))
        y[first:last] = x[first:last]
    return y


def aligned_zeros(size: int) -> np.ndarray[Any, Any]:
    return aligned(np.zeros(size, np.float16))


def numbers() -> np.ndarray[Any, Any]:
    x = aligned_zeros(4096)
    x[...] = np.random.default_rng(5).standard_normal(4096)
    return x


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("codegen", ["simt", "simd"])
@pytest.mark.parametrize("loaded", [False, True])
def test_what_is_outside_is_copied_all_the_same(loaded: bool, codegen: str) -> None:
    x = numbers()
    for name, matrix in {"fine": FINE, **OUTSIDE}.items():
        y = aligned_zeros(4096)
        if loaded:
            copy_loaded[(1,)](x, y, np.array(matrix, np.int64), target="xe:pvc", num_warps=1, codegen=codegen)
        else:
            copy[(1,)](x, y, *matrix, target="xe:pvc", num_warps=1, codegen=codegen)
        assert (y == expected(x, matrix)).all(), name


@triton.jit
def add_up(x, y, table, rounds):
    for number in range(rounds):
        start, columns = tl.load(table + 2 * number), tl.load(table + 2 * number + 1)
        block = tl.make_block_ptr(x + start, (16, columns), (columns, 1), (0, 0), (8, 16), (1, 0))
        total = tl.zeros((8, 16), tl.float16)
        for _ in range(0, columns, 16):
            total += tl.load(block, boundary_check=(0, 1))
            block = tl.advance(block, (0, 16))
        here = tl.make_block_ptr(y + number * 128, (8, 16), (16, 1), (0, 0), (8, 16), (1, 0))
        tl.store(here, total + tl.load(tl.advance(block, (8, -16)), boundary_check=(0, 1)))


def test_what_is_loaded_is_asked_once_before_the_inner_loop() -> None:
    """And what the two versions of the loop give is the same for what follows. (Sizes of 64 bits are asked again.)"""
    kernel = add_up.warmup(np.float16, np.float16, np.int32, 3, target="xe:pvc", num_warps=1)
    kernel_text = kernel.asm["llvm"].split("define spir_kernel")[1].split("define ")[0]
    assert kernel_text.count("label %if.then") == 1
    fast = kernel_text.split("if.then", 2)[2].split("br label %if.end")[0]
    assert fast.count("call void @_Z32__spirv_Subgroup2DBlockLoadINTEL") == 2


@pytest.mark.usefixtures("queue")
def test_sums_of_matrices_that_the_program_finds() -> None:
    x, y = numbers(), aligned_zeros(3 * 128)
    table = np.array([(64, 64), (5, 48), (1024, 56)], np.int64)
    add_up[(1,)](x, y, table, 3, target="xe:pvc", num_warps=1)
    for (start, columns), found in zip(table, y.reshape(3, 8, 16), strict=True):
        rows = np.zeros((16, 64), np.float64)
        rows[:, :columns] = x[start : start + 16 * columns].reshape(16, columns)
        last = (columns - 1) // 16 * 16
        expected_sum = rows[:8].reshape(8, 4, 16).sum(1) + rows[8:, last : last + 16]
        np.testing.assert_allclose(found, expected_sum, atol=2e-2)


def test_a_version_is_made_once_and_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))
    made: list[tuple[Surface, ...]] = []

    def build(program: str, failing: tuple[Surface, ...], emulated: bool) -> bytes:
        made.append(failing)
        return f"{program} {len(failing)} {emulated}".encode()

    facts = XeFacts("simt", 1, 16, 0, 128, checked=lowered("load").checked)
    binary = Binary(b"first", {"program": packed(b"a program"), "emulated": packed(b"emulated")})
    some_queue = cast(Queue, SimpleNamespace(emulated=True))
    for _ in range(2):
        modules = KernelModules(binary, facts, "kernel", build, ("a test",))
        assert modules.guards is not None
        failing = modules.guards.failing((4096 + 8, *FINE))
        for _ in range(2):
            assert modules.of(some_queue, failing) == b"a program 1 True"
            assert modules.of(some_queue, ()) == b"emulated"
    assert made == [failing]
    with pytest.raises(TargetError, match="was compiled where kernels are not emulated"):
        KernelModules(Binary(b"first", {}), facts, "kernel", build, ()).of(some_queue, ())
