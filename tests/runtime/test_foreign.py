"""Arrays of libraries that mltriton does not know, by the CUDA array interface and by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError, LaunchError
from mltriton.runtime.foreign import is_foreign, known_array
from mltriton.runtime.specialization import address, device_kind, device_of


class Exchanged:
    """An array that is known by DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)


class BeforeVersions(Exchanged):
    """The same of a library that is older than DLPack 1.0."""

    def __dlpack__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.array.__dlpack__()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int64", "bool", "float16"])
@pytest.mark.parametrize("kind", [Exchanged, BeforeVersions])
def test_dlpack(kind: type[Exchanged], dtype: str) -> None:
    array = np.ones((6, 8), dtype)[1:, ::2]
    found = known_array(kind(array))
    assert address(found) == array.ctypes.data
    assert found.dtype == dtype
    assert found.shape == array.shape
    assert [stride * found.element_size() for stride in found.stride()] == list(array.strides)
    assert device_kind(found) == "cpu"


def test_what_is_known_stays() -> None:
    array = np.ones(3)
    for value in (array, array[0], 3, None, "text"):
        assert not is_foreign(value)
        assert known_array(value) is value


class OnGpu:
    """What cupy says of an array."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str = "<f4", **more: Any) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": typestr,
            "strides": None,
            "version": 3,
            **more,
        }


def test_the_cuda_array_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    from mltriton.targets.nvidia import driver

    monkeypatch.setattr(driver, "index_of", lambda address: 1)
    found = known_array(OnGpu(0x7F0000000100, (3, 5), "<f2", stream=7))
    assert (address(found), found.dtype, found.stride()) == (0x7F0000000100, "float16", (5, 1))
    assert device_of(found) == "cuda:1"
    assert found.stream == 7
    assert known_array(OnGpu(64, (2, 2), "<i8", strides=(64, 16))).stride() == (8, 2)
    with pytest.raises(ArgumentError, match="mask"):
        known_array(OnGpu(64, (2,), mask=object()))
    monkeypatch.undo()
    with pytest.raises(LaunchError):  # without a driver nobody knows where it lies, and nothing lies there with one
        known_array(OnGpu(64, (2,)))


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def test_launches() -> None:
    x, y = np.arange(50, dtype=np.float32), np.zeros(50, np.float32)
    for _ in range(2):
        double[(4,)](Exchanged(x), Exchanged(y), 50, BLOCK=16)
        assert (y == 2 * x).all()
        y[:] = 0


def test_arrays_that_nobody_may_write() -> None:
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    y.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        double[(1,)](x, Exchanged(y), 16, BLOCK=16)
