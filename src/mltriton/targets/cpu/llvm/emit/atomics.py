"""Atomic read-modify-write and compare-and-swap, on scalars and on chunks of pointers (lane after lane).

Level: intrinsic -> llvm. Guarantees: every lane is one indivisible update with the memory order asked for; masked-off
lanes touch nothing and give 0. Floats that have no instruction (all narrow ones) go through a compare-and-swap loop.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import tt
from mltriton.ir.types import F32, F64, FloatType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.cpu.llvm.emit.context import Emitter, Rules
from mltriton.targets.llvm.emit.atomics import FAILURE_ORDERS, FLOAT_NAMES, NAMES, ORDERS
from mltriton.targets.llvm.types import I1, I8, Type, Value, constant

Update = Callable[..., Value]
ALIGNMENT = 64  # in bytes, of lanes in memory


def _update(e: Emitter, op: tt.AtomicRMW) -> Value:
    element = element_type(op.value.type)
    order = ORDERS[op.sem]

    def one(pointer: Value, value: Value) -> Value:
        if isinstance(element, FloatType):
            name = FLOAT_NAMES[op.kind]
            if element is not F32 and element is not F64 and name != "xchg":
                return _by_swapping(e, pointer, value, element, name, order)
        else:
            name = NAMES.get(op.kind, op.kind)
        return e.function.emit(f"atomicrmw {name} {pointer}, {value} {order}, align {value.type.bytes}", value.type)

    return _each_lane(e, one, op.result.uses > 0, e.optional(op.mask), e.get(op.ptr), e.get(op.value))


def _swap(e: Emitter, op: tt.AtomicCAS) -> Value:
    order = ORDERS[op.sem]

    def one(pointer: Value, expected: Value, new: Value) -> Value:
        bits = expected.type.with_element(f"i{expected.type.bits}")
        f = e.function
        old, _ = _compare_and_swap(e, pointer, f.bitcast(expected, bits), f.bitcast(new, bits), order)
        return f.bitcast(old, expected.type)

    return _each_lane(e, one, op.result.uses > 0, None, e.get(op.ptr), e.get(op.cmp), e.get(op.value))


def _compare_and_swap(e: Emitter, pointer: Value, expected: Value, new: Value, order: str) -> tuple[Value, Value]:
    """(old value, whether it was as expected)."""
    f, type_ = e.function, expected.type
    orders = f"{order} {FAILURE_ORDERS[order]}"
    both = f.fresh()
    f.line(f"{both} = cmpxchg {pointer}, {expected}, {new} {orders}, align {type_.bytes}")
    pair = f"{{ {type_}, i1 }} {both}"
    return f.emit(f"extractvalue {pair}, 0", type_), f.emit(f"extractvalue {pair}, 1", I1)


def _by_swapping(e: Emitter, pointer: Value, value: Value, element: IRType, name: str, order: str) -> Value:
    """Combine a narrow float in memory with `value`: compute, try to swap, begin again where another thread was
    first."""
    f = e.function
    operand = e.widen(value, element)
    with f.repeat([f.load(value.type, pointer), constant(I1, 0)], "swap") as loop:
        old, done = loop.carried
        loop.leave_unless(f.icmp("eq", done, 0))
        current = e.widen(old, element)
        if name == "fadd":
            combined = f.fadd(current, operand)
        else:
            combined = f.intrinsic("llvm.maxnum" if name == "fmax" else "llvm.minnum", current.type, current, operand)
        seen, succeeded = _compare_and_swap(e, pointer, old, e.narrow(combined, element), order)
        loop.yield_(f.select(succeeded, old, seen), succeeded)
    return old


def _each_lane(e: Emitter, one: Update, is_used: bool, mask: Value | None, *operands: Value) -> Value:
    """Run `one` for each lane whose mask bit holds; 0 for the others, and for all where the result is not used.

    Lanes go through memory, written once: LLVM writes a vector of which the lane is not known each time, and an atomic
    update waits until everything before it is written.
    """
    f, result_type = e.function, operands[-1].type
    if not operands[0].type.is_vector:
        return _if_allowed(e, one, mask, result_type, operands)
    lanes = operands[0].type.lanes
    bytes = I8.with_lanes(lanes)
    allowed = None if mask is None else _in_memory(e, f.select(mask, constant(bytes, 1), constant(bytes, 0)))
    pointers = [_in_memory(e, operand) for operand in operands]
    found = f.alloca(result_type, align=ALIGNMENT) if is_used else None
    with f.loop(0, lanes, name="lane") as loop:
        lane_mask = None if allowed is None else f.icmp("ne", f.load(I8, f.gep(allowed, loop.index, I8)), 0)
        lane_operands = [
            f.load(operand.type.scalar, f.gep(pointer, loop.index, operand.type.scalar))
            for operand, pointer in zip(operands, pointers, strict=True)
        ]
        old = _if_allowed(e, one, lane_mask, result_type.scalar, lane_operands)
        if found is not None:
            f.store(old, f.gep(found, loop.index, result_type.scalar))
    return constant(result_type, 0) if found is None else f.load(result_type, found, ALIGNMENT)


def _in_memory(e: Emitter, value: Value) -> Value:
    """The address of a vector's lanes."""
    pointer = e.function.alloca(value.type, align=ALIGNMENT)
    e.function.store(value, pointer, ALIGNMENT)
    return pointer


def _if_allowed(
    e: Emitter, one: Update, mask: Value | None, type_: Type, operands: tuple[Value, ...] | list[Value]
) -> Value:
    if mask is None:
        return one(*operands)
    return e.function.choose(mask, lambda: [one(*operands)], lambda: [constant(type_, 0)], "atomic")[0]


RULES: Rules = {
    tt.AtomicRMW: _update,
    tt.AtomicCAS: _swap,
}
