"""Questions a kernel may ask about the machine when it is compiled.

`tl.target_info.is_cuda()`. Each gives a Python bool, so that `if` is decided when compiling.
"""

from __future__ import annotations

from mltriton.language.building import builtin, current_target

__all__ = ["is_cpu", "is_cuda", "is_hip", "is_xpu"]


@builtin
def is_cpu() -> bool:
    """Whether the kernel is compiled for a CPU."""
    return current_target() == "cpu"


@builtin
def is_cuda() -> bool:
    """Whether the kernel is compiled for an NVIDIA GPU."""
    return current_target() == "cuda"


@builtin
def is_hip() -> bool:
    """Whether the kernel is compiled for an AMD GPU: never."""
    return False


@builtin
def is_xpu() -> bool:
    """Whether the kernel is compiled for an Intel GPU."""
    return current_target() == "xe"
