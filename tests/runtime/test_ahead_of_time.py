"""Kernels compiled for a signature, launched later: right arguments run, others are refused."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, GridError, TargetError


@triton.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * factor, i < n)


@pytest.fixture(scope="module")
def compiled():
    return triton.compile(scale, "*fp32:16, *fp32, i32:16, fp32, 16", target="cpu")


def aligned(size, offset=0, dtype=np.float32):
    buffer = np.zeros(size * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -buffer.ctypes.data % 64 + offset
    return buffer[start : start + size * np.dtype(dtype).itemsize].view(dtype)


X = aligned(32)


def test_a_launch_with_or_without_the_constants(compiled):
    X[:] = np.arange(32)
    for arguments in ((32, 3.0), (32, 3.0, 16)):
        out = aligned(32, offset=4)
        compiled.launch((2,), X, out, *arguments)
        np.testing.assert_array_equal(out, X * 3)
    out = aligned(32)
    compiled[(1,)](X, out, 32, 2.0)
    np.testing.assert_array_equal(out[:16], X[:16] * 2)
    assert not out[16:].any()


def test_a_truth_value_counts_where_an_integer_is_taken():
    kernel = triton.compile(scale, "*fp32:16, *fp32, i32, fp32, 16", target="cpu")
    X[:] = np.arange(32) + 1
    out = aligned(32)
    for count in (True, np.int32(1)):
        out[:] = 0
        kernel.launch((2,), X, out, count, 2.0)
        np.testing.assert_array_equal(out[:2], [2, 0])


def test_launches_after_the_first_are_left_to_machine_code(compiled, monkeypatch):
    out = aligned(32)
    compiled.launch((2,), X, out, 32, 1.0)
    monkeypatch.setattr("mltriton.runtime.ahead_of_time.launch_compiled", lambda *_: pytest.fail("looked at in Python"))
    for factor, constants in ((2.0, ()), (4.0, (16,))):
        compiled.launch((2,), X, out, 32, factor, *constants)
        np.testing.assert_array_equal(out, X * factor)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, X, 32), "takes 4 arguments, or 5 with its constants, and got 3"),
        ((X, X, 32, 1.0, 32), "found 32"),
        ((X, X.astype(np.float64), 32, 1.0), "expected *fp32, found *fp64"),
        ((aligned(32, offset=4), X, 32, 1.0), "expected *fp32:16, found *fp32"),
        ((X, X, 33, 1.0), "expected i32:16, found i32"),
        ((X, X, 2**40, 1.0), "does not fit in i32"),
        ((X, X, X, 1.0), "expected i32:16, found *fp32:16"),
        ((X, 5, 32, 1.0), "expected *fp32, found i32"),
        ((X, X, True, 1.0), "expected i32:16, found i32"),
        ((X, X, 32, None), "expected fp32, found None"),
    ],
)
def test_arguments_that_do_not_fit(compiled, arguments, message):
    with pytest.raises(ArgumentError) as raised:
        compiled.launch((1,), *arguments)
    shown = str(raised.value).replace("\n", ", ")
    assert message in shown
    assert raised.value.file == __file__


def test_a_grid_that_is_none(compiled):
    with pytest.raises(GridError):
        compiled.launch((-1,), X, X, 32, 1.0)


def test_a_target_without_machine_code():
    @triton.jit
    def nothing(n):
        pass

    with pytest.raises(TargetError, match="has no machine code"):
        triton.compile(nothing, "i32", target="generic").launch((1,), 3)


def test_upstream_run_with_hooks_and_without(compiled):
    """Machine code launches what it takes; hooks, and what it does not take, are Python's."""
    X[:] = np.arange(32)
    compiled._init_handles()
    told = []
    for enter in (None, [], lambda told_of: told.append(("enter", told_of))):
        out = aligned(32)
        compiled.run(2, 1, 1, 0, None, None, "metadata", enter, None, X, out, 32, 3.0, 16)
        np.testing.assert_array_equal(out, X * 3)
    assert told == [("enter", "metadata")]
    out = aligned(32)
    compiled.run(2, 1, 1, 0, None, None, None, None, lambda _: told.append("exit"), X, out, 32, 2.0, 16)
    np.testing.assert_array_equal(out, X * 2)
    assert told[1:] == ["exit"]
    with pytest.raises(ArgumentError):
        compiled.run(2, 1, 1, 0, None, None, None, None, None, X.astype(np.float64), out, 32, 3.0, 16)
    with pytest.raises(TypeError):
        compiled.run(2, 1, 1)
