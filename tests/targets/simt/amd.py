"""A GPU by a table, a machine and a target alone: AMD's RDNA 3, as assembly by LLVM, for tests of what GPUs share.

It has no driver, no instructions of its own besides exchanges between lanes, and the least pipeline that a GPU needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from mltriton.ir.module import Module as IRModule
from mltriton.ir.types import Type as IRType
from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.llvm import toolchain
from mltriton.targets.llvm.types import I32, VOID, Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function, Module
from mltriton.targets.simt.kernel import emit_kernel
from mltriton.targets.simt.machine import Calls, Machine, Order
from mltriton.targets.simt.rules import ELEMENTS, RULES
from mltriton.targets.target import Binary, Lowered, Target

NAME, WARP, SHARED_BYTES = "amd", 32, 64 * 1024
# The least: without products, copies ahead and scheduling.
PIPELINE = (
    "inline,canonicalize,cse,rewrite-tensor-pointers,combine,reorder-broadcast,canonicalize,cse,licm,dce,"
    "check-warp-level",
    "assign-layouts,cse,assign-lanes,dce,verify-encodings",
    "distribute-to-warps,lower-cross-warp,assign-lanes,canonicalize,cse,licm,dce,verify-encodings",
    "match-target-size,canonicalize,cse,dce,verify-encodings,allocate-shared-memory",
)
MACHINE = toolchain.Machine("amdgcn-amd-amdhsa", "gfx1100", as_text=True)
_PACKET = vector("ptr addrspace(4)", 1)  # of a launch
_PROGRAM, _GRID = (
    1,
    3,
)  # where in it the lanes of a program and of the grid stand, in i32; of the former in the low half


def spec(variant: str) -> TargetSpec:
    """The table of `spec.py`."""
    return TargetSpec(
        name=NAME,
        storage=Storage.REGISTERS,
        warp_size=WARP,
        max_warps=32,
        register_bytes=4 * WARP,
        shared_bytes=SHARED_BYTES,
        pipeline=PIPELINE,
        has_lanes=True,
    )


class AmdCalls:
    """What a lane asks of its warp and its program: `calls.py`."""

    def lane(self, f: Function) -> Value:
        return f.pure_call("llvm.amdgcn.mbcnt.lo", I32, constant(I32, -1), constant(I32, 0))

    def warp(self, f: Function) -> Value:
        return f.lshr(f.pure_call("llvm.amdgcn.workitem.id.x", I32), WARP.bit_length() - 1)

    def program(self, f: Function, axis: int) -> Value:
        return f.pure_call(f"llvm.amdgcn.workgroup.id.{'xyz'[axis]}", I32)

    def programs(self, f: Function, axis: int) -> Value:
        """Lanes of the grid by lanes of a program, of which there is a row."""
        packet = f.pure_call("llvm.amdgcn.dispatch.ptr", _PACKET)
        lanes = f.load(I32, f.gep(packet, _GRID + axis, I32))
        row = f.and_(f.load(I32, f.gep(packet, _PROGRAM, I32)), 0xFFFF)
        return f.binary("udiv", lanes, row) if axis == 0 else lanes

    def everywhere(self, f: Function, condition: Value) -> Value:
        return f.icmp("eq", f.declared_call("llvm.amdgcn.ballot.i32", I32, condition), -1)

    def shuffle(self, f: Function, value: Value, source: Value) -> Value:
        """A word at a time, through the crossbar of shared memory."""
        words, bits = vector("i32", max(1, value.type.bits // 32)), value.type.with_element(f"i{value.type.bits}")
        held = f.bitcast(value, bits)
        held = f.cast("zext", held, I32) if bits.bits < I32.bits else f.bitcast(held, words)
        for number in range(words.lanes):
            word = f.extract(held, number) if words.lanes > 1 else held
            there = f.declared_call("llvm.amdgcn.ds.bpermute", I32, f.shl(source, 2), word)
            held = f.insert(held, there, number) if words.lanes > 1 else there
        return f.bitcast(f.cast("trunc", held, bits) if bits.bits < I32.bits else f.bitcast(held, bits), value.type)

    def shuffle_xor(self, f: Function, value: Value, mask: int) -> Value:
        return self.shuffle(f, value, f.xor(self.lane(f), mask))

    def barrier(self, f: Function, *, of_warp: bool = False) -> None:
        scope = "wavefront" if of_warp else "workgroup"
        f.line(f'fence syncscope("{scope}") release')
        f.declared_call(f"llvm.amdgcn.{'wave' if of_warp else 's'}.barrier", VOID)
        f.line(f'fence syncscope("{scope}") acquire')

    def arrive(self, f: Function) -> None:
        pass

    def wait(self, f: Function) -> None:
        self.barrier(f)


class AmdMachine(Machine):
    """What else an emitter asks: `machine.py`."""

    name = NAME
    shared_bytes = SHARED_BYTES
    calls: Calls = AmdCalls()

    def kernel(
        self, module: Module, name: str, parameters: Sequence[tuple[str, Type]], warps: int, lanes: int
    ) -> Function:
        sizes = f'"amdgpu-flat-work-group-size"="{warps * lanes},{warps * lanes}" '
        return module.function(name, VOID, parameters, linkage="amdgpu_kernel", extra=sizes)

    def function(self, f: Function, name: str, *operands: Value) -> Value:
        return f.intrinsic({"fmax": "llvm.maxnum", "fmin": "llvm.minnum"}[name], operands[0].type, *operands)

    def update(
        self, f: Function, kind: str, element: IRType, pointer: Value, value: Value, order: Order
    ) -> Value | None:
        return None  # by a loop of swaps

    def swap(self, f: Function, pointer: Value, expected: Value, new: Value, order: Order) -> Value:
        f.line(f"{(pair := f.fresh())} = cmpxchg {pointer}, {expected}, {new} acq_rel acquire")
        return f.emit(f"extractvalue {{ {expected.type}, i1 }} {pair}, 0", expected.type)

    def print(self, f: Function, text: Value, values: Sequence[Value]) -> None:
        raise NotImplementedError


class AmdTarget(Target):
    """`target.py`, without a driver."""

    name = NAME
    fingerprint = MACHINE.cpu
    texts: ClassVar[dict[str, Any]] = {"asm": lambda lowered: toolchain.assembly(lowered.text, MACHINE)}

    @property
    def spec(self) -> TargetSpec:
        return spec("")

    def lower(self, module: IRModule) -> Lowered:
        return Lowered(emit_kernel(module, AmdMachine(), RULES, ELEMENTS))

    def assemble(self, lowered: Lowered, module: IRModule) -> Binary:
        return Binary(self.texts["asm"](lowered).encode(), {})

    def takes(self, device: str) -> bool:
        return device == "cpu"


def create(variant: str) -> Target:
    """The target."""
    return AmdTarget()  # type: ignore[return-value]
