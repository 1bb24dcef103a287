"""The exported function of a kernel: from a module at the intrinsic level to LLVM IR text.

Level: intrinsic -> llvm. `void kernel(ptr args, i64 begin, i64 end, ptr scratch)` runs the programs with linear ids
[begin, end), x fastest. `args` has an 8-byte slot for each parameter of the `tt.func` in order, then three i64: grid
x, y, z.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tt
from mltriton.ir.module import Module as IRModule
from mltriton.ir.types import F16, F32, FloatType
from mltriton.ir.types import Type as IRType
from mltriton.targets.assertions import assertions
from mltriton.targets.cpu.features import CpuFeatures
from mltriton.targets.cpu.llvm.emit.context import Emitter
from mltriton.targets.cpu.llvm.emit.rules import RULES
from mltriton.targets.llvm.emit.context import element_name
from mltriton.targets.llvm.types import I8, I32, I64, PTR, VOID, Value, constant, vector
from mltriton.targets.llvm.writer import Function, Module

KERNEL = "kernel"
SLOT_BYTES = 8
_PARAMETERS = (
    ("noalias readonly args", PTR),
    ("begin", I64),
    ("end", I64),
    ("noalias align 64 scratch", PTR),
)


def emit_kernel(module: IRModule, features: CpuFeatures) -> str:
    """LLVM IR text of the public function of `module`. Raises `BackendError` at the line of what the CPU cannot do."""
    function = tt.kernel_of(module)
    target = Module(function_attributes(features))
    body = target.function(KERNEL, VOID, _PARAMETERS, linkage="")
    args, begin, end, scratch = body.parameters
    emitter = Emitter(target, body, features, RULES)
    emitter.scratch = scratch
    emitter.assertions = {op: number for number, op in enumerate(assertions(module), 1)}
    parameters = function.body.block.arguments
    values = [_parameter(emitter, args, i, parameter.type) for i, parameter in enumerate(parameters)]
    sizes = [body.load(I64, body.gep(args, len(parameters) + axis, I64)) for axis in range(3)]
    emitter.grid = [body.cast("trunc", size, I32) for size in sizes]
    with body.loop(begin, end, 1, _coordinates(body, begin, sizes), name="program") as loop:
        emitter.linear_id, emitter.program = loop.index, loop.carried
        emitter.block(function.body.block, values)
        loop.yield_(*_next_coordinates(body, loop.carried, emitter.grid))
    body.ret()
    return target.text


def function_attributes(features: CpuFeatures) -> str:
    """The attributes that every function carries, so that the text alone says what it is compiled for."""
    width = f'"prefer-vector-width"="{features.vector_bits}"'
    flags = f' "target-features"="{features.attributes}"' if features.attributes else ""
    return f'"target-cpu"="{features.cpu}"{flags} {width} "no-trapping-math"="true"'


def _parameter(e: Emitter, args: Value, index: int, type_: IRType) -> Value:
    """Read a parameter's slot: the value in the low bytes; narrow floats are passed as f32."""
    slot = e.function.gep(args, index * SLOT_BYTES, I8)
    if isinstance(type_, FloatType) and type_.width <= F16.width:
        return e.narrow(e.function.load(vector(element_name(F32), 1), slot), type_)
    element = element_name(type_)
    if element == "i1":
        return e.function.icmp("ne", e.function.load(I8, slot), 0)
    return e.function.load(vector(element, 1), slot)


def _coordinates(f: Function, first: Value, sizes: Sequence[Value]) -> list[Value]:
    """x, y, z of the program with linear id `first`."""
    row = f.binary("udiv", first, sizes[0])
    x = f.sub(first, f.mul(row, sizes[0]))
    z = f.binary("udiv", row, sizes[1])
    y = f.sub(row, f.mul(z, sizes[1]))
    return [f.cast("trunc", coordinate, I32) for coordinate in (x, y, z)]


def _next_coordinates(f: Function, program: Sequence[Value], grid: Sequence[Value]) -> list[Value]:
    """The coordinates one linear id further, without a division."""
    zero = constant(I32, 0)
    x = f.add(program[0], 1)
    past_x = f.icmp("eq", x, grid[0])
    y = f.select(past_x, f.add(program[1], 1), program[1])
    past_y = f.icmp("eq", y, grid[1])
    z = f.select(past_y, f.add(program[2], 1), program[2])
    return [f.select(past_x, zero, x), f.select(past_y, zero, y), z]
