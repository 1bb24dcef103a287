"""Xe as the emitter of lane programs sees it: OpenCL's and SPIR-V's functions.

Level: intrinsic -> llvm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mltriton.dialects import arith
from mltriton.ir.operation import Operation
from mltriton.ir.types import BF16, F32, FloatType, TensorType
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit.atomics import FAILURE_ORDERS, FLOAT_NAMES, NAMES, ORDERS
from mltriton.targets.llvm.types import CONSTANT_PTR, I32, VOID, Type, Value
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.lanes import Form
from mltriton.targets.simt.machine import Calls, Machine, Order
from mltriton.targets.xe.cache_hints import Controls, controls
from mltriton.targets.xe.devices import Device
from mltriton.targets.xe.llvm import calls, lanes
from mltriton.targets.xe.llvm.caching import decorated
from mltriton.targets.xe.llvm.calls import C_TYPES, c_name
from mltriton.targets.xe.spirv import builtins
from mltriton.targets.xe.spirv.builtins import Builtin, GroupOperation, Scope, group_function
from mltriton.targets.xe.spirv.emission import PRINTF

# Combinations that a warp does at once, as SPIR-V names them, and on what.
_GROUP: dict[type[Operation], str] = {
    arith.AddF: "add",
    arith.AddI: "add",
    arith.MaxNumF: "max",
    arith.MinNumF: "min",
    arith.MaxSI: "max",
    arith.MinSI: "min",
}
SCOPE = 'syncscope("device") '  # of every atomic update
_GROUP_TYPES = ("float", "i32")


@dataclass(frozen=True)
class XeMachine(Machine):
    """One device. In programs of `vectors` a work item is a warp, for which functions of a lane are none."""

    device: Device
    vectors: bool = False
    calls: Calls = calls
    longest_vector: int = lanes.LONGEST_VECTOR
    text_pointer: Type = CONSTANT_PTR
    record_scope: str = SCOPE
    in_step: bool = True

    @property
    def name(self) -> str:
        """In errors."""
        return self.device.name

    @property
    def shared_bytes(self) -> int:
        """Of a program."""
        return self.device.shared_bytes

    def kernel(
        self, module: Module, name: str, parameters: Sequence[tuple[str, Type]], warps: int, lanes: int
    ) -> Function:
        """`spir_kernel`."""
        attachments = "" if self.vectors else f"!intel_reqd_sub_group_size {module.node(f'i32 {lanes}')} "
        attachments += f"!reqd_work_group_size {module.node(f'i32 {lanes * warps}, i32 1, i32 1')} "
        return module.function(name, VOID, parameters, linkage="spir_kernel", attachments=attachments, keeps_parts=True)

    def form_of(self, type_: TensorType) -> Form:
        """What an instruction of the matrix engine takes is one value."""
        return lanes.form_of(type_)

    def function(self, f: Function, name: str, *operands: Value) -> Value:
        """OpenCL's function of values of one type."""
        return opencl(f, name, *operands)

    def narrow(self, f: Function, value: Value, type_: IRType) -> Value | None:
        """To bf16 by one instruction."""
        convert = builtins.FLOATS_TO_BF16.get(value.type.lanes) if type_ is BF16 and not self.vectors else None
        return None if convert is None else convert.call(f, value)

    def reduced(self, f: Function, combination: type[Operation], value: Value) -> Value | None:
        """By a function of the warp: Intel's compiler works on several rows at a time."""
        name = _GROUP.get(combination)
        if name is None or value.type.element not in _GROUP_TYPES:
            return None
        reduce = group_function(name, C_TYPES[value.type.element])
        return reduce.call(f, int(Scope.SUBGROUP), int(GroupOperation.REDUCE), value)

    def caching(self, stores: bool, cache: str, evict: str) -> Controls | None:
        """What the two caches do."""
        return controls(stores, cache, evict)

    def load(self, f: Function, type_: Type, pointer: Value, align: int, caching: Controls | None) -> Value:
        """Read neighbours."""
        return f.load(type_, decorated(f, pointer, caching), align)

    def store(self, f: Function, value: Value, pointer: Value, align: int, caching: Controls | None) -> None:
        """Write neighbours."""
        f.store(value, decorated(f, pointer, caching), align)

    def load_where(
        self,
        f: Function,
        mask: Value,
        element: Type,
        pointer: Value,
        others: Sequence[Value],
        align: int,
        caching: Controls | None,
    ) -> Sequence[Value] | None:
        """One instruction under a condition."""
        if (name := self._predicated(element.with_lanes(len(others)), align)) is None:
            return None
        address = decorated(f, pointer, caching)
        loaded = builtins.PREDICATED_LOAD.of(name).call(f, address, mask, f.joined(others))
        return [f.extract(loaded, number) for number in range(len(others))]

    def store_where(
        self,
        f: Function,
        mask: Value,
        values: Sequence[Value],
        pointer: Value,
        align: int,
        caching: Controls | None,
    ) -> bool:
        """One instruction under a condition."""
        if (name := self._predicated(values[0].type.with_lanes(len(values)), align)) is None:
            return False
        stored = f.joined(values)
        builtins.PREDICATED_STORE.of(name).call(f, decorated(f, pointer, caching), stored, mask)
        return True

    def _predicated(self, type_: Type, align: int) -> str | None:
        """The C type with which neighbours are accessed under a mask by one instruction; None where it takes a branch.

        Such an access states no alignment: Intel's compiler takes that of words for granted.
        """
        name = c_name(type_) if type_.element in C_TYPES else None
        known = self.device.predicated and name in builtins.PREDICATED_LOAD.types
        return name if known and align >= min(4, type_.bytes) else None

    def update(
        self, f: Function, kind: str, element: IRType, pointer: Value, value: Value, order: Order
    ) -> Value | None:
        """Of integers, and sums of f32; what is exchanged are bits of at least a word."""
        if not isinstance(element, FloatType):
            return _updated(f, NAMES.get(kind, kind), pointer, value, order)
        name = FLOAT_NAMES[kind]
        if name == "xchg" and value.type.bits >= I32.bits:
            bits = value.type.with_element(f"i{value.type.bits}")
            return f.bitcast(_updated(f, "xchg", pointer, f.bitcast(value, bits), order), value.type)
        return _updated(f, name, pointer, value, order) if name == "fadd" and element is F32 else None

    def swap(self, f: Function, pointer: Value, expected: Value, new: Value, order: Order) -> Value:
        """What was there before."""
        success, type_ = ORDERS[order.sem], expected.type
        orders = f"{SCOPE}{success} {FAILURE_ORDERS[success]}"
        swap = f"cmpxchg {pointer}, {expected}, {new} {orders}, align {type_.bytes}"
        both = f.emit(swap, VOID, "cmpxchg", (pointer, expected, new))
        return f.emit(f"extractvalue {{ {type_}, i1 }} {both.text}, 0", type_)

    def print(self, f: Function, text: Value, values: Sequence[Value]) -> None:
        """OpenCL's printf."""
        f.module.declare(PRINTF, I32, [CONSTANT_PTR], variadic=True)
        arguments = (text, *values)
        called = f"call spir_func i32 ({CONSTANT_PTR}, ...) @{PRINTF}({', '.join(map(str, arguments))})"
        f.emit(called, I32, "call", arguments, (PRINTF,))


def _updated(f: Function, name: str, pointer: Value, value: Value, order: Order) -> Value:
    how = f"{SCOPE}{ORDERS[order.sem]}, align {value.type.bytes}"
    return f.emit(f"atomicrmw {name} {pointer}, {value} {how}", value.type, "atomicrmw", (pointer, value))


def opencl(f: Function, name: str, *operands: Value) -> Value:
    """OpenCL's function of values of one type."""
    c_type = c_name(operands[0].type)
    return Builtin(f"__spirv_ocl_{name}", c_type, (c_type,) * len(operands), pure=True).call(f, *operands)
