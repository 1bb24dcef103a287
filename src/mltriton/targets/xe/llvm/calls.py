"""Calls of OpenCL's and SPIR-V's functions by their C names: what a lane asks of its sub-group and its program.

Level: `llvm`. LLVM's SPIR-V back end knows these functions by their mangled names and makes instructions of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.targets.llvm.types import I16, I32, I64, Type, Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.spirv.mangling import llvm_type, mangled

# C names of the types that sub-group functions take, by LLVM's.
C_TYPES = {"i8": "char", "i16": "short", "i32": "int", "i64": "long", "float": "float", "double": "double", "half": "half"}


def call(f: Function, name: str, result: str, parameters: Sequence[str], *arguments: Value) -> Value:
    """Call a function with an effect, or one that all lanes of a sub-group have to call together."""
    return f.declared_call(mangled(name, parameters), llvm_type(result), *arguments)


def pure(f: Function, name: str, result: str, parameters: Sequence[str], *arguments: Value) -> Value:
    """Call a function that gives the same for the same arguments."""
    return f.pure_call(mangled(name, parameters), llvm_type(result), *arguments)


def lane(f: Function) -> Value:
    """The number of this lane in its warp, i32."""
    return pure(f, "get_sub_group_local_id", "uint", [])


def warp(f: Function) -> Value:
    """The number of this warp in its program, i32."""
    return pure(f, "get_sub_group_id", "uint", [])


def program(f: Function, axis: int) -> Value:
    """A coordinate of this program, i32."""
    return f.cast("trunc", pure(f, "get_group_id", "ulong", ["uint"], constant(I32, axis)), I32)


def programs(f: Function, axis: int) -> Value:
    """A size of the grid, i32."""
    return f.cast("trunc", pure(f, "get_num_groups", "ulong", ["uint"], constant(I32, axis)), I32)


def everywhere(f: Function, condition: Value) -> Value:
    """Whether an i1 holds in all lanes of the warp."""
    number = call(f, "sub_group_all", "int", ["int"], f.cast("zext", condition, I32))
    return f.icmp("ne", number, 0)


def shuffle(f: Function, value: Value, source: Value) -> Value:
    """The value that lane `source` (i32) has."""
    return _exchange(f, "sub_group_shuffle", value, source)


def shuffle_xor(f: Function, value: Value, mask: int) -> Value:
    """The value that the lane has whose number differs by the bits of `mask`."""
    return _exchange(f, "sub_group_shuffle_xor", value, constant(I32, mask))


def _exchange(f: Function, name: str, value: Value, which: Value) -> Value:
    through = _carrier(value.type)
    sent = f.cast(_cast(value.type, through), value, through)
    c_type = C_TYPES[through.element]
    received = call(f, name, c_type, [c_type, "uint"], sent, which)
    return f.cast(_cast(through, value.type), received, value.type)


def _carrier(type_: Type) -> Type:
    """What travels between lanes in place of a value of this type."""
    if type_.element.startswith("ptr"):
        return I64
    return I16 if type_.bits < 16 else type_


def _cast(a: Type, b: Type) -> str:
    if a.element.startswith("ptr"):
        return "ptrtoint"
    if b.element.startswith("ptr"):
        return "inttoptr"
    return "zext" if a.bits < b.bits else "trunc"


def barrier(f: Function) -> None:
    """All warps of the program wait here; what they wrote to shared memory before is seen after it."""
    call(f, "barrier", "void", ["uint"], constant(I32, 1))


def warp_barrier(f: Function) -> None:
    """What lanes of this warp wrote to shared memory before is seen by its other lanes after it."""
    scope, memory, order = constant(I32, 3), constant(I32, 3), constant(I32, 0x110)
    call(f, "__spirv_ControlBarrier", "void", ["int", "int", "int"], scope, memory, order)
