"""Atomic updates of a SIMD kernel: one message for a register of all lanes.

Level: intrinsic -> llvm. Guarantees: of lanes and registers that hold the same element one alone updates memory, and
all are given what it got; masked-off elements touch nothing and give 0. Sums and extrema of floats but f32 go through a
loop in which the lanes compare and swap until each has been first once; elements of less than 16 bits raise
`BackendError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mltriton.dialects import tt
from mltriton.errors import BackendError
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import F32, FloatType, TensorType, bit_width, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit.atomics import FLOAT_NAMES, NAMES
from mltriton.targets.llvm.types import I1, I16, I32, Type, Value, constant, integers
from mltriton.targets.simt.atomics import combined
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.lanes import Emitted, layout_of
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.intrinsics import ATOMICS, LANES, atomic, every, fence, gather
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
    if name not in ATOMICS or bit_width(element) < I16.bits:
        raise BackendError(f"an atomic {name} of {element} has no lowering", expected="elements of 16, 32 or 64 bits")
    if order != "relaxed":
        fence(e.function, of_shared=False)
    leaders, first = _leaders(operands[0].type)
    rows = zip(*(e.vector_of(operand) for operand in operands), strict=True)
    masks = None if mask is None else e.vector_of(mask)
    one = partial(_one, e, name, element, leaders, first)
    made = [one(row, None if masks is None else masks[number]) for number, row in enumerate(rows)]
    if order != "relaxed":
        fence(e.function, of_shared=False)
    return e.held(made, result)


def _one(
    e: WarpEmitter,
    name: str,
    element: IRType,
    leaders: Value,
    first: Sequence[int],
    row: Sequence[Value],
    mask: Value | None,
) -> Value:
    f, (addresses, *sources) = e.function, row
    allowed = leaders if mask is None else f.and_(mask, leaders)
    held = sources[0].type
    if name.startswith("f") and element is not F32:
        old = _by_swapping(e, name, element, addresses, sources[0], allowed)
    elif name.startswith("f"):
        old = atomic(f, addresses, allowed, ATOMICS[name], sources, held.bits // 8)
    else:
        words = [_word(e, source) for source in sources]
        old = atomic(f, addresses, allowed, ATOMICS[name], words, held.bits // 8)
    old = f.select(allowed, old, constant(old.type, 0))
    return pick(f, _element(e, old, held), first)


def _word(e: WarpEmitter, value: Value) -> Value:
    """Elements as messages have them: integers of at least 32 bits."""
    bits = e.bits_as(value, value.type.with_element(f"i{value.type.bits}"))
    return e.function.cast("zext", bits, bits.type.with_element(f"i{max(I32.bits, bits.type.bits)}"))


def _element(e: WarpEmitter, word: Value, held: Type) -> Value:
    """The opposite."""
    if word.type.bits > held.bits:
        word = e.function.cast("trunc", word, word.type.with_element(f"i{held.bits}"))
    return e.bits_as(word, held)


def _by_swapping(e: WarpEmitter, name: str, element: IRType, addresses: Value, value: Value, allowed: Value) -> Value:
    """Combine floats in memory with `value`: compute, try to swap, and begin again in the lanes that came too late."""
    f, held, size = e.function, value.type, value.type.bits // 8
    operand = e.widen(value, element)
    done = f.xor(allowed, constant(allowed.type, 1))
    with f.repeat([gather(f, addresses, allowed, size, 1), done], "swap") as loop:
        seen, done = loop.carried
        loop.leave_unless(f.xor(every(f, done), constant(I1, 1)))
        new = combined(e, name, _element(e, seen, held), operand, element)
        trying = f.xor(done, constant(done.type, 1))
        found = atomic(f, addresses, trying, ATOMICS["cmpxchg"], [seen, _word(e, new)], size)
        found = f.select(trying, f.and_(found, (1 << held.bits) - 1), seen)
        loop.yield_(found, f.icmp("eq", found, seen))
    return seen


def _leaders(type_: IRType) -> tuple[Value, list[int]]:
    """Which lanes are the first with their elements, and for each lane which one that is."""
    lanes = layout_of(type_).vectors("lane") if isinstance(type_, TensorType) else ((0,),) * (LANES.bit_length() - 1)
    spare = sum(1 << bit for bit, vector in enumerate(lanes) if not any(vector))
    first = [lane & ~spare for lane in range(LANES)]
    if not spare:
        return constant(I1.with_lanes(LANES), 1), first
    return integers("i1", [int(lane == leader) for lane, leader in enumerate(first)]), first


RULES: Rules = {tt.AtomicRMW: _update, tt.AtomicCAS: _swap}  # type: ignore[dict-item]
