"""What a lane asks of its warp and its program, by OpenCL's and SPIR-V's functions.

Level: `llvm`. Pointers and values that no shuffle takes travel between lanes as integers.
"""

from __future__ import annotations

from mltriton.targets.llvm.types import I16, I32, I64, Type, Value, constant
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.spirv import builtins
from mltriton.targets.xe.spirv.builtins import Builtin, Family, Scope, Semantics

ALL = Builtin("sub_group_all", "int", ("int",), pure=True)
# C names of types, by LLVM's.
C_TYPES: dict[str, str] = {
    **{f"i{bits}": name for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))},
    "float": "float",
    "double": "double",
    "half": "half",
}


def c_name(type_: Type) -> str:
    """OpenCL's name of a type: `float8`."""
    return f"{C_TYPES[type_.element]}{type_.lanes if type_.is_vector else ''}"


def lane(f: Function) -> Value:
    """The number of this lane in its warp, i32."""
    return builtins.GET_SUB_GROUP_LOCAL_ID.call(f)


def warp(f: Function) -> Value:
    """The number of this warp in its program, i32."""
    return builtins.GET_SUB_GROUP_ID.call(f)


def program(f: Function, axis: int) -> Value:
    """A coordinate of this program, i32."""
    return f.cast("trunc", builtins.GET_GROUP_ID.call(f, axis), I32)


def programs(f: Function, axis: int) -> Value:
    """A size of the grid, i32."""
    return f.cast("trunc", builtins.GET_NUM_GROUPS.call(f, axis), I32)


def everywhere(f: Function, condition: Value) -> Value:
    """Whether an i1 holds in all lanes of the warp."""
    return f.icmp("ne", ALL.call(f, f.cast("zext", condition, I32)), 0)


def shuffle(f: Function, value: Value, source: Value) -> Value:
    """The value that lane `source` (i32) has."""
    return _exchange(f, builtins.SHUFFLE, value, source)


def shuffle_xor(f: Function, value: Value, mask: int) -> Value:
    """The value that the lane has whose number differs by the bits of `mask`."""
    return _exchange(f, builtins.SHUFFLE_XOR, value, constant(I32, mask))


def _exchange(f: Function, family: Family, value: Value, which: Value) -> Value:
    through = _carrier(value.type)
    sent = f.cast(_cast(value.type, through), value, through)
    received = family.of(C_TYPES[through.element]).call(f, sent, which)
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


def barrier(f: Function, *, of_warp: bool = False) -> None:
    """All warps of the program, or all lanes of the warp, wait here; what they wrote to shared memory before is seen
    after it.
    """
    order = Semantics.SEQUENTIALLY_CONSISTENT | Semantics.WORKGROUP_MEMORY
    scope = int(Scope.SUBGROUP if of_warp else Scope.WORKGROUP)
    builtins.BARRIER.call(f, scope, scope, int(order))


def arrive(f: Function) -> None:
    """All warps of the program learn that this one has come here; no memory access is ordered."""
    _half(f, builtins.BARRIER_ARRIVE)


def wait(f: Function) -> None:
    """Wait until all warps of the program have arrived."""
    _half(f, builtins.BARRIER_WAIT)


def _half(f: Function, half: Builtin) -> None:
    half.call(f, int(Scope.WORKGROUP), int(Scope.WORKGROUP), int(Semantics.NONE))
