"""Dots whose rows of the left operand are far from each other: they are copied, and the results stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.dot import CACHE_LINE, SPREAD, DotShape, dot_function
from mltriton.targets.llvm.types import I1, I64, VOID, constant
from mltriton.targets.llvm.writer import Module

from .conftest import compile_kernel, run_kernel

ROWS, COLUMNS, STEPS = 13, 260, 48
TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("distance", [SPREAD - CACHE_LINE, SPREAD, 4096])
def test_results(every_isa: CpuFeatures, dtype: str, distance: int) -> None:
    type_: Any = TYPES[dtype]
    stride = distance // np.dtype(type_).itemsize
    random = np.random.default_rng(0)
    a = random.integers(-9, 9, (ROWS, stride)).astype(type_)
    b = random.integers(-9, 9, (STEPS, COLUMNS)).astype(type_)
    c = np.zeros((ROWS, COLUMNS), type_)

    def body(function: Any, pointers: list[Any]) -> None:
        shape = DotShape(dtype, ROWS, COLUMNS, has_rest=False, steps=STEPS)
        numbers = [constant(I64, number) for number in (stride, COLUMNS, COLUMNS, STEPS)]
        name = dot_function(function.module, every_isa, shape)
        left, right, result = pointers
        function.call(name, VOID, left, numbers[0], right, numbers[1], result, numbers[2], numbers[3], constant(I1, 0))

    run_kernel(compile_kernel(every_isa, body, 3), a, b, c)
    np.testing.assert_array_equal(c, a[:, :STEPS] @ b)


@pytest.mark.parametrize(
    ("shape", "copies"),
    [
        (DotShape("f32", ROWS, COLUMNS, steps=STEPS), True),
        (DotShape("f32", ROWS, COLUMNS), False),
        (DotShape("f32", ROWS, 16, steps=STEPS), False),
        (DotShape("f32", ROWS, COLUMNS, "column", steps=STEPS), False),
        (DotShape("f32", ROWS, COLUMNS, steps=4096), False),
    ],
)
def test_what_is_copied(isa: CpuFeatures, shape: DotShape, copies: bool) -> None:
    module = Module("")
    dot_function(module, isa, shape)
    assert ("@copy_" in module.text) == copies
