"""The kernel of a module at the intrinsic level in SIMD form (one program for each warp): LLVM IR.

Level: intrinsic -> llvm. `spir_kernel` with the name and the parameters of the `tt.func`, as in a lane's program
(`simt/kernel.py`); one work item is a warp.
"""

from __future__ import annotations

from collections.abc import Collection

from mltriton.dialects import tt
from mltriton.errors import BackendError
from mltriton.ir.module import Module as IRModule
from mltriton.ir.types import PointerType
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.types import I64, Value
from mltriton.targets.llvm.writer import Module
from mltriton.targets.registry import num_warps_of
from mltriton.targets.simt.context import Emitter
from mltriton.targets.simt.kernel import argument, begin, parameters_of
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.launch_guards import Surface
from mltriton.targets.xe.llvm.emit.kernel import KernelText, finished, legality_of
from mltriton.targets.xe.llvm.machine import XeMachine
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.rules import ELEMENTS, RULES
from mltriton.targets.xe.llvm.simd.shared import place_allocations


def emit_kernel(module: IRModule, device: Device, failing: Collection[Surface] = ()) -> KernelText:
    """The public function, as that of a lane's program. Raises `BackendError` at the line of what has
    no lowering.
    """
    if "ttig.address_payloads" in module.attributes:
        message = "SIMD kernels have no address payloads: what describes a matrix stays in registers anyway"
        raise BackendError(message, hint="Leave the option address_payloads out.")
    target = Module()
    machine, warps = XeMachine(device, vectors=True), num_warps_of(module)
    body = machine.kernel(target, tt.kernel_of(module).sym_name, parameters_of(module), warps, 1)
    emitter = WarpEmitter(target, body, machine, warps, RULES, ELEMENTS, legality_of(module, device, failing))
    begin(emitter, module, _argument)
    place_allocations(emitter, module)
    return finished(emitter, module)


def _argument(e: Emitter, value: Value, type_: IRType) -> Value:
    """As in a lane's program; pointers are integers."""
    held = argument(e, value, type_)
    return e.function.cast("ptrtoint", held, I64) if isinstance(type_, PointerType) else held
