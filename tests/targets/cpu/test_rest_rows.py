"""Dots whose rows are no multiple of a register tile's: what few are left has a micro-kernel that is not unrolled. And
panels of columns share the loops over register tiles with columns as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mltriton.targets.cpu.features import CpuFeatures, RegisterTile
from mltriton.targets.cpu.llvm.dot import DotShape

from .conftest import compile_kernel, run_kernel, text_of_dot, write_dot

ROWS, COLUMNS = 53, 48  # 53 has a rest whatever the tile


@pytest.mark.parametrize("steps", [48, 50])
def test_results(isa: CpuFeatures, steps: int) -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((ROWS, steps), (steps, COLUMNS)))
    c = np.zeros((ROWS, COLUMNS), np.float32)

    def body(function: Any, _: Any) -> None:
        write_dot(function, isa, DotShape("f32", ROWS, COLUMNS), steps, steps)

    run_kernel(compile_kernel(isa, body, 3), a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize(("rows", "few"), [(ROWS, True), (4, False), (48, False)])
def test_what_is_not_unrolled(isa: CpuFeatures, rows: int, few: bool) -> None:
    assert ("_unroll1" in text_of_dot(isa, DotShape("f32", rows, COLUMNS))) == few


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8"])
def test_two_steps_are_enough_for_large_tiles_of_single_elements(isa: CpuFeatures, dtype: str) -> None:
    if dtype == "i8" and not isa.vnni:
        pytest.skip("bytes are multiplied by groups with VNNI")
    features = replace(isa, matrix_tiles=(), tiles=tuple({**dict(isa.tiles), "i8": RegisterTile(6, 4)}.items()))
    tile = features.tile(dtype)
    width = tile.vectors * features.lanes(64 if dtype == "f64" else 32)
    has_enough = dtype != "i8" and tile.rows * tile.vectors >= 24
    assert ("_unroll2" in text_of_dot(features, DotShape(dtype, 2 * tile.rows, width))) == has_enough


def test_panels_share_the_loops(isa: CpuFeatures) -> None:
    width = isa.tile("f32").vectors * isa.f32_lanes
    plain = DotShape("f32", 12, 2 * width)
    panels = plain._replace(panel=width, panel_stride=width * 64)
    texts = [text_of_dot(isa, shape) for shape in (plain, panels)]
    definitions = [text.partition("define internal")[2] for text in texts]
    assert definitions[0] == definitions[1] != ""
