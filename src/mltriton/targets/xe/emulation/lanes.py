"""Split barriers and accesses of one lane under a condition.

Level: `llvm`. A split barrier waits for everyone in its second half.
"""

from __future__ import annotations

from mltriton.targets.llvm.types import VOID
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.spirv import builtins as xe
from mltriton.targets.xe.spirv.builtins import Builtin, Scope, Semantics

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


def _function(module: Module, builtin: Builtin, name: str) -> Function:
    parameters = [(f"a{place}", type_) for place, type_ in enumerate(builtin.parameter_types)]
    result = builtin.result_type
    extra = "convergent " if result == VOID else ""
    return module.function(f"emulated_{name}", result, parameters, extra=extra)
