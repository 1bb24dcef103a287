"""Atomic updates of a warp's vector program: one message for a register of all lanes.

Level: intrinsic -> llvm. Guarantees: of lanes and registers that hold the same element one alone updates memory, and
all are given what it got; masked-off elements touch nothing and give 0. What the memory pipeline does not do in one
operation (narrow elements, floats but f32) raises `BackendError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mltriton.dialects import tt
from mltriton.errors import BackendError
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import F32, FloatType, TensorType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit.atomics import FLOAT_NAMES, NAMES
from mltriton.targets.llvm.types import I1, Value, constant, integers
from mltriton.targets.xe.llvm.emit.context import Emitted, Rules
from mltriton.targets.xe.llvm.lanes import layout_of
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.intrinsics import ATOMICS, LANES, atomic, fence
from mltriton.targets.xe.llvm.simd.moves import pick


def _update(e: WarpEmitter, op: tt.AtomicRMW) -> Emitted:
    element = element_type(op.value.type)
    name = FLOAT_NAMES[op.kind] if isinstance(element, FloatType) else NAMES.get(op.kind, op.kind)
    return _each(e, op.sem, name, (op.ptr, op.value), op.mask, op.result.type)


def _swap(e: WarpEmitter, op: tt.AtomicCAS) -> Emitted:
    return _each(e, op.sem, "cmpxchg", (op.ptr, op.cmp, op.value), None, op.result.type)


def _each(
    e: WarpEmitter, order: str, name: str, operands: Sequence[IRValue], mask: IRValue | None, result: IRType
) -> Emitted:
    """Update for each register, and give the lanes that repeat an element what its first one got."""
    element = element_type(result)
    bits = e.vector_of(operands[-1])[0].type.bits
    if name not in ATOMICS or bits < 32 or (name.startswith("f") and element is not F32):
        expected = "32 or 64 bits, floats of 32 bits for sums and extrema"
        raise BackendError(f"an atomic {name} of {element} has no lowering for vector programs", expected=expected)
    if order != "relaxed":
        fence(e.function, of_shared=False)
    leaders, first = _leaders(operands[0].type)
    rows = zip(*(e.vector_of(operand) for operand in operands), strict=True)
    masks = None if mask is None else e.vector_of(mask)
    one = partial(_one, e, name, leaders, first)
    made = [one(row, None if masks is None else masks[number]) for number, row in enumerate(rows)]
    if order != "relaxed":
        fence(e.function, of_shared=False)
    return e.held(made, result)


def _one(
    e: WarpEmitter, name: str, leaders: Value, first: Sequence[int], row: Sequence[Value], mask: Value | None
) -> Value:
    f, (addresses, *sources) = e.function, row
    held = sources[0].type
    if not name.startswith("f"):
        sources = [e.bits_as(source, source.type.with_element(f"i{held.bits}")) for source in sources]
    allowed = leaders if mask is None else f.and_(mask, leaders)
    old = atomic(f, addresses, allowed, ATOMICS[name], sources, held.bits // 8)
    old = f.select(allowed, old, constant(old.type, 0))
    return pick(f, e.bits_as(old, held), first)


def _leaders(type_: IRType) -> tuple[Value, list[int]]:
    """Which lanes are the first with their elements, and for each lane which one that is."""
    lanes = layout_of(type_).vectors("lane") if isinstance(type_, TensorType) else ((0,),) * (LANES.bit_length() - 1)
    spare = sum(1 << bit for bit, vector in enumerate(lanes) if not any(vector))
    first = [lane & ~spare for lane in range(LANES)]
    if not spare:
        return constant(I1.with_lanes(LANES), 1), first
    return integers("i1", [int(lane == leader) for lane, leader in enumerate(first)]), first


RULES: Rules = {tt.AtomicRMW: _update, tt.AtomicCAS: _swap}  # type: ignore[dict-item]
