"""From `kernel[grid](...)` to what the driver is given: kernels are compiled to PTX, whose parameters are read."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import DeviceError, OutOfBoundsError, TargetError
from mltriton.targets.nvidia import driver, ptxas
from mltriton.tools.tensor_descriptor import TensorDescriptor

from .conftest import Fake


@pytest.fixture(autouse=True)
def as_ptx(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an assembler the binary is PTX."""
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None)
    monkeypatch.setenv("MLTRITON_CACHE_DIR", str(tmp_path))


def floats(address: int, count: int) -> Any:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


@triton.jit
def scaled(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


def scale(grid: tuple[int, ...], x: int, y: int, n: int, factor: float) -> None:
    floats(y, n)[:] = floats(x, n) * factor


@pytest.mark.parametrize("target", ["cuda:90", "cuda"])
def test_arrays_and_numbers(fake: Fake, target: str) -> None:
    library = fake(scaled=scale)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    for factor in (2.0, 3.0):
        scaled[(4,)](x, y, 100, factor, BLOCK=32, num_warps=2, target=target)
        np.testing.assert_array_equal(y, x * factor)
    assert [launch[1] for launch in library.launches] == [(4, 1, 1, 64, 1, 1, 0)] * 2
    assert library.calls.count("cuModuleLoadDataEx") == 1


@triton.jit
def many(out, a: tl.int8, b: tl.uint16, c: tl.int64, d: tl.float64, pair, yes):
    total = a.to(tl.float64) + b + c + d + pair[0] + pair[1] + yes
    tl.store(out, total)


def test_every_kind_of_argument(fake: Fake) -> None:
    library = fake(many=lambda grid, *values: None)
    many[(1,)](np.zeros(1), -3, 65000, -(2**40), 1e300, (7, 2.5), True, target="cuda:90")
    values = library.launches[0][-1]
    assert values[1:] == [-3 & 0xFF, 65000, -(2**40) & 2**64 - 1, 1e300, 7, 2.5, 1]  # PTX knows no signs


@triton.jit
def through_descriptor(source, destination):
    destination.store([0, 0], source.load([2, 4]))


def test_descriptors(fake: Fake) -> None:
    library = fake(through_descriptor=lambda grid, *values: None)
    x, y = np.zeros((20, 40), np.float32), np.zeros((8, 16), np.float32)
    descriptors = [TensorDescriptor.from_tensor(array, [8, 16]) for array in (x, y)]
    through_descriptor[(1,)](*descriptors, target="cuda:90")
    values = library.launches[0][-1]
    assert [values[1:4], values[5:8]] == [[20, 40, 40], [8, 16, 16]]


def test_assertions_while_debugging(fake: Fake) -> None:
    """The record is the last parameter, behind the arrays' bounds."""

    failed: list[int] = []

    def reach_outside(grid: tuple[int, ...], *values: Any) -> None:
        bounds, record = values[4:8], values[8]
        assert bounds[1] == bounds[3] == 400
        if failed:
            (ctypes.c_int64 * 3).from_address(record)[:] = (failed.pop(), 1, 5)

    fake(scaled=reach_outside)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    for number, said in ((3, "a load outside of x"), (4, "a store outside of y")):
        failed.append(number)
        with pytest.raises(OutOfBoundsError, match=said) as caught:
            scaled[(4,)](x, y, 100, 2.0, BLOCK=32, target="cuda:90", debug=True)
        assert caught.value.file == __file__
        scaled[(4,)](x, y, 100, 2.0, BLOCK=32, target="cuda:90", debug=True)


class Array:
    """An array that says where it lies."""

    def __init__(self, data: np.ndarray[Any, Any], place: str, *, pinned: bool = False) -> None:
        kind, _, index = place.partition(":")
        self.data, self.dtype, self.shape = data, data.dtype, data.shape
        self.device = SimpleNamespace(type=kind, index=int(index) if index else None)
        self.is_pinned = lambda: pinned

    def data_ptr(self) -> int:
        return self.data.ctypes.data


def test_pinned_memory_beside_the_gpu_s(fake: Fake) -> None:
    """The launch goes to the GPU, whichever array comes first, and gets the addresses as they are."""
    library = fake(scaled=scale)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    for factor in (2.0, 3.0):
        scaled[(4,)](Array(x, "cpu", pinned=True), Array(y, "cuda:0"), 100, factor, BLOCK=32)
        np.testing.assert_array_equal(y, x * factor)
    scaled[(4,)](Array(x, "cuda:0"), Array(y, "cpu", pinned=True), 100, 4.0, BLOCK=32)
    np.testing.assert_array_equal(y, 4 * x)
    assert library.launches[0][-1][:2] == [x.ctypes.data, y.ctypes.data]


@pytest.mark.parametrize("numpy_first", [True, False])
def test_main_memory_beside_the_gpu_s(fake: Fake, numpy_first: bool) -> None:
    fake(scaled=scale)
    x = np.arange(100, dtype=np.float32)
    arrays = [x, Array(x, "cuda:0")] if numpy_first else [Array(x, "cuda:0"), Array(x, "cpu")]
    with pytest.raises(DeviceError, match="lie on several devices") as caught:
        scaled[(4,)](*arrays, 100, 2.0, BLOCK=32)
    assert caught.value.file == __file__
    launched = Array(x, "cpu", pinned=True)
    scaled[(4,)](launched, Array(x, "cuda:0"), 100, 1.0, BLOCK=32)
    with pytest.raises(DeviceError, match="lie on several devices"):  # what was compiled for pinned memory
        scaled[(4,)](Array(x, "cpu"), Array(x, "cuda:0"), 100, 1.0, BLOCK=32)


def test_more_warps_than_a_program_has(fake: Fake) -> None:
    fake(scaled=scale)
    x = np.arange(100, dtype=np.float32)
    with pytest.raises(TargetError, match="too many warps for cuda:90") as caught:
        scaled[(1,)](x, x, 100, 2.0, BLOCK=128, target="cuda:90", num_warps=64)
    assert caught.value.file == __file__


def test_after_a_fork(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch does not say which GPU is its current one there."""
    fake(scaled=scale)
    cuda = SimpleNamespace(is_available=lambda: True, current_device=lambda: 1 / 0, _is_in_bad_fork=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    with pytest.raises(DeviceError, match="forked"):
        driver.current_index()


def test_without_a_driver() -> None:
    """The kernel compiles, and the launch says what is missing."""
    if driver.is_available():
        pytest.skip("there is a driver")
    x = np.zeros(16, np.float32)
    with pytest.raises(DeviceError) as caught:
        scaled[(1,)](x, x, 16, 2.0, BLOCK=16, target="cuda:90")
    assert caught.value.file == __file__
