"""GPUs, modules and errors as the CUDA driver tells them, asked of a driver that is none."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mltriton.errors import BackendError, DeviceError, LaunchError, OutOfResources, TargetError
from mltriton.targets.nvidia import api, driver

from .conftest import Fake


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_LIBRARIES", ("libno-such-driver.so.1",))
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    with pytest.raises(DeviceError, match="NVIDIA's driver, which is not installed here") as caught:
        api._library()
    assert "libno-such-driver.so.1 is missing" in str(caught.value)


def test_importing_loads_nothing() -> None:
    text = "import sys, mltriton.targets.nvidia.driver; assert not {'torch', 'cuda', 'llvmlite'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", text], check=True)


def test_devices(fake: Fake) -> None:
    fake(devices=2)
    first, second = driver.device(0), driver.device(1)
    assert first.name == "Fake H100"
    assert first.capability == (9, 0)
    assert first.context != second.context
    assert driver.count() == 2
    with pytest.raises(DeviceError, match="there is no GPU 2"):
        driver.device(2)


def test_no_device(fake: Fake) -> None:
    library = fake()
    library.failing["cuDeviceGetCount"] = 100
    assert not driver.is_available()
    with pytest.raises(DeviceError, match="there is no NVIDIA GPU here"):
        driver.device(0)


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (1, LaunchError, "kernel k: the CUDA driver refuses"),
        (2, OutOfResources, "no memory left"),
        (209, TargetError, "another kind of GPU"),
        (222, BackendError, "older than the PTX"),
        (700, DeviceError, "kernel k, or a kernel before it on the stream, accessed memory that is not there"),
        (701, OutOfResources, "more registers or threads"),
        (719, DeviceError, "was ended by the GPU"),
        (900, LaunchError, "CUDA graph"),
        (12345, LaunchError, "CUDA's error 12345"),
    ],
)
def test_statuses(fake: Fake, status: int, kind: type[Exception], text: str) -> None:
    fake()
    error = driver.device(0).api.error(status, "kernel k")
    assert type(error) is kind
    assert text in str(error)


def test_a_thread_s_context_stays(fake: Fake) -> None:
    library = fake()
    device = driver.device(0)
    with pytest.raises(RuntimeError), device.current():
        assert library.contexts == [0, device.context]
        raise RuntimeError
    assert library.contexts == [0]


def test_modules_are_loaded_once(fake: Fake) -> None:
    library = fake(devices=2)
    kernel = driver.device(0).load(b"k(ptr)", "k")
    assert driver.device(0).load(b"k(ptr)", "k") is kernel
    assert driver.device(1).load(b"k(ptr)", "k") is not kernel
    assert library.calls.count("cuModuleLoadDataEx") == 2
    assert library.contexts == [0]


def test_the_log_of_the_driver_s_compiler(fake: Fake) -> None:
    library = fake()
    library.log = b"ptxas application ptx input, line 9; fatal   : Parsing error"
    with pytest.raises(BackendError, match="rejects the PTX") as caught:
        driver.device(0).load(b"k(ptr)", "k")
    assert "line 9" in str(caught.value)


def test_shared_memory(fake: Fake) -> None:
    library = fake()
    driver.device(0).load(b"small(ptr)", "small", 48 * 1024)
    assert "cuFuncSetAttribute" not in library.calls
    driver.device(0).load(b"large(ptr)", "large", 100 * 1024)
    assert "cuFuncSetAttribute" in library.calls
    with pytest.raises(OutOfResources, match="kernel huge needs more shared memory than Fake H100") as caught:
        driver.device(0).load(b"huge(ptr)", "huge", 300 * 1024)
    assert "232448" in str(caught.value)


def test_out_of_memory(fake: Fake) -> None:
    fake()
    with pytest.raises(OutOfResources, match="no memory left"):
        driver.device(0).shared(1 << 50)


def test_forked_processes(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake()
    device = driver.device(0)
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    with pytest.raises(DeviceError, match="forked"):
        device.load(b"k(ptr)", "k")
