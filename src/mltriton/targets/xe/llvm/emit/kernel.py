"""The kernel of a module at the intrinsic level as LLVM IR text for SPIR-V.

Level: intrinsic -> llvm. `spir_kernel` with the name and the parameters of the `tt.func`: pointers to global memory,
integers, floats (narrow ones as f32, i1 as a byte); where there are assertions, a pointer to their record besides. A
workgroup is a program: 16 or 32 lanes a warp, warps along the first dimension; its coordinates are the group's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from mltriton.dialects import gpu, tt, ttig
from mltriton.errors import BackendError
from mltriton.ir.attributes import ArrayAttr, DictAttr, IntegerAttr
from mltriton.ir.module import Module as IRModule
from mltriton.ir.operation import Operation
from mltriton.ir.types import FloatType, IntegerType
from mltriton.ir.types import Type as IRType
from mltriton.targets.assertions import assertions
from mltriton.targets.llvm.types import F32, GLOBAL_PTR, I8, VOID, Type, Value, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.registry import num_warps_of, spec_of
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.launch_guards import Surface, Use
from mltriton.targets.xe.llvm.addresses import addresses_of_loops
from mltriton.targets.xe.llvm.emit import versions
from mltriton.targets.xe.llvm.emit.context import Emitter
from mltriton.targets.xe.llvm.emit.rules import ELEMENTS, RULES
from mltriton.targets.xe.llvm.emit.shared import place_allocations
from mltriton.targets.xe.llvm.lanes import element_name
from mltriton.targets.xe.llvm.surfaces import Answers, Surfaces

_BARRIERS = (gpu.Barrier, ttig.BarrierArrive, ttig.BarrierWait)


class KernelText(NamedTuple):
    """A kernel as LLVM IR text, for launches that `asked` whether the hardware takes these surfaces; `uses` says what
    they are.
    """

    text: str
    asked: list[Surface]
    uses: list[Use]


class Kernel(NamedTuple):
    """The function of a kernel, still without instructions, and what it is made of; `record` is the parameter for what
    assertions record, where there are any.
    """

    module: IRModule
    program: tt.Func
    device: Device
    body: Function
    warps: int
    divisors: tuple[int, ...]
    answers: Answers
    record: Value | None


def emit_kernel(module: IRModule, device: Device, failing: Collection[Surface] = ()) -> KernelText:
    """The public function for launches where no surfaces fail but those of `failing`. Raises `BackendError` at the line
    of what has no lowering.
    """
    target = Module()
    target.name_nodes("opencl.enable.FP_CONTRACT")
    lanes = spec_of(module).warp_size
    width = target.node(f"i32 {lanes}")
    kernel = begin(target, module, device, failing, lanes, f"!intel_reqd_sub_group_size {width} ")
    emitter = Emitter(target, kernel.body, device, kernel.warps, RULES, ELEMENTS, kernel.answers)
    emitter.address_payloads = "ttig.address_payloads" in module.attributes
    emitter.failure = kernel.record or emitter.failure
    take_parameters(emitter, kernel, argument)
    place_allocations(emitter, target, module)
    return finished(emitter, kernel)


def begin(
    target: Module,
    module: IRModule,
    device: Device,
    failing: Collection[Surface],
    items: int,
    attachments: str = "",
) -> Kernel:
    """The kernel of a program whose warps are so many work items each."""
    function = public_function(module)
    parameters = function.body.block.arguments
    warps = num_warps_of(module)
    size = target.node(f"i32 {items * warps}, i32 1, i32 1")
    has_record = bool(assertions(module))
    types = [parameter_type(parameter.type) for parameter in parameters] + [GLOBAL_PTR] * has_record
    body = target.function(
        function.sym_name,
        VOID,
        [(f"arg{number}", type_) for number, type_ in enumerate(types)],
        linkage="spir_kernel",
        attachments=f"{attachments}!reqd_work_group_size {size} ",
    )
    divisors = tuple(divisibility(function, number) for number in range(len(parameters)))
    answers = Answers(Surfaces(function, device, warps, divisors), failing)
    record = body.parameters[-1] if has_record else None
    return Kernel(module, function, device, body, warps, divisors, answers, record)


def take_parameters(e: Emitter, kernel: Kernel, held: Callable[[Emitter, Value, IRType], Value]) -> None:
    """Tell an emitter what is known before the first operation: `held` gives a parameter's value as it is held."""
    module, parameters = kernel.module, kernel.program.body.block.arguments
    e.addresses_of_loops = addresses_of(module, kernel.program, kernel.device)
    e.assertions = {op: number for number, op in enumerate(assertions(module), 1)}
    e.waits = any(isinstance(op, _BARRIERS) for op in module.walk())
    for parameter, value, divisor in zip(parameters, kernel.body.parameters, kernel.divisors, strict=False):
        made = held(e, value, parameter.type)
        e.put(parameter, made)
        e.affine.promise(made, divisor)


def finished(e: Emitter, kernel: Kernel) -> KernelText:
    """The module with the kernel's operations."""
    versions.emit(e, kernel.program.body.block.ops[:-1])
    kernel.body.ret()
    return KernelText(e.module.text, kernel.answers.relied, kernel.answers.uses)


def addresses_of(module: IRModule, function: tt.Func, device: Device) -> dict[Operation, int]:
    """How many addresses of their own block accesses have in loops, where the device makes them worth it."""
    registers = module.attributes.get("ttig.register_mode")
    if device.distances or not isinstance(registers, IntegerAttr):
        return {}
    return addresses_of_loops(function, spec_of(module), registers.value)


def public_function(module: IRModule) -> tt.Func:
    """The kernel."""
    functions = [op for op in module.body.block.ops if isinstance(op, tt.Func)]
    public = [function for function in functions if function.sym_visibility == "public"]
    if len(public) != 1:
        raise BackendError("a module at the intrinsic level has one public function", found=str(len(public)))
    return public[0]


def parameter_type(type_: IRType) -> Type:
    """As a kernel is given an argument of that type."""
    if isinstance(type_, FloatType) and type_.width < F32.bits:
        return F32
    if isinstance(type_, IntegerType) and type_.width == 1:
        return I8
    return vector(element_name(type_), 1)


def argument(e: Emitter, value: Value, type_: IRType) -> Value:
    """A parameter's value as others of that type are held."""
    if isinstance(type_, FloatType):
        return e.narrow(value, type_)
    return e.function.icmp("ne", value, 0) if isinstance(type_, IntegerType) and type_.width == 1 else value


def divisibility(function: tt.Func, number: int) -> int:
    """What the caller promises of a parameter."""
    attributes = function.attributes.get("arg_attrs")
    if not isinstance(attributes, ArrayAttr):
        return 1
    of = attributes.elements[number]
    known = of.get("tt.divisibility") if isinstance(of, DictAttr) else None
    return known.value if isinstance(known, IntegerAttr) else 1
