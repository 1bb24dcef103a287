"""NVIDIA's GPUs as programs ask for them by upstream's names: `mltriton.runtime.driver.active` where there is one.

Level: runtime. Guarantees: what concerns torch (devices, streams, its module) is torch's own answer.
"""

from __future__ import annotations

from typing import Any

from mltriton.runtime.driver import DriverBase, GPUTarget, torch_module
from mltriton.targets.nvidia import driver
from mltriton.targets.nvidia.driver import Attribute
from mltriton.targets.nvidia.facts import WARP
from mltriton.targets.nvidia.timing import FLUSHED

_PROPERTIES = {
    "multiprocessor_count": Attribute.MULTIPROCESSORS,
    "max_shared_mem": Attribute.MAX_SHARED,
    "max_num_regs": Attribute.REGISTERS,
    "warpSize": Attribute.WARP_SIZE,
    "sm_clock_rate": Attribute.CLOCK,
    "mem_clock_rate": Attribute.MEMORY_CLOCK,
    "mem_bus_width": Attribute.MEMORY_BUS,
}


class CudaUtils:
    """What upstream's `driver.active.utils` has."""

    def get_device_properties(self, device: int | None = None) -> dict[str, int]:
        """Sizes of a GPU, of the current one without a number; clocks in kHz, memory in bytes, the bus in bits."""
        gpu = driver.device(driver.current_index() if device is None else device)
        return {name: gpu.attribute(attribute) for name, attribute in _PROPERTIES.items()}


class CudaDriver(DriverBase):
    """The GPUs as devices."""

    def __init__(self) -> None:
        self.utils = CudaUtils()

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels run there."""
        return driver.is_available()

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        major, minor = driver.device(driver.current_index()).capability
        return GPUTarget("cuda", 10 * major + minor, WARP)

    def get_current_device(self) -> int:
        """The number of the GPU that torch uses."""
        return driver.current_index()

    def set_current_device(self, device: int) -> None:
        """Let torch use another GPU."""
        torch_module().cuda.set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        """The stream of launches."""
        return driver.stream_function()(driver.current_index() if device is None else device)

    def get_active_torch_device(self) -> Any:
        """The torch device whose tensors kernels take."""
        return torch_module().device("cuda", driver.current_index())

    def get_device_interface(self) -> Any:
        """torch's module for the device (`synchronize`, `current_stream`, ...)."""
        return torch_module().cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory that is larger than the caches: whoever writes it takes everything else out of them."""
        torch = torch_module()
        return torch.empty(FLUSHED // 4, dtype=torch.int32, device="cuda")

    def clear_cache(self, cache: Any) -> None:
        """Take everything out of the GPU's caches."""
        cache.zero_()
