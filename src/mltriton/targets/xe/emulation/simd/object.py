"""The object file of an emulated kernel for this machine. Level: `llvm` -> binary."""

from __future__ import annotations

from mltriton.targets.cpu.features import host
from mltriton.targets.llvm.toolchain import Machine, compile_object
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.emulation.simd import emulate_warps


def image_of(kernel: Function, device: Device) -> bytes:
    """What `EmulatedWarps` takes. Emulated kernels run once or twice: LLVM is to be done with them soon."""
    features = host()
    machine = Machine(features.triple, features.cpu, features.attributes, optimization=0)
    return compile_object(emulate_warps(kernel, device), machine)
