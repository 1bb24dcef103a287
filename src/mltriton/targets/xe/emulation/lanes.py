"""Split barriers, accesses of one lane under a condition, and rounding to bf16 and tf32.

Level: `llvm`. A split barrier waits for everyone in its second half. The runtime can round by itself, but takes ten
times as long to build a kernel that does.
"""

from __future__ import annotations

from mltriton.targets.llvm.types import F32, I16, I32, VOID, Value
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin, Scope, Semantics

_MANTISSA = 23  # bits of f32's
_DROPPED_BY_TF32, _DROPPED_BY_BF16 = 13, 16
_BOTH_MEMORIES = Semantics.SEQUENTIALLY_CONSISTENT | Semantics.WORKGROUP_MEMORY | Semantics.GLOBAL_MEMORY


def write_arrive(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """Nothing."""
    function = _function(module, builtin, "arrive")
    function.ret()
    return function.name


def write_wait(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """A whole barrier."""
    function = _function(module, builtin, "wait")
    xe.BARRIER.call(function, Scope.WORKGROUP, Scope.WORKGROUP, int(_BOTH_MEMORIES))
    function.ret()
    return function.name


def write_load(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """A branch around the load."""
    function = _function(module, builtin, f"load_{builtin.result}")
    address, condition, other = function.parameters
    type_ = builtin.result_type
    (value,) = function.choose(condition, lambda: [function.load(type_, address)], lambda: [other])
    function.ret(value)
    return function.name


def write_store(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """A branch around the store."""
    function = _function(module, builtin, f"store_{builtin.parameters[1]}")
    address, value, condition = function.parameters
    with function.when(condition):
        function.store(value, address)
    function.ret()
    return function.name


def write_tf32(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """The nearest numbers of tf32."""
    f = _function(module, builtin, f"round_to_tf32_{builtin.result}")
    f.ret(f.bitcast(nearest(f, f.parameters[0], _DROPPED_BY_TF32), builtin.result_type))
    return f.name


def write_to_bf16(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """The nearest numbers of bf16, as their bits."""
    f = _function(module, builtin, f"to_bf16_{builtin.result}")
    f.ret(to_bf16(f, f.parameters[0]))
    return f.name


def write_from_bf16(module: Module, builtin: Builtin, constants: tuple[int, ...], device: Device) -> str:
    """The f32 with the bits of a bf16 as its upper half."""
    f = _function(module, builtin, "from_bf16")
    f.ret(from_bf16(f, f.parameters[0]))
    return f.name


def nearest(f: Function, value: Value, dropped: int) -> Value:
    """The bits of f32 rounded to the nearest ones whose last `dropped` bits are 0, ties to even."""
    bits = f.bitcast(value, I32.with_lanes(value.type.lanes))
    odd = f.and_(f.lshr(bits, dropped), 1)
    rounded = f.add(f.add(bits, odd), (1 << dropped - 1) - 1)
    # What rounding would make of a NaN may be an infinity.
    quiet = f.or_(bits, 1 << _MANTISSA - 1)
    return f.and_(f.select(f.fcmp("uno", value, value), quiet, rounded), -1 << dropped)


def to_bf16(f: Function, value: Value) -> Value:
    """The bits of the nearest bf16."""
    bits = f.lshr(nearest(f, value, _DROPPED_BY_BF16), _DROPPED_BY_BF16)
    return f.cast("trunc", bits, I16.with_lanes(value.type.lanes))


def from_bf16(f: Function, bits: Value) -> Value:
    """The f32 of a bf16's bits."""
    return f.bitcast(f.shl(f.cast("zext", bits, I32), _DROPPED_BY_BF16), F32)


def _function(module: Module, builtin: Builtin, name: str) -> Function:
    parameters = [(f"a{number}", type_) for number, type_ in enumerate(builtin.parameter_types)]
    result = builtin.result_type
    extra = "convergent " if result == VOID else ""
    return module.function(f"emulated_{name}", result, parameters, extra=extra)
