"""Questions a kernel may ask about the machine when it is compiled.

`tl.target_info.is_cuda()`. Each gives a Python bool, so that `if` is decided when compiling. Outside of kernels they
speak of the machine that is active (`runtime/driver.py`).
"""

from __future__ import annotations

from typing import Any

from mltriton.language import building
from mltriton.language.building import builtin


def current_target() -> Any:
    """The machine that programs use: `backend`, `arch` and `warp_size`."""
    from mltriton.runtime.driver import driver  # Few kernels need it.

    return driver.active.get_current_target()


def _family() -> str:
    """The machine that the kernel is compiled for; outside of kernels, that of the programs."""
    name = building.target_being_compiled_for()
    return current_target().backend if name is None else name.partition(":")[0]


@builtin
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether it is an NVIDIA GPU of this compute capability or a higher one."""
    variant = (building.target_being_compiled_for() or "").partition(":")[2]
    return is_cuda() and int(variant or current_target().arch) >= 10 * major + minor


__all__ = ["cuda_capability_geq", "current_target", "is_cpu", "is_cuda", "is_hip", "is_xpu"]
__all__ += ["is_hip_cdna3", "is_hip_cdna4", "is_hip_gfx1250"]


@builtin
def is_cpu() -> bool:
    """Whether the kernel is compiled for a CPU."""
    return _family() == "cpu"


@builtin
def is_cuda() -> bool:
    """Whether the kernel is compiled for an NVIDIA GPU."""
    return _family() == "cuda"


@builtin
def is_hip() -> bool:
    """Whether the kernel is compiled for an AMD GPU: never."""
    return False


is_hip_cdna3 = is_hip_cdna4 = is_hip_gfx1250 = is_hip


@builtin
def is_xpu() -> bool:
    """Whether the kernel is compiled for an Intel GPU."""
    return _family() == "xe"
