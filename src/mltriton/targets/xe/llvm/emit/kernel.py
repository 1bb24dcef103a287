"""The kernel of a module at the intrinsic level as LLVM IR text for SPIR-V.

Level: intrinsic -> llvm. `simt/kernel.py` says what a kernel is: 16 or 32 lanes a warp, warps along the first
dimension of a workgroup; its coordinates are the group's.
"""

from __future__ import annotations

from collections.abc import Collection

from mltriton.dialects import tt
from mltriton.ir.module import Module as IRModule
from mltriton.records import NamedTuple
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.registry import num_warps_of, spec_of
from mltriton.targets.simt.kernel import argument, begin, divisors, finish, parameters_of
from mltriton.targets.simt.shared import place_allocations
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.launch_guards import Surface, Use
from mltriton.targets.xe.llvm.emit.context import XeEmitter
from mltriton.targets.xe.llvm.emit.rules import ELEMENTS, RULES
from mltriton.targets.xe.llvm.machine import XeMachine
from mltriton.targets.xe.llvm.surfaces import Legality, Surfaces


class KernelText(NamedTuple):
    """A kernel as LLVM IR, for launches that `checked` whether the hardware takes these surfaces; `uses` says what they
    are.
    """

    function: Function
    checked: list[Surface]
    uses: list[Use]

    @property
    def text(self) -> str:
        """The module's text, written anew each time."""
        return self.function.module.text


def emit_kernel(module: IRModule, device: Device, failing: Collection[Surface] = ()) -> KernelText:
    """The public function for launches where no surfaces fail but those of `failing`. Raises `BackendError` at the line
    of what has no lowering.
    """
    target, machine, warps = Module(), XeMachine(device), num_warps_of(module)
    target.name_nodes("opencl.enable.FP_CONTRACT")
    name, lanes = tt.kernel_of(module).sym_name, spec_of(module).warp_size
    body = machine.kernel(target, name, parameters_of(module), warps, lanes)
    emitter = XeEmitter(target, body, machine, warps, RULES, ELEMENTS, legality_of(module, device, failing))
    emitter.address_payloads = "ttig.address_payloads" in module.attributes
    begin(emitter, module, argument)
    place_allocations(emitter, target, module)
    return finished(emitter, module)


def legality_of(module: IRModule, device: Device, failing: Collection[Surface]) -> Legality:
    """What is known of the matrices of a kernel."""
    function = tt.kernel_of(module)
    return Legality(Surfaces(function, device, num_warps_of(module), divisors(function)), failing)


def finished(e: XeEmitter, module: IRModule) -> KernelText:
    """The module with the kernel's operations."""
    finish(e, module)
    e.module.put_last(e.function)  # which printf asks for
    return KernelText(e.function, e.legality.relied, e.legality.uses)
