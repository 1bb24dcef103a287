"""Matrices outside of what 2D block accesses take: refused when compiling, at the launch, or by the kernel.

Every kind of surface outside of the limits, for every kind of access, in each place where its numbers may come from.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.ir.parser import parse_module
from mltriton.targets.xe.devices import device
from mltriton.targets.xe.launch_guards import LaunchGuards, Surface, asked_by
from mltriton.targets.xe.llvm.emit.kernel import emit_kernel

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
) -> str:
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
    return emit_kernel(parse_module(module), PVC, failing)


def failures(text: str, *slots: int) -> int:
    asked = asked_by(text)
    return len(LaunchGuards(asked).failing(slots)) if asked is not None else 0


@pytest.mark.parametrize("access", ACCESSES)
def test_sizes_within_the_limits_are_accessed_as_blocks(access: str) -> None:
    builtin = ACCESSES[access].builtin
    for text, slots in ((lowered(access, FINE), (4096,)), (lowered(access), (4096, *FINE))):
        assert f"{builtin}INTELi" in text
        assert "br i1" not in text
        assert failures(text, *slots) == 0
    assert failures(lowered(access, FINE), 4096 + 16) == 1


@pytest.mark.parametrize("kind", OUTSIDE)
@pytest.mark.parametrize("access", ACCESSES)
def test_what_is_outside_is_refused(access: str, kind: str) -> None:
    """Constants when compiling, where they say so; arguments at the launch; what is loaded by the kernel."""
    matrix, builtin = OUTSIDE[kind], f"{ACCESSES[access].builtin}INTELi"
    text = lowered(access, matrix)
    assert builtin not in text or (matrix.start and failures(text, 4096) == 1)
    assert failures(lowered(access), 4096, *matrix) == 1
    text = lowered(access, loaded=True)
    assert asked_by(text) is None
    assert text.index("label %surfaces.then") < text.index(builtin, text.index("define"))


@pytest.mark.parametrize("access", ACCESSES)
def test_the_version_for_what_fails_has_no_block_access(access: str) -> None:
    guards = LaunchGuards(asked_by(lowered(access)) or "")
    assert f"{ACCESSES[access].builtin}INTELi" not in lowered(access, failing=guards.surfaces)


def test_equally_aligned_arrays_are_judged_once() -> None:
    guards = LaunchGuards(asked_by(lowered("load")) or "")
    assert guards.failing((4096, *FINE)) is guards.failing((64 * 12345, *FINE))
    assert guards.failing((4096 + 32, *FINE)) == guards.surfaces
    assert guards.failing((4096, 0, -1 & (1 << 64) - 1, 64, 64, 16)) == guards.surfaces  # -1 in 64 bits


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
    memory = np.zeros(2 * size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 2 * size].view(np.float16)


@pytest.mark.usefixtures("queue")
@pytest.mark.parametrize("loaded", [False, True])
def test_what_is_outside_is_copied_all_the_same(loaded: bool) -> None:
    x = aligned_zeros(4096)
    x[...] = np.random.default_rng(5).standard_normal(4096)
    for name, matrix in {"fine": FINE, **OUTSIDE}.items():
        y = aligned_zeros(4096)
        if loaded:
            copy_loaded[(1,)](x, y, np.array(matrix, np.int64), target="xe:pvc", num_warps=1)
        else:
            copy[(1,)](x, y, *matrix, target="xe:pvc", num_warps=1)
        assert (y == expected(x, matrix)).all(), name
