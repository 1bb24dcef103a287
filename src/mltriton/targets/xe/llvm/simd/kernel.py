"""The kernel of a module at the intrinsic level as one vector program for each warp: LLVM IR text.

Level: intrinsic -> llvm. `spir_kernel` with the name and the parameters of the `tt.func`, as in a lane's program
(`emit/kernel.py`); one work item is a warp. The function's attributes say so (`VCFunction`) and how much memory its
warps share.
"""

from __future__ import annotations

from collections.abc import Collection

from mltriton.dialects.builtin import Module as IRModule
from mltriton.errors import BackendError
from mltriton.ir.types import PointerType
from mltriton.targets.assertions import assertions
from mltriton.targets.llvm.types import GLOBAL_PTR, I64, VOID
from mltriton.targets.llvm.writer import Module
from mltriton.targets.registry import num_warps_of
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.forms import MARK
from mltriton.targets.xe.launch_guards import Surface, marked
from mltriton.targets.xe.llvm.emit import versions
from mltriton.targets.xe.llvm.emit.kernel import (
    BARRIERS,
    addresses_of,
    argument,
    divisibility,
    parameter_type,
    public_function,
)
from mltriton.targets.xe.llvm.emit.shared import allocations
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.rules import ELEMENTS, RULES
from mltriton.targets.xe.llvm.simd.shared import place_allocations
from mltriton.targets.xe.llvm.surfaces import Answers, Surfaces


def emit_kernel(module: IRModule, device: Device, failing: Collection[Surface] = ()) -> str:
    """LLVM IR text of the public function, as that of a lane's program. Raises `BackendError` at the line of what has
    no lowering.
    """
    if "ttig.address_payloads" in module.attributes:
        message = "vector programs have no address payloads: what describes a matrix stays in registers anyway"
        raise BackendError(message, hint="Leave the option address_payloads out.")
    function = public_function(module)
    parameters = function.body.block.arguments
    warps = num_warps_of(module)
    _, shared = allocations(module)
    target = Module(f'{MARK} "VCSLMSize"="{shared}"')
    size = target.node(f"i32 {warps}, i32 1, i32 1")
    checked = assertions(module)
    types = [parameter_type(parameter.type) for parameter in parameters] + [GLOBAL_PTR] * bool(checked)
    body = target.function(
        function.sym_name,
        VOID,
        [(f"arg{number}", type_) for number, type_ in enumerate(types)],
        linkage="spir_kernel",
        attachments=f"!reqd_work_group_size {size} ",
    )
    divisors = [divisibility(function, number) for number in range(len(parameters))]
    answers = Answers(Surfaces(function, device, warps, divisors), failing)
    emitter = WarpEmitter(target, body, device, warps, RULES, ELEMENTS, answers)
    emitter.to_bf16 = {}  # They are functions of one lane.
    emitter.addresses_of_loops = addresses_of(module, function, device)
    if checked:
        emitter.assertions = {op: number for number, op in enumerate(checked, 1)}
        emitter.failure = body.cast("ptrtoint", body.parameters[-1], I64)
    emitter.waits = any(isinstance(op, BARRIERS) for op in module.walk())
    for parameter, value, divisor in zip(parameters, body.parameters[: len(parameters)], divisors, strict=True):
        held = argument(emitter, value, parameter.type)
        if isinstance(parameter.type, PointerType):
            held = body.cast("ptrtoint", held, I64)
        emitter.put(parameter, held)
        emitter.affine.promise(held, divisor)
    place_allocations(emitter, module)
    versions.emit(emitter, function.body.block.ops[:-1])
    body.ret()
    return marked(target.text, answers.relied, answers.uses)
