"""Accesses to memory with an address for each lane: one lane after the other. Level: `llvm`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I64, PTR, Type, Value, constant, poison, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.emulation.simd.call import Call, Write
from mltriton.targets.xe.emulation.simd.warp_position import shared_memory
from mltriton.targets.xe.llvm.simd.intrinsics import ATOMICS, DATA_SIZES, VECTOR_SIZES

_DISPLACED, _SIZE, _COUNT, _ADDRESSES = 5, 6, 7, 10  # numbers of parameters


class _Shape(NamedTuple):
    """So many `elements` of type `element` for each of so many lanes."""

    lanes: int
    element: Type
    elements: int


def _shape(call: Call) -> _Shape:
    size = next(size for size, code in DATA_SIZES.items() if code == call.constant(_SIZE))
    count = next(count for count, code in VECTOR_SIZES.items() if code == call.constant(_COUNT))
    return _Shape(call.types[_ADDRESSES].lanes, vector(f"i{8 * size}", 1), count)


def _address(f: Function, call: Call, lane: int) -> Value:
    """Where a lane's first element is."""
    address = f.extract(f.parameters[_ADDRESSES], lane)
    if address.type.bits == 32:
        address = f.add(f.cast("zext", address, I64), shared_memory(f))
    return f.cast("inttoptr", f.add(address, call.constant(_DISPLACED)), PTR)


def _load(f: Function, call: Call) -> Value:
    shape, made = _shape(call), constant(call.result, 0)
    for lane in range(shape.lanes):

        def loaded(lane: int = lane, before: Value = made) -> Sequence[Value]:
            pointer, result = _address(f, call, lane), before
            for number in range(shape.elements):
                found = f.load(shape.element, f.gep(pointer, number, shape.element), 1)
                result = f.insert(result, f.cast("zext", found, result.type.scalar), number * shape.lanes + lane)
            return [result]

        [made] = f.choose(f.extract(f.parameters[0], lane), loaded, lambda before=made: [before], "load")
    return made


def _store(f: Function, call: Call) -> None:
    shape, data = _shape(call), f.parameters[_ADDRESSES + 1]
    for lane in range(shape.lanes):
        with f.when(f.extract(f.parameters[0], lane), "store"):
            pointer = _address(f, call, lane)
            for number in range(shape.elements):
                value = f.extract(data, number * shape.lanes + lane)
                value = f.bitcast(value, vector(f"i{value.type.bits}", 1))
                f.store(f.cast("trunc", value, shape.element), f.gep(pointer, number, shape.element), 1)


def _update(f: Function, call: Call) -> Value:
    """Each lane's update in turn, as one operation."""
    [operation] = [name for name, code in ATOMICS.items() if code == call.constant(1)]
    shape, made = _shape(call), poison(call.result)
    for lane in range(shape.lanes):
        operands = [f.extract(source, lane) for source in f.parameters[_ADDRESSES + 1 : _ADDRESSES + 3]]
        update = _updated(f, call, operation, (lane, shape.element), operands, made)
        [made] = f.choose(f.extract(f.parameters[0], lane), update, lambda before=made: [before], "atomic")
    return made


def _updated(
    f: Function, call: Call, operation: str, at: tuple[int, Type], operands: Sequence[Value], before: Value
) -> Callable[[], Sequence[Value]]:
    def build() -> Sequence[Value]:
        lane, element = at
        pointer, held = _address(f, call, lane), operands[0].type
        value, new = (f.cast("trunc", each, element) if each.type.bits > element.bits else each for each in operands)
        order = f"seq_cst, align {element.bytes}"
        if operation == "cmpxchg":
            pair = f.fresh()
            f.line(f"{pair} = cmpxchg {pointer}, {value}, {new} seq_cst {order}")
            old = f.emit(f"extractvalue {{ {value.type}, i1 }} {pair}, 0", value.type)
        else:
            old = f.emit(f"atomicrmw {operation} {pointer}, {value} {order}", value.type)
        return [f.insert(before, f.cast("zext", old, held), lane)]

    return build


WRITERS: dict[str, Write] = {
    "llvm.genx.lsc.load.s": _load,
    "llvm.genx.lsc.store.s": _store,
    "llvm.genx.lsc.xatomic.": _update,
}
