"""What the tests of NVIDIA's GPUs share: a driver that is none, and a skip where a tool is not installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

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
        return library

    yield install
    driver.device.cache_clear()


@pytest.fixture
def needs_ptxas() -> None:
    if find_tool("ptxas") is None:
        pytest.skip("no ptxas: pip install 'mltriton[cuda]'")
