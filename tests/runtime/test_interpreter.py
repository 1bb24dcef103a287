"""Kernels in the reference executor, as `MLTRITON_INTERPRET` asks when they are decorated."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.executor.faults import Fault
from mltriton.runtime.interpreter import InterpretedFunction


@pytest.fixture(autouse=True)
def interpret(monkeypatch, tmp_path):
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MLTRITON_INTERPRET", "1")


def kernel_of_a_sum():
    @triton.jit
    def row_sums(x, out, rows, scale, flag, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        row = tl.program_id(0)
        values = tl.load(x + row * BLOCK + i)
        if flag:
            values = -values
        tl.store(out + row, tl.sum(values, 0) * scale, row < rows)

    return row_sums


def test_a_kernel_runs_in_numpy():
    kernel = kernel_of_a_sum()
    assert isinstance(kernel, InterpretedFunction)
    x, out = np.random.default_rng(0).standard_normal((5, 32)).astype(np.float32), np.zeros(5, np.float32)
    compiled = kernel[(5,)](x, out, 5, 0.5, True, BLOCK=32)
    np.testing.assert_allclose(out, x.astype(np.float64).sum(1) * -0.5, rtol=1e-5)
    assert compiled.metadata.target == "interpreter"
    kernel[(5,)](x, out, np.int64(5), np.float32(2), False, BLOCK=32)  # What machine code does not look at.
    np.testing.assert_allclose(out, x.astype(np.float64).sum(1) * 2, rtol=1e-5)


def test_an_access_out_of_bounds_is_an_error_at_its_line():
    x, out = np.zeros((4, 32), np.float32), np.zeros(5, np.float32)
    with pytest.raises(Fault, match="past the end of x") as raised:
        kernel_of_a_sum()[(5,)](x, out, 5, 0.5, True, BLOCK=32)
    assert raised.value.file == __file__


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.float16, np.uint8])
def test_a_reinterpreted_array_is_its_memory(dtype):
    @triton.jit
    def double(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, tl.load(x + i) * 2)

    memory = np.arange(8, dtype=np.float16)
    for _ in range(2):  # The second launch is known.
        double[(1,)](triton.reinterpret(memory.view(dtype), tl.float16), BLOCK=8)
    np.testing.assert_array_equal(memory, np.arange(8) * 4)


def test_others_are_compiled(monkeypatch):
    monkeypatch.delenv("MLTRITON_INTERPRET")
    assert not isinstance(kernel_of_a_sum(), InterpretedFunction)
