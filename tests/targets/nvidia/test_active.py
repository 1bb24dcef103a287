"""What programs ask about a GPU by upstream's names, and how calls are measured there."""

from __future__ import annotations

from typing import Any

import pytest

import mltriton.testing
from mltriton.runtime import driver as runtime_driver
from mltriton.runtime.driver import Driver, DriverConfig, GPUTarget
from mltriton.targets.nvidia import driver
from mltriton.targets.nvidia.active import CudaDriver
from mltriton.targets.nvidia.launch import CudaKernel
from mltriton.targets.nvidia.timing import Clock
from mltriton.targets.target import clock_of

from .conftest import Fake


def ignore(grid: tuple[int, ...], *values: Any) -> None:
    pass


def test_properties(fake: Fake) -> None:
    fake()
    active = CudaDriver()
    assert active.is_active()
    assert active.get_current_target() == GPUTarget("cuda", 90, 32)
    known = active.utils.get_device_properties(0)
    assert known["multiprocessor_count"] == 132
    assert known["max_shared_mem"] == 232448
    assert active.get_current_stream() == 0


def test_the_default(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU's where both the driver and torch have one, the CPU's otherwise."""
    torch = pytest.importorskip("torch")
    library = fake()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    config = DriverConfig()
    assert isinstance(config.active, CudaDriver)
    assert config.active.get_active_torch_device() == torch.device("cuda", 0)
    config.set_active(Driver())
    assert isinstance(config.active, Driver)
    config.reset_active()
    assert config.active is config.default
    library.failing["cuDeviceGetCount"] = 100
    assert isinstance(DriverConfig().active, Driver)
    del library.failing["cuDeviceGetCount"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert isinstance(DriverConfig().active, Driver)


def test_contenders_take_turns(fake: Fake) -> None:
    library = fake(one=ignore)
    kernel = CudaKernel(b"one(i32)", "one", threads=32)
    order: list[str] = []

    def launches(name: str, count: int) -> Any:
        def run() -> None:
            order.append(name)
            for _ in range(count):
                kernel.run((1, 1, 1), [])

        return run

    with Clock() as clock:
        assert clock.estimate(launches("a", 4)) == 4
        order.clear()
        library.flushed = 0
        assert clock.times({"a": launches("a", 1), "b": launches("b", 3)}, 3) == {"a": [1] * 3, "b": [3] * 3}
    assert order == ["a", "b"] * 3
    assert library.flushed == 6
    assert not library.allocated
    assert library.calls.count("cuEventCreate") == library.calls.count("cuEventDestroy") == 14


def test_a_call_by_itself(fake: Fake) -> None:
    """As the autotuner times launches: not by what the host takes."""
    library = fake(one=ignore)
    kernel = CudaKernel(b"one(i32)", "one", threads=32)
    with clock_of("cuda:90") as milliseconds:
        assert milliseconds(lambda: [kernel.run((1, 1, 1), []) for _ in range(7)]) == 7.0
        assert milliseconds(lambda: kernel.run((1, 1, 1), [])) == 1.0
    assert not library.allocated
    assert sum(name.startswith("cuMemAlloc") for name in library.calls) == 1
    with clock_of("cpu") as milliseconds:
        assert 0 < milliseconds(lambda: None) < 1000


def test_do_bench(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(one=ignore)
    kernel = CudaKernel(b"one(i32)", "one", threads=32)
    config = DriverConfig()
    config.set_active(CudaDriver())
    monkeypatch.setattr(runtime_driver, "driver", config)
    times = mltriton.testing.do_bench(lambda: kernel.run((1, 1, 1), []), warmup=5, rep=20, return_mode="all")
    assert times == [1.0] * 20
    assert driver.current_index() == 0
