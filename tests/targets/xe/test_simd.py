"""Kernels of the language as one vector program for each warp (`codegen="simd"`), emulated, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mltriton.errors import OptionError
from mltriton.kernels.gemm import matmul_launch
from mltriton.kernels.gemm_tiles import Tile

pytestmark = pytest.mark.usefixtures("queue")
TARGET = "xe:pvc"
RNG = np.random.default_rng(3)
Array = np.ndarray[Any, Any]


def aligned(array: Array) -> Array:
    """A copy that starts where block accesses may."""
    memory = np.zeros(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def operand(*shape: int, dtype: type) -> Array:
    if dtype is np.int8:
        return aligned(RNG.integers(-100, 100, shape).astype(dtype))
    return aligned(RNG.standard_normal(shape).astype(dtype))


@pytest.mark.parametrize(
    ("shape", "dtype", "result", "warps", "turned"),
    [
        ((77, 136, 88), np.float16, np.float32, 4, False),
        ((50, 96, 64), np.float16, np.float16, 8, True),
        ((70, 100, 75), np.int8, np.int32, 4, False),
        ((64, 64, 48), np.float32, np.float32, 4, False),
    ],
)
def test_products(shape: tuple[int, int, int], dtype: type, result: type, warps: int, turned: bool) -> None:
    """By block accesses where the hardware takes the matrices, and register by register where it does not."""
    m, n, k = shape
    a, b = operand(1, m, k, dtype=dtype), operand(1, k, n, dtype=dtype)
    if turned:
        b = aligned(b.swapaxes(1, 2)).swapaxes(1, 2)
    c = np.zeros((1, m, n), result)
    launch = matmul_launch(a, b, c, tile=Tile(64, 64, 32, 1))
    launch.kernel[launch.grid](*launch.arguments, **launch.constants, target=TARGET, codegen="simd", num_warps=warps)
    right = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(c - right).max() <= (1e-3 if result is np.float16 else 1e-5) * np.abs(right).max()


@pytest.mark.parametrize(("target", "expected"), [(TARGET, "one of simt, simd"), ("cpu", "one form of code")])
def test_an_unknown_form_of_code_is_named(target: str, expected: str) -> None:
    a = operand(1, 16, 16, dtype=np.float16)
    launch = matmul_launch(a, a, np.zeros_like(a), tile=Tile(16, 16, 16, 1))
    with pytest.raises(OptionError, match="no codegen 'vector'") as caught:
        launch.kernel.warmup(*launch.arguments, **launch.constants, target=target, codegen="vector", num_warps=1)
    assert expected in str(caught.value)
