"""A second GPU for the emitter of lane programs: a table, a machine, and PTX by LLVM. No product, no block access.

The module is the machine's `calls`, and stands in the place of a target's `spec.py` and `target.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

from mltriton.ir.module import Module as IRModule
from mltriton.ir.types import F32, F64, FloatType
from mltriton.ir.types import Type as IRType
from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.llvm import toolchain
from mltriton.targets.llvm.emit.atomics import FAILURE_ORDERS, FLOAT_NAMES, NAMES, ORDERS
from mltriton.targets.llvm.types import GLOBAL_PTR, I1, I8, I32, I64, PTR, VOID, Type, Value, constant
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.kernel import emit_kernel
from mltriton.targets.simt.machine import Calls, Machine, Order
from mltriton.targets.simt.rules import ELEMENTS, RULES
from mltriton.targets.target import AccessChecks, Lowered

NAME, WARP, ALL = "second", 32, -1
PIPELINE = (
    "inline,canonicalize,cse,fold-batches,combine,reorder-broadcast,hoist-transposes,dce,fold-transposes,"
    "canonicalize,cse,licm,dce,check-warp-level",
    "assign-layouts,cse,assign-lanes,cse,verify-encodings",
    "distribute-to-warps,lower-cross-warp,assign-lanes,canonicalize,cse,licm,dce,verify-encodings",
    "match-target-size,canonicalize,cse,dce,verify-encodings",
)
SPEC = TargetSpec(
    NAME, Storage.REGISTERS, WARP, max_warps=32, has_lanes=True, shared_bytes=48 * 1024, pipeline=PIPELINE
)


def lane(f: Function) -> Value:
    return f.pure_call("llvm.nvvm.read.ptx.sreg.laneid", I32)


def warp(f: Function) -> Value:
    return f.lshr(f.pure_call("llvm.nvvm.read.ptx.sreg.tid.x", I32), 5)


def program(f: Function, axis: int) -> Value:
    return f.pure_call(f"llvm.nvvm.read.ptx.sreg.ctaid.{'xyz'[axis]}", I32)


def programs(f: Function, axis: int) -> Value:
    return f.pure_call(f"llvm.nvvm.read.ptx.sreg.nctaid.{'xyz'[axis]}", I32)


def everywhere(f: Function, condition: Value) -> Value:
    return f.declared_call("llvm.nvvm.vote.all.sync", I1, constant(I32, ALL), condition)


def shuffle(f: Function, value: Value, source: Value) -> Value:
    return _exchanged(f, "idx", value, source)


def shuffle_xor(f: Function, value: Value, mask: int) -> Value:
    return _exchanged(f, "bfly", value, constant(I32, mask))


def _exchanged(f: Function, kind: str, value: Value, which: Value) -> Value:
    pointer, bits = value.type.element.startswith("ptr"), value.type.with_element(f"i{value.type.bits}")
    held = f.cast("ptrtoint" if pointer else "bitcast", value, bits)
    words = [f.cast("trunc", f.lshr(held, at), I32) for at in range(0, bits.bits, 32)] if bits.bits > 32 else None
    words = words or [f.cast("zext", held, I32)]
    there = [
        f.declared_call(
            f"llvm.nvvm.shfl.sync.{kind}.i32", I32, constant(I32, ALL), word, which, constant(I32, WARP - 1)
        )
        for word in words
    ]
    made = f.cast("trunc" if bits.bits < 32 else "zext", there[0], bits)
    for number, word in enumerate(there[1:], 1):
        made = f.or_(made, f.shl(f.cast("zext", word, bits), 32 * number))
    return f.cast("inttoptr" if pointer else "bitcast", made, value.type)


def barrier(f: Function, *, of_warp: bool = False) -> None:
    if of_warp:
        f.declared_call("llvm.nvvm.bar.warp.sync", VOID, constant(I32, ALL))
    else:
        f.declared_call("llvm.nvvm.barrier.cta.sync.aligned.all", VOID, constant(I32, 0))


def arrive(f: Function) -> None:
    """`wait` does both."""


def wait(f: Function) -> None:
    barrier(f)


class SecondMachine(Machine):
    """The machine."""

    name = NAME  # pyright: ignore[reportAssignmentType]
    shared_bytes = SPEC.shared_bytes  # pyright: ignore[reportAssignmentType]
    text_pointer = GLOBAL_PTR

    def __init__(self) -> None:
        self.calls: Calls = sys.modules[__name__]  # pyright: ignore[reportAttributeAccessIssue]

    def kernel(
        self, module: Module, name: str, parameters: Sequence[tuple[str, Type]], warps: int, lanes: int
    ) -> Function:
        threads = f'"nvvm.maxntid"="{warps * lanes}" '
        return module.function(name, VOID, parameters, linkage="ptx_kernel", extra=threads)

    def function(self, f: Function, name: str, *operands: Value) -> Value:
        return f.intrinsic({"fmax": "llvm.maxnum", "fmin": "llvm.minnum"}[name], operands[0].type, *operands)

    def update(
        self, f: Function, kind: str, element: IRType, pointer: Value, value: Value, order: Order
    ) -> Value | None:
        name = FLOAT_NAMES[kind] if isinstance(element, FloatType) else NAMES.get(kind, kind)
        if value.type.bits < 32 or (isinstance(element, FloatType) and (name, element) not in _SUMS):
            return None
        return f.emit(f"atomicrmw {name} {pointer}, {value} {ORDERS[order.sem]}, align {value.type.bytes}", value.type)

    def swap(self, f: Function, pointer: Value, expected: Value, new: Value, order: Order) -> Value:
        success, both = ORDERS[order.sem], f.fresh()
        f.line(f"{both} = cmpxchg {pointer}, {expected}, {new} {success} {FAILURE_ORDERS[success]}")
        return f.emit(f"extractvalue {{ {expected.type}, i1 }} {both}, 0", expected.type)

    def print(self, f: Function, text: Value, values: Sequence[Value]) -> None:
        slots = f.alloca(I64, max(1, len(values)), align=8)
        for number, value in enumerate(values):
            wide = value.type == I32
            f.store(f.cast("sext", value, I64) if wide else value, f.gep(slots, 8 * number, I8))
        f.declared_call("vprintf", I32, f.pure(f"addrspacecast {text} to ptr", PTR), slots)


_SUMS = {("fadd", F32), ("fadd", F64)}


class SecondTarget:
    """As far as PTX."""

    name = fingerprint = NAME
    can_run = True
    unused_options: frozenset[str] = frozenset()
    access_checks = AccessChecks.ON_DEMAND
    spec = SPEC
    images = MappingProxyType[str, Any]({})

    def lower(self, module: IRModule) -> Lowered:
        return Lowered(emit_kernel(module, SecondMachine(), RULES, ELEMENTS))

    @property
    def texts(self) -> dict[str, Any]:
        return {"ptx": ptx}

    def assemble(self, lowered: Lowered, module: IRModule) -> Any:
        return SimpleNamespace(object=lowered.text.encode(), metadata={})

    def takes(self, device: str) -> bool:
        return True

    def restored(self, text: str, binary: Any) -> Lowered:
        return Lowered(text)


def ptx(lowered: Lowered) -> str:
    return toolchain.assembly(lowered.text, toolchain.Machine("nvptx64-nvidia-cuda", "sm_90", "+ptx80"))


def spec(variant: str) -> TargetSpec:
    return SPEC


def create(variant: str) -> SecondTarget:
    return SecondTarget()
