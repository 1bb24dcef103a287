"""Regions of vectors: elements of another vector, or elements put into one. Level: `llvm`."""

from __future__ import annotations

from mltriton.targets.llvm.types import I8, I64, Value, poison
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.emulation.simd.call import Call, Write


def _numbers(call: Call, first: int, count: int) -> list[int]:
    """The elements of a region, from its first one: rows, columns and their distances stand from `first` on."""
    row_stride, width, stride = (call.constant(first + part) for part in range(3))
    return [row_stride * (number // width) + stride * (number % width) for number in range(count)]


def _read(f: Function, call: Call) -> Value:
    source, *_ = f.parameters
    elements = _numbers(call, 1, call.result.lanes)
    byte = call.constants[4]
    if byte is not None:
        start = byte // source.type.scalar.bytes
        return f.shuffle(source, poison(source.type), [start + element for element in elements])
    memory = f.alloca(source.type)
    f.store(source, memory, 64)
    start = f.gep(memory, f.cast("zext", f.parameters[4], I64), I8)
    made = poison(call.result)
    for number, element in enumerate(elements):
        made = f.insert(made, f.load(source.type.scalar, f.gep(start, element, source.type.scalar), 1), number)
    return made


def _write(f: Function, call: Call) -> Value:
    whole, part, *_ = f.parameters
    elements = _numbers(call, 2, part.type.lanes)
    byte, lanes = call.constants[5], whole.type.lanes
    if byte is not None:
        start = byte // whole.type.scalar.bytes
        wide = f.shuffle(part, poison(part.type), [n if n < part.type.lanes else -1 for n in range(lanes)])
        taken = {start + element: lanes + number for number, element in enumerate(elements)}
        return f.shuffle(whole, wide, [taken.get(number, number) for number in range(lanes)])
    memory = f.alloca(whole.type)
    f.store(whole, memory, 64)
    start = f.gep(memory, f.cast("zext", f.parameters[5], I64), I8)
    for number, element in enumerate(elements):
        f.store(f.extract(part, number), f.gep(start, element, whole.type.scalar), 1)
    return f.load(whole.type, memory, 64)


def _all(f: Function, call: Call) -> Value:
    return f.intrinsic("llvm.vector.reduce.and", call.result, f.parameters[0])


WRITERS: dict[str, Write] = {"llvm.genx.rdregion": _read, "llvm.genx.wrregion": _write, "llvm.genx.all.": _all}
