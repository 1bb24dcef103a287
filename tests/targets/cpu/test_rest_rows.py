"""Dots whose rows are no multiple of a register tile's: what few are left has a micro-kernel that is not unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.dot import DotShape, dot_function
from mltriton.targets.llvm.types import I1, I64, VOID, constant
from mltriton.targets.llvm.writer import Module

from .conftest import compile_kernel, run_kernel

ROWS, COLUMNS = 53, 48  # 53 has a rest whatever the tile


@pytest.mark.parametrize("steps", [48, 50])
def test_results(isa: CpuFeatures, steps: int) -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((ROWS, steps), (steps, COLUMNS)))
    c = np.zeros((ROWS, COLUMNS), np.float32)

    def body(function: Any, pointers: list[Any]) -> None:
        name = dot_function(function.module, isa, DotShape("f32", ROWS, COLUMNS))
        left, right, result = pointers
        a_stride, b_stride, c_stride, k = (constant(I64, number) for number in (steps, COLUMNS, COLUMNS, steps))
        function.call(name, VOID, left, a_stride, right, b_stride, result, c_stride, k, constant(I1, 0))

    run_kernel(compile_kernel(isa, body, 3), a, b, c)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize(("rows", "few"), [(ROWS, True), (4, False), (48, False)])
def test_what_is_not_unrolled(isa: CpuFeatures, rows: int, few: bool) -> None:
    module = Module("")
    dot_function(module, isa, DotShape("f32", rows, COLUMNS))
    assert ("_unroll1" in module.text) == few
