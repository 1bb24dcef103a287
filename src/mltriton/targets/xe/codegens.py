"""The two kinds of code for Xe: a program of each lane (`simt`), or a SIMD kernel, one program of each warp (`simd`).

Level: intrinsic to binary. A `Codegen` says how a program is lowered, translated and emulated. Guarantees: importing
this module imports neither LLVM nor a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from mltriton.records import NamedTuple
from mltriton.targets.xe.spirv.emission import Code

if TYPE_CHECKING:
    from mltriton.ir.module import Module
    from mltriton.targets.xe.devices import Device
    from mltriton.targets.xe.facts import XeLowered
    from mltriton.targets.xe.launch_guards import Surface
    from mltriton.targets.xe.llvm.emit.kernel import KernelText


class Codegen(NamedTuple):
    """One kind: modules with the functions that do the work."""

    code: Code
    lowering: str
    emission: str
    emulation: str

    def lower(self, module: Module, device: Device, failing: tuple[Surface, ...] = ()) -> KernelText:
        """LLVM IR for launches in which some surfaces fail. Raises `BackendError` at the line of what has no
        lowering.
        """
        return import_module(self.lowering).emit_kernel(module, device, failing)

    def spirv(self, lowered: XeLowered, warps: int, shared: int) -> bytes:
        """The SPIR-V module of a program with so many warps, which share so many bytes."""
        emit: Callable[..., bytes] = import_module(self.emission).emit
        if self.code is Code.SIMD:
            return emit(lowered.source, warps, shared)
        assert not isinstance(lowered.source, bytes), "a module that was kept is not made again"
        return emit(lowered.text, lowered.source.module.meanings)

    def emulated(self, lowered: XeLowered, device: Device) -> bytes:
        """What runs on this machine's CPU instead: SPIR-V without what only Xe has, or an object file."""
        return import_module(self.emulation).image_of(lowered.source, device)


_HERE = "mltriton.targets.xe"
BY_NAME: dict[str, Codegen] = {
    "simt": Codegen(Code.SIMT, f"{_HERE}.llvm.emit.kernel", f"{_HERE}.spirv.emission", f"{_HERE}.emulation"),
    "simd": Codegen(
        Code.SIMD, f"{_HERE}.llvm.simd.kernel", f"{_HERE}.spirv.vectors.translate", f"{_HERE}.emulation.simd.object"
    ),
}


def codegen_of(module: Module) -> Codegen:
    """The kind that a program is to have: its attribute `ttig.codegen`."""
    from mltriton.ir.attributes import string_in

    return BY_NAME[string_in(module.attributes, "ttig.codegen", "simt")]
