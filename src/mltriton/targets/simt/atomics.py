"""Atomic read-modify-write and compare-and-swap: one register after the other, or neighbours at a time.

Level: intrinsic -> llvm. Guarantees: of lanes and registers that hold the same element one alone updates memory, and
all are given what it got; masked-off elements touch nothing and give 0. Neighbours of one mask, of which nobody takes
what was there before, are updated by one instruction where the machine has it. Elements for which the machine has no
atomic instruction go through compare-and-swap loops; narrow elements on the aligned word around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mltriton.dialects import tt
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import FloatType, TensorType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit.atomics import FLOAT_NAMES, NAMES
from mltriton.targets.llvm.types import I1, I32, I64, Type, Value, constant
from mltriton.targets.simt.accesses import in_memory_order, reordered, runs
from mltriton.targets.simt.context import Emitter, Rules
from mltriton.targets.simt.lanes import Emitted, layout_of
from mltriton.targets.simt.machine import Order

Update = Callable[..., Value]


def _update(e: Emitter, op: tt.AtomicRMW) -> Emitted:
    element, order = element_type(op.value.type), Order(op.sem, op.scope)
    if isinstance(op.ptr.type, TensorType) and not op.result.users and e.machine.updates_runs(op.kind, element, order):
        return _update_runs(e, op, op.ptr.type, element, order)

    def one(pointer: Value, value: Value) -> Value:
        made = e.machine.update(e.function, op.kind, element, pointer, value, order)
        return _by_swapping(e, pointer, value, element, op.kind, order) if made is None else made

    return _each(e, one, op, (op.ptr, op.value), op.mask)


def _update_runs(e: Emitter, op: tt.AtomicRMW, type_: TensorType, element: IRType, order: Order) -> Emitted:
    """Update several neighbours at a time; nobody takes the result."""
    f, leader = e.function, _leader(e, type_)[0]
    given = e.registers(op.ptr), None if op.mask is None else e.registers(op.mask), e.registers(op.value)
    pointers, masks, values = reordered(in_memory_order(e, given[0]), *given)
    if op.sem in ("release", "acq_rel"):
        e.meet()
    for run in runs(e, pointers, values[0].type):
        allowed = set(masks[run.start : run.start + run.width]) if masks is not None else {constant(I1, 1)}
        fits = len(allowed) == 1 and run.align >= run.width * values[0].type.bytes
        width = run.width if fits else 1
        for start in range(run.start, run.start + run.width, width):
            mask = leader if masks is None else f.and_(masks[start], leader)
            e.machine.update_run(f, op.kind, element, mask, pointers[start], values[start : start + width], order)
    if op.sem in ("acquire", "acq_rel"):
        e.meet()
    return e.held([constant(value.type, 0) for value in values], op.result.type)


def _swap(e: Emitter, op: tt.AtomicCAS) -> Emitted:
    order = Order(op.sem, op.scope)

    def one(pointer: Value, expected: Value, new: Value) -> Value:
        f, bits = e.function, expected.type.with_element(f"i{expected.type.bits}")
        operands = (pointer, f.bitcast(expected, bits), f.bitcast(new, bits), order)
        whole = bits.bits >= I32.bits
        return f.bitcast(e.machine.swap(f, *operands) if whole else _swap_in_word(e, *operands), expected.type)

    return _each(e, one, op, (op.ptr, op.cmp, op.value))


def _swap_in_word(e: Emitter, pointer: Value, expected: Value, new: Value, order: Order) -> Value:
    """The same of a narrow element, on the aligned word around it."""
    f = e.function

    def swapped(old: Value) -> Value:
        return f.select(f.icmp("eq", old, expected), new, old)

    return _replaced(e, pointer, expected.type, I32, order, swapped)


def _by_swapping(e: Emitter, pointer: Value, value: Value, element: IRType, kind: str, order: Order) -> Value:
    """Combine an element in memory with `value`; what was there before."""
    f, held = e.function, value.type.with_element(f"i{value.type.bits}")
    name = FLOAT_NAMES[kind] if isinstance(element, FloatType) else NAMES.get(kind, kind)
    operand = value if name == "xchg" or not isinstance(element, FloatType) else e.widen(value, element)

    def updated(old: Value) -> Value:
        return f.bitcast(combined(e, name, f.bitcast(old, value.type), operand, element), held)

    word = I64 if held.bits == I64.bits else I32
    return f.bitcast(_replaced(e, pointer, held, word, order, updated), value.type)


def _replaced(
    e: Emitter, pointer: Value, held: Type, word: Type, order: Order, update: Callable[[Value], Value]
) -> Value:
    """Replace an element in memory by what `update` makes of it: swap the aligned word around it, and begin again
    where another lane was first. What was there before.
    """
    f = e.function
    address, shift = _word(e, pointer, word, held)
    with f.repeat([f.load(word, address), constant(I1, 0)], "swap") as loop:
        seen, done = loop.carried
        loop.leave_unless(f.icmp("eq", done, 0))
        new = update(f.cast("trunc", f.lshr(seen, shift), held))
        kept = f.and_(seen, f.xor(f.shl(constant(word, (1 << held.bits) - 1), shift), -1))
        wanted = f.or_(kept, f.shl(f.cast("zext", new, word), shift)) if held.bits < word.bits else new
        found = e.machine.swap(f, address, seen, wanted, order)
        loop.yield_(found, f.icmp("eq", found, seen))
    return f.cast("trunc", f.lshr(seen, shift), held)


def _word(e: Emitter, pointer: Value, word: Type, type_: Type) -> tuple[Value, Value]:
    """The address of the aligned word that contains an element, and where the element's bits begin."""
    f = e.function
    if type_.bits == word.bits:
        return pointer, constant(word, 0)
    address = f.cast("ptrtoint", pointer, I64)
    inside = f.and_(address, word.bytes - 1)
    return f.gep(pointer, f.sub(constant(I64, 0), inside), type_.with_element("i8")), f.cast(
        "trunc", f.shl(inside, 3), word
    )


def combined(e: Emitter, name: str, old: Value, operand: Value, element: IRType) -> Value:
    """What an update, by LLVM's name, leaves in memory; operands of narrow floats are wide."""
    if name == "xchg":
        return operand
    if not isinstance(element, FloatType):
        f, extremum = e.function, _EXTREMA.get(name)
        return f.binary(name, old, operand) if extremum is None else f.intrinsic(extremum, old.type, old, operand)
    current = e.widen(old, element)
    if name == "fadd":
        return e.narrow(e.function.fadd(current, operand), element)
    return e.narrow(e.machine.function(e.function, name, current, operand), element)


_EXTREMA = {"max": "llvm.smax", "min": "llvm.smin", "umax": "llvm.umax", "umin": "llvm.umin"}


def _each(
    e: Emitter,
    one: Update,
    op: tt.AtomicRMW | tt.AtomicCAS,
    operands: Sequence[IRValue],
    mask: IRValue | None = None,
) -> Emitted:
    """Update for each register; of lanes that hold the same element only the first, which tells the others. What is
    ordered are the accesses of all lanes of the warp.
    """
    f = e.function
    if not isinstance(op.ptr.type, TensorType):
        leader, first = f.icmp("eq", e.calls.lane(f), 0), constant(I32, 0)
        rows = [[e.get(operand) for operand in operands]]
        masks = [None if mask is None else e.get(mask)]
    else:
        leader, first = _leader(e, op.ptr.type)
        rows = [list(row) for row in zip(*(e.registers(operand) for operand in operands), strict=True)]
        masks = [None] * len(rows) if mask is None else e.registers(mask)
    if op.sem in ("release", "acq_rel"):
        e.meet()
    made: list[Value] = []
    for row, allowed in zip(rows, masks, strict=True):
        type_ = row[-1].type
        condition = leader if allowed is None else f.and_(allowed, leader)
        [old] = f.choose(condition, partial(_as_list, one, row), partial(_as_list, constant, [type_, 0]), "atomic")
        made.append(old if leader.literal else e.calls.shuffle(f, old, first))
    if op.sem in ("acquire", "acq_rel"):
        e.meet()
    return e.held(made, op.result.type)


def _as_list(make: Callable[..., Value], arguments: Sequence[Any]) -> list[Value]:
    return [make(*arguments)]


def _leader(e: Emitter, type_: TensorType) -> tuple[Value, Value]:
    """Whether this lane is the first with its elements, and which one is."""
    f, lanes = e.function, layout_of(type_).vectors("lane")
    spare = sum(1 << bit for bit, vector in enumerate(lanes) if not any(vector))
    if not spare:
        return constant(I1, 1), constant(I32, 0)
    lane = e.calls.lane(f)
    return f.icmp("eq", f.and_(lane, spare), 0), f.and_(lane, ~spare)


RULES: Rules = {
    tt.AtomicRMW: _update,
    tt.AtomicCAS: _swap,
}
