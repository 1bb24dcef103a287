"""Dots whose rows of the left operand are far from each other: they are copied, and the results stay the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.dot import CACHE_LINE, SPREAD, DotShape

from .conftest import compile_kernel, run_kernel, text_of_dot, write_dot

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

    def body(function: Any, _: Any) -> None:
        write_dot(function, every_isa, DotShape(dtype, ROWS, COLUMNS, has_rest=False, steps=STEPS), stride, STEPS)

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
    assert ("@copy_" in text_of_dot(isa, shape)) == copies


@pytest.mark.parametrize(
    ("shape", "prefetches"),
    [
        (DotShape("f32", 12, 256, steps=256), True),
        (DotShape("f32", 12, 256), False),
        (DotShape("f32", 12, 256, "column", steps=256), False),
        (DotShape("f32", 12, 16, steps=256), False),
    ],
)
def test_what_is_brought_nearer(isa: CpuFeatures, shape: DotShape, prefetches: bool) -> None:
    nearer = re.findall(r"@llvm\.prefetch\.p0\(ptr [^,]+, i32 0, i32 2, i32 1\)", text_of_dot(isa, shape))
    assert bool(nearer) == prefetches
