"""PTX of LLVM IR, by LLVM.

Level: `llvm` -> PTX. Guarantees: where a time limit is set LLVM runs in a process of its own (`llvm/toolchain.py`).
"""

from __future__ import annotations

from mltriton.targets.llvm.toolchain import Machine, compile_object
from mltriton.targets.nvidia.devices import Device

TRIPLE = "nvptx64-nvidia-cuda"


def compile_ptx(text: str, device: Device) -> str:
    """The PTX module for a device. Raises `BackendError` for text that LLVM rejects."""
    return compile_object(text, machine_of(device)).decode()


def machine_of(device: Device) -> Machine:
    """A device as LLVM knows it."""
    return Machine(TRIPLE, device.arch, device.features, as_text=True)
