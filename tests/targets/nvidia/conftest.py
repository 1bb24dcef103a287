"""What the tests of NVIDIA's GPUs share: a driver that is none, and a skip where a tool is not installed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest

from mltriton.runtime.native.launcher import is_native
from mltriton.runtime.native.pool import pool
from mltriton.targets.nvidia import driver
from mltriton.targets.nvidia.api import Api
from mltriton.targets.nvidia.ptxas import find_tool

from .fake_driver import FakeCuda, Kernel

Fake = Callable[..., FakeCuda]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """Call it with kernels by name: the driver has them from then on."""

    def install(devices: int = 1, **kernels: Kernel) -> FakeCuda:
        library = FakeCuda(kernels, devices)
        loaded = Api(library)
        monkeypatch.setattr(driver, "api", lambda: loaded)
        driver.device.cache_clear()
        library.calls.clear()
        _forget_streams(monkeypatch)
        return library

    yield install
    driver.device.cache_clear()


def _forget_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine has a GPU, torch knows streams of that one: without them launches use the first stream."""
    if find_spec("torch") is None:
        return
    torch = importlib.import_module("torch")
    monkeypatch.delattr(torch._C, "_cuda_getCurrentRawStream", raising=False)
    if is_native():
        pool().num_threads()  # which tells the machine code of torch
        monkeypatch.setattr(pool().library.pointer("torch_stream"), "value", None)


@pytest.fixture
def needs_ptxas() -> None:
    if find_tool("ptxas") is None:
        pytest.skip("no ptxas: pip install 'mltriton[cuda]'")
