"""`mltriton.runtime.driver`: what programs ask about the device, by upstream's names: an NVIDIA GPU where torch and the
driver know one (`targets/nvidia/active.py`), otherwise this machine's CPU.

Level: runtime. `active` answers. On the CPU a thread stands for a multiprocessor, and it runs one program at a time as
one warp of one lane, whatever the program's `num_warps`. Guarantees: a grid made of upstream's occupancy formulas
(registers, and shared memory, of the device over those of a program) has at least one program for each thread.
What few launches need is imported by the functions that use it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mltriton.errors import DeviceError, calling_location

MAX_WARPS = 64  # The most warps that a program asks for on any GPU.


@dataclass(frozen=True)
class GPUTarget:
    """A kind of machine as upstream describes it: `backend` "cpu", `arch` the instruction set, lanes of a warp."""

    backend: str
    arch: int | str
    warp_size: int


class DeviceUtils:
    """What upstream's `driver.active.utils` has that is of use on a CPU."""

    def get_device_properties(self, device: int | None = 0) -> dict[str, Any]:
        """Sizes of the device.

        `multiprocessor_count`: threads that a launch uses; `max_shared_mem`: most scratch memory of a program;
        `max_num_regs`: the vector registers of a thread for each of `MAX_WARPS` warps; `warpSize`.
        """
        from mltriton.runtime import config
        from mltriton.runtime.native.launcher import num_threads
        from mltriton.targets.cpu.features import host

        _check_device(device)
        return {
            "multiprocessor_count": num_threads(),
            "max_shared_mem": config.MAX_SCRATCH.get(),
            "max_num_regs": host().vector_registers * MAX_WARPS,
            "warpSize": 1,
        }


class DriverBase:
    """What a driver of another machine derives from: whether it is there, what its target is, who measures."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels run there."""
        raise NotImplementedError(f"{cls.__name__} has no is_active")

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        raise NotImplementedError(f"{type(self).__name__} has no get_current_target")

    def get_active_torch_device(self) -> Any:
        """The torch device whose tensors kernels take."""
        raise NotImplementedError(f"{type(self).__name__} has no get_active_torch_device")

    def get_benchmarker(self) -> Any:
        """What measures launches."""
        from mltriton.testing import do_bench

        return do_bench


class Driver(DriverBase):
    """The CPU as a device."""

    def __init__(self) -> None:
        self.utils = DeviceUtils()

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        from mltriton.targets.cpu.features import host

        return GPUTarget("cpu", host().name, 1)

    def get_current_device(self) -> int:
        """The number of the device: there is one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Choose the only device."""
        _check_device(device)

    def get_current_stream(self, device: int | None = 0) -> int:
        """The stream of launches: a launch on the CPU has run when it returns."""
        return 0

    def get_active_torch_device(self) -> Any:
        """The torch device whose tensors kernels take."""
        return torch_module().device("cpu")

    def get_device_interface(self) -> Any:
        """torch's module for the device (`synchronize`, `current_stream`, ...)."""
        return torch_module().cpu

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory that is larger than the caches: whoever writes it takes everything else out of them."""
        import numpy as np

        return np.empty(256 << 20, np.uint8)

    def clear_cache(self, cache: Any) -> None:
        """Take everything out of the processor's caches."""
        cache.fill(0)

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels run here: they do."""
        return True


def _check_device(device: Any) -> None:
    """DeviceError for another device than the only one, which a torch device may call None."""
    if device not in (None, 0):
        raise DeviceError(f"there is no device {device}", expected="0", location=calling_location())


def torch_module() -> Any:
    """The module torch, which a program that asks for a device of torch's has loaded or can load."""
    if "torch" not in sys.modules:
        import torch  # noqa: F401 # pyright: ignore[reportMissingImports, reportUnusedImport]
    return sys.modules["torch"]


class DriverConfig:
    """Which driver programs ask: `active` is that which was set last, or `default`."""

    def __init__(self) -> None:
        self._chosen: Any = None

    @cached_property
    def default(self) -> Any:
        """That of an NVIDIA GPU which torch can use as well, or else the CPU's. Asking for it looks for a GPU."""
        if find_spec("torch") is not None:
            from mltriton.targets.nvidia.active import CudaDriver

            if CudaDriver.is_active() and torch_module().cuda.is_available():
                return CudaDriver()
        return Driver()

    @property
    def active(self) -> Any:
        """The driver that answers."""
        return self.default if self._chosen is None else self._chosen

    def set_active(self, driver: Any) -> None:
        """Let programs ask another driver; launches stay where their arrays are."""
        self._chosen = driver

    def reset_active(self) -> None:
        """Let programs ask the default again."""
        self._chosen = None


driver = DriverConfig()
set_active, reset_active = driver.set_active, driver.reset_active

if TYPE_CHECKING:
    active: Any
    default: Any


def __getattr__(name: str) -> Any:
    """`active` and `default` as they are now."""
    if name in ("active", "default"):
        return getattr(driver, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
