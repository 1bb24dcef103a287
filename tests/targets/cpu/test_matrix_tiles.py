"""Dots on matrix tiles (AMX): what is asked of the system, what is emitted, and results where a processor has them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mltriton.targets.cpu import features, permission, target
from mltriton.targets.cpu.features import FEATURES, CpuFeatures
from mltriton.targets.cpu.llvm.dot import DotShape
from mltriton.targets.cpu.llvm.matrix_tiles import (
    BLOCK,
    COPIED,
    FEWEST_BLOCKS,
    ROW_BYTES,
    SPREAD,
    Block,
    tile_dot_function,
)
from mltriton.targets.llvm import toolchain
from mltriton.targets.llvm.types import I1, I64, PTR, VOID, constant
from mltriton.targets.llvm.writer import Module

from .conftest import Program

AMX = FEATURES["amx"]
ROOM = 3  # elements between rows


def module_with(shape: DotShape, k: int, isa: CpuFeatures = AMX, a_stride: int | None = None) -> Module:
    """A module whose function `kernel` calls the dot function with strides that leave room between rows."""
    module = Module(f'"target-cpu"="{isa.cpu}" "target-features"="{isa.attributes}"')
    name = tile_dot_function(module, shape, k)
    kernel = module.function("kernel", VOID, [("a", PTR), ("b", PTR), ("c", PTR), ("more", I1)], linkage="")
    a, b, c, more = kernel.parameters
    group = {"bf16": 2, "f16": 2, "i8": 4}[shape.dtype]
    b_stride = (shape.panel or shape.columns) * group
    strides = [constant(I64, number) for number in (a_stride or k * group + ROOM, b_stride, shape.columns + ROOM, k)]
    kernel.call(name, VOID, a, strides[0], b, strides[1], c, strides[2], strides[3], more)
    kernel.ret()
    return module


def assembly(shape: DotShape, k: int, cpu: str = "amx") -> str:
    isa = FEATURES[cpu]
    return toolchain.assembly(module_with(shape, k, isa).text, toolchain.Machine(isa.triple, isa.cpu, isa.attributes))


def test_four_products_a_step_and_no_move_of_a_tile() -> None:
    text = assembly(DotShape("bf16", 64, 96, panel=32, panel_stride=32 * 64), 32)
    assert text.count("tdpbf16ps") == 4
    assert text.count("tileloadd") == 4 + 4
    assert text.count("tilestored") == 4
    assert text.count("ldtilecfg") == text.count("tilerelease") == 1


@pytest.mark.parametrize(
    ("shape", "lines"),
    [
        (DotShape("bf16", 64, 128, panel=32, panel_stride=32 * 64, steps=32), 32 // 4),
        (DotShape("bf16", 64, 128, panel=32, panel_stride=32 * 64), 0),  # whose rows are in scratch memory
        (DotShape("bf16", 64, 32, steps=32), 0),
    ],
)
def test_blocks_side_by_side_bring_the_next_rows_nearer(shape: DotShape, lines: int) -> None:
    assert assembly(shape, 32).count("prefetcht1") == lines


LONGEST = COPIED // ROW_BYTES // BLOCK * 16  # groups of k of rows that are copied


@pytest.mark.parametrize(
    ("shape", "k", "copies"),
    [
        (DotShape("bf16", 64, FEWEST_BLOCKS * BLOCK, steps=LONGEST), LONGEST, True),
        (DotShape("i8", 64, FEWEST_BLOCKS * BLOCK, steps=40), 40, True),
        (DotShape("bf16", 64, FEWEST_BLOCKS * BLOCK, steps=LONGEST + 16), LONGEST + 16, False),
        (DotShape("bf16", 64, FEWEST_BLOCKS * BLOCK), LONGEST, False),  # whose rows are in scratch memory
        (DotShape("bf16", 64, BLOCK, steps=LONGEST), LONGEST, False),
    ],
)
def test_which_rows_are_copied(shape: DotShape, k: int, copies: bool) -> None:
    assert ("alloca" in module_with(shape, k).text) == copies


@pytest.mark.parametrize(
    ("dtype", "unsigned", "name"),
    [
        ("i8", "", "tdpbssd"),
        ("i8", "a", "tdpbusd"),
        ("i8", "b", "tdpbsud"),
        ("i8", "ab", "tdpbuud"),
        ("f16", "", "tdpfp16ps"),
    ],
)
def test_instructions(dtype: str, unsigned: str, name: str) -> None:
    assert name in assembly(DotShape(dtype, 16, 16, unsigned=unsigned), 16, "amx-fp16")


def test_tiles_have_the_sizes_of_their_blocks() -> None:
    table = Block(20, 32, 5).config()
    assert len(table) == 64
    assert table[0] == 1
    assert list(table[16:32:2]) == [64, 64, 64, 64, 20, 20, 64, 64]
    assert list(table[48:56]) == [16, 16, 4, 4, 16, 4, 5, 5]


def test_panels_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="32 columns at a time, not in panels of 64"):
        tile_dot_function(Module(""), DotShape("bf16", 32, 64, panel=64, panel_stride=640), 16)


@pytest.fixture
def answer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """A machine with tiles whose system answers so."""
    flags = {flag[1:]: True for flag in AMX.attributes.split(",")}
    monkeypatch.setattr(toolchain, "host_machine", lambda: (AMX.triple, AMX.cpu, flags))
    monkeypatch.setattr(permission, "tiles_permitted", lambda: request.param)
    for cached in (features.host, target._processor):
        cached.cache_clear()
    yield request.param
    for cached in (features.host, target._processor):
        cached.cache_clear()


@pytest.mark.parametrize("answer", [True, False], indirect=True)
def test_without_permission_there_are_no_tiles(answer: bool) -> None:
    here = features.host()
    assert here.name == ("amx" if answer else "avx512-bf16")
    assert ("+amx-tile" in here.attributes, "-amx-tile" in here.attributes) == (answer, not answer)


def test_the_permission_is_part_of_the_caches_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("model name : one\nflags : amx_tile\n\nprocessor : 1\n")
    monkeypatch.setattr(target, "_CPUINFO", str(info))
    found = set()
    for given in (True, False):
        monkeypatch.setattr(permission, "tiles_permitted", lambda given=given: given)
        target._processor.cache_clear()
        found.add(target._processor())
    target._processor.cache_clear()
    assert len(found) == 2


needs_tiles = pytest.mark.skipif(not features.host().matrix_tiles, reason="needs a processor with AMX")


def as_bf16(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The upper halves of f32 numbers."""
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def exact(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What bf16 numbers are."""
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@needs_tiles
@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "k"),
    [(32, 32, 16), (64, 96, 32), (16, 16, 16), (1, 4, 1), (7, 36, 5), (33, 20, 17), (50, 64, 40), (32, 32, 0)],
)
@pytest.mark.parametrize("dtype", ["bf16", "i8", "i8 a", "i8 b", "i8 ab"])
@pytest.mark.parametrize("in_panels", [False, True])
def test_results(dtype: str, rows: int, columns: int, k: int, more: bool, in_panels: bool) -> None:
    if in_panels and columns % BLOCK:
        pytest.skip("panels are whole")
    dtype, _, unsigned = dtype.partition(" ")
    group = 2 if dtype == "bf16" else 4
    rng = np.random.default_rng(rows * columns + k)
    if dtype == "bf16":
        left, right = (as_bf16(rng.standard_normal(size)) for size in ((rows, k * group), (k * group, columns)))
        wide = exact(left), exact(right)
        start = rng.standard_normal((rows, columns + ROOM)).astype(np.float32)
    else:
        left, right = (
            rng.integers(0, 256, size).astype(np.uint8) for size in ((rows, k * group), (k * group, columns))
        )
        left[:1], right[:, :1] = 255, 128
        wide = tuple(
            (x if side in unsigned else x.view(np.int8)).astype(np.int64) for x, side in ((left, "a"), (right, "b"))
        )
        start = rng.integers(-999, 999, (rows, columns + ROOM)).astype(np.int32)
    a = np.zeros((rows, k * group + ROOM), left.dtype)
    a[:, : k * group] = left
    panel = BLOCK if in_panels else columns
    b = np.ascontiguousarray(
        right.reshape(k, group, columns // panel, panel).transpose(2, 0, 3, 1)  # panels, steps, columns, group
    )
    shape = DotShape(dtype, rows, columns, "row", *((BLOCK, k * BLOCK * group) if in_panels else ()), unsigned=unsigned)
    c = start.copy()
    program = Program(module_with(shape, k).text, AMX)
    run = program.function("kernel", *[ctypes.c_void_p] * 3, ctypes.c_bool)
    run(a.ctypes.data, b.ctypes.data, c.ctypes.data, more)
    expected = wide[0] @ wide[1] + (start[:, :columns] if more else 0)
    np.testing.assert_allclose(c[:, :columns], expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(c[:, columns:], start[:, columns:])


@needs_tiles
@pytest.mark.parametrize("distance", [SPREAD - ROW_BYTES, SPREAD, 4096])
@pytest.mark.parametrize(("dtype", "group"), [("bf16", 2), ("i8", 4)])
def test_results_of_spread_rows(dtype: str, group: int, distance: int) -> None:
    rows, columns, k = 75, FEWEST_BLOCKS * BLOCK + 12, 40
    rng = np.random.default_rng(distance)
    left = rng.integers(-9, 9, (rows, distance * group // 4))
    right = rng.integers(-9, 9, (k * group, columns))
    a, b = (as_bf16(x) if dtype == "bf16" else x.astype(np.int8) for x in (left, right))
    b = np.ascontiguousarray(b.reshape(k, group, columns).transpose(0, 2, 1))
    c = np.full((rows, columns + ROOM), 7, np.float32 if dtype == "bf16" else np.int32)
    program = Program(module_with(DotShape(dtype, rows, columns, steps=k), k, a_stride=left.shape[1]).text, AMX)
    run = program.function("kernel", *[ctypes.c_void_p] * 3, ctypes.c_bool)
    run(a.ctypes.data, b.ctypes.data, c.ctypes.data, True)
    np.testing.assert_array_equal(c[:, :columns], left[:, : k * group] @ right + 7)
    np.testing.assert_array_equal(c[:, columns:], 7)
