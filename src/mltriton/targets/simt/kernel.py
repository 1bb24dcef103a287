"""The kernel of a module at the intrinsic level as LLVM IR text, a program of each lane.

Level: intrinsic -> llvm. A function with the name and the parameters of the `tt.func`: pointers to global memory,
integers, floats (narrow ones as f32, i1 as a byte); where there are assertions, a pointer to their record besides. A
workgroup is a program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mltriton.dialects import gpu, tt, ttig
from mltriton.ir.attributes import integer_in
from mltriton.ir.module import Module as IRModule
from mltriton.ir.types import I64, FloatType, IntegerType, PointerType
from mltriton.ir.types import Type as IRType
from mltriton.targets.assertions import assertions
from mltriton.targets.llvm.types import F32, GLOBAL_PTR, I8, Type, Value, vector
from mltriton.targets.llvm.writer import Module
from mltriton.targets.registry import num_warps_of, spec_of, total_warps_of
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import element_name
from mltriton.targets.simt.machine import Machine
from mltriton.targets.simt.shared import place_allocations

_RECORD = PointerType(I64)
_BARRIERS = (gpu.Barrier, ttig.BarrierArrive, ttig.BarrierWait)


def emit_kernel(module: IRModule, machine: Machine, rules: Rules, elements: Rules) -> str:
    """The public function; `rules` see whole blocks, `elements` one LLVM value of each block at a time. Raises
    `BackendError` at the line of what has no lowering.
    """
    target, warps = Module(), num_warps_of(module)
    parameters = parameters_of(module, machine.parameters(module))
    started, lanes = total_warps_of(module), spec_of(module).warp_size
    function = machine.kernel(target, tt.kernel_of(module).sym_name, parameters, started, lanes)
    emitter = Emitter(target, function, machine, warps, rules, elements)
    begin(emitter, module, argument)
    place_allocations(emitter, target, module)
    finish(emitter, module)
    return target.text


def parameters_of(module: IRModule, further: Sequence[tuple[str, Type]] = ()) -> list[tuple[str, Type]]:
    """Name and type of each parameter, then those that a machine has further, then the record of assertions where there
    are any.
    """
    types = [parameter_type(parameter.type) for parameter in tt.kernel_of(module).body.block.arguments]
    record = [("record", GLOBAL_PTR)] * bool(assertions(module))
    return [*((f"arg{number}", type_) for number, type_ in enumerate(types)), *further, *record]


def parameter_type(type_: IRType) -> Type:
    """As a kernel is given an argument of that type."""
    if isinstance(type_, FloatType) and type_.width < F32.bits:
        return F32
    if isinstance(type_, IntegerType) and type_.width == 1:
        return I8
    return vector(element_name(type_), 1)


def begin(e: Emitter, module: IRModule, held: Callable[[Emitter, Value, IRType], Value]) -> None:
    """Tell an emitter what is known before the first operation: `held` gives a parameter's value as it is held."""
    function, values = tt.kernel_of(module), e.function.parameters
    e.assertions = {op: number for number, op in enumerate(assertions(module), 1)}
    if e.assertions:
        e.failure = held(e, values[-1], _RECORD)
    e.waits = any(isinstance(op, _BARRIERS) for op in module.walk())
    parameters = function.body.block.arguments
    for parameter, value, divisor in zip(parameters, values, divisors(function), strict=False):
        made = held(e, value, parameter.type)
        e.put(parameter, made)
        e.affine.promise(made, divisor)


def finish(e: Emitter, module: IRModule) -> None:
    """Emit the kernel's operations."""
    e.operations(tt.kernel_of(module).body.block.ops[:-1])
    e.function.ret()


def argument(e: Emitter, value: Value, type_: IRType) -> Value:
    """A parameter's value as others of that type are held."""
    if isinstance(type_, FloatType):
        return e.narrow(value, type_)
    return e.function.icmp("ne", value, 0) if isinstance(type_, IntegerType) and type_.width == 1 else value


def divisors(function: tt.Func) -> list[int]:
    """What the caller promises of each parameter."""
    return [integer_in(dict(known.entries), "tt.divisibility", 1) for known in function.promises]
