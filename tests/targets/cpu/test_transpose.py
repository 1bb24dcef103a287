"""Transposes in registers: every size and width against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.targets.cpu.llvm.transpose import transpose
from mltriton.targets.llvm.types import vector
from mltriton.targets.llvm.writer import Module

from .conftest import compile_kernel, run_kernel

ELEMENTS = {"i8": np.int8, "half": np.float16, "i16": np.int16, "float": np.float32, "i32": np.int32, "i64": np.int64}


@pytest.mark.parametrize("element", list(ELEMENTS))
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_transpose_is_numpys(isa, element, size):
    type_ = vector(element, size)

    def build(function, parameters):
        source, target = parameters
        rows = [function.load(type_, function.gep(source, i * size, type_.scalar)) for i in range(size)]
        for i, column in enumerate(transpose(function, rows)):
            function.store(column, function.gep(target, i * size, type_.scalar))

    source = np.random.default_rng(0).integers(0, 100, (size, size)).astype(ELEMENTS[element])
    target = np.zeros_like(source)
    run_kernel(compile_kernel(isa, build, 2), source, target)
    np.testing.assert_array_equal(target, source.T)


def test_rows_must_be_square():
    function = Module().function("f", vector("void", 1), [])
    rows = [function.splat(function.lane_numbers("i32", 1), 4)] * 2
    with pytest.raises(ValueError, match="cannot transpose"):
        transpose(function, rows)
