"""PTX of LLVM IR, by LLVM.

Level: `llvm` -> PTX. Guarantees: where a time limit is set LLVM runs in a process of its own (`llvm/toolchain.py`). So
it does for large programs: there its straight-line strength reduction, whose time grows with the square of the program
(24 s of CPU time for blocks of 65,536 elements on four warps, 1 s without), is left out, which LLVM takes as an option
of the whole process; smaller programs keep it, for it saves up to a third of their instructions.
"""

from __future__ import annotations

from mltriton.targets.llvm.toolchain import Machine, compile_object
from mltriton.targets.nvidia.devices import Device

TRIPLE = "nvptx64-nvidia-cuda"
LARGE = 6000  # lines of LLVM IR; some 3 s of strength reduction lie between here and 8,000.
_PATIENCE = 3600.0  # seconds


def compile_ptx(text: str, device: Device) -> str:
    """The PTX module for a device. Raises `BackendError` for text that LLVM rejects."""
    machine = machine_of(device)
    if text.count("\n") <= LARGE:
        return compile_object(text, machine).decode()
    return compile_object(text, machine._replace(options=("-opt-disable=slsr",)), seconds=_PATIENCE).decode()


def machine_of(device: Device) -> Machine:
    """A device as LLVM knows it."""
    return Machine(TRIPLE, device.arch, device.features, as_text=True)
