"""Blocks in shared memory (SLM) and barriers, in a SIMD kernel.

Level: intrinsic -> llvm. Addresses in shared memory are numbers of bytes from its start, of 32 bits. Registers whose
lanes lie side by side there are moved in rows of up to 64 words, which take one address and no vector of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

from mltriton.dialects import gpu, ttg, ttig
from mltriton.ir.module import Module as IRModule
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import MemDescType, TensorType, byte_width
from mltriton.records import NamedTuple
from mltriton.targets.llvm.emit.booleans import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import I32, Type, Value, constant, vector
from mltriton.targets.simt import shared
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.lanes import Emitted, SharedBlock, layout_of
from mltriton.targets.simt.shared import allocations
from mltriton.targets.xe.llvm.simd import accesses, intrinsics
from mltriton.targets.xe.llvm.simd.blocks import element_addresses
from mltriton.targets.xe.llvm.simd.context import WarpEmitter, held_element
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, joined, load_row, read, store_row

_MOST_WORDS = 64  # of a row that one message moves


def place_allocations(e: WarpEmitter, module: IRModule) -> None:
    """Say where each allocation starts."""
    offsets, _, e.own_bytes = allocations(module)
    e.shared_starts.update({op: constant(I32, offset) for op, offset in offsets.items()})


def _allocate(e: WarpEmitter, op: ttg.LocalAlloc) -> Emitted:
    shape = cast(MemDescType, op.result.type).shape
    block = SharedBlock(e.shared_starts[op], [prod(shape[dim + 1 :]) for dim in range(len(shape))])
    if op.init is not None:
        _write(e, op.init, block)
    return block


def _load(e: WarpEmitter, op: ttg.LocalLoad) -> Emitted:
    type_, block = cast(TensorType, op.result.type), e.shared(op.memory)
    element = held_element(type_.element).with_lanes(LANES)
    rows = _rows(e, type_, block)
    loaded = (
        accesses.load(e, in_memory(element).scalar, _addresses(e, type_, block), None, [])
        if rows is None
        else _load_rows(e, in_memory(element), rows)
    )
    return e.held([from_memory(e, register, element) for register in loaded], type_)


def _store(e: WarpEmitter, op: ttg.LocalStore) -> None:
    _write(e, op.value, e.shared(op.memory))


def _write(e: WarpEmitter, value: IRValue, block: SharedBlock) -> None:
    type_ = cast(TensorType, value.type)
    values, rows = [to_memory(e, register) for register in e.registers(value)], _rows(e, type_, block)
    if rows is None:
        accesses.store(e, _addresses(e, type_, block), None, values)
        return
    for row in rows:
        data = joined(e.function, [values[number] for number in row.registers])
        words = I32.with_lanes(data.type.bytes // I32.bytes)
        store_row(e.function, row.address, row.displaced, e.bits_as(data, words))


class _Row(NamedTuple):
    """Registers that follow each other in memory, `displaced` bytes behind an address."""

    registers: Sequence[int]
    address: Value
    displaced: int


def _rows(e: WarpEmitter, type_: TensorType, block: SharedBlock) -> list[_Row] | None:
    """The registers of a block as rows; None where lanes do not lie side by side, or not at multiples of words."""
    layout, size = layout_of(type_), byte_width(type_.element)

    def distance(at: Sequence[int]) -> int:
        return size * sum(index * stride for index, stride in zip(at, block.strides, strict=True))

    side_by_side = [size << bit for bit in range(LANES.bit_length() - 1)]
    registers = {distance(layout.at(register=n)): n for n in range(layout.count("register"))}
    starts = (e.affine.divisor(block.pointer), *registers)
    if [distance(vector) for vector in layout.vectors("lane")] != side_by_side or any(n % I32.bytes for n in starts):
        return None
    if len(registers) < layout.count("register"):  # Some hold what others do.
        return None
    root, start = e.affine.term(block.pointer)
    address, before = (constant(I32, start), 0) if root is None else (root, start)
    found = _runs(sorted(registers), LANES * size)
    return [_Row([registers[number] for number in run], address, before + run[0]) for run in found]


def _runs(numbers: list[int], step: int) -> Iterator[list[int]]:
    """Cut where bytes do not follow each other, into as many as a message takes: powers of two."""
    while numbers:
        count = max(1, _MOST_WORDS * I32.bytes // step)
        while numbers[:count] != [numbers[0] + step * number for number in range(count)]:
            count //= 2
        yield numbers[:count]
        numbers = numbers[count:]


def _load_rows(e: WarpEmitter, element: Type, rows: Sequence[_Row]) -> list[Value]:
    f, loaded = e.function, dict[int, Value]()
    for row in rows:
        count = len(row.registers)
        words = load_row(f, row.address, row.displaced, element.bytes * count // I32.bytes)
        whole = e.bits_as(words, element.with_lanes(LANES * count))
        loaded |= {number: read(f, whole, LANES * index, LANES) for index, number in enumerate(row.registers)}
    return [loaded[number] for number in range(len(loaded))]


def _addresses(e: WarpEmitter, type_: TensorType, block: SharedBlock) -> list[Value]:
    element = vector(f"i{8 * byte_width(type_.element)}", 1)
    return element_addresses(e, type_, block.pointer, [constant(I32, stride) for stride in block.strides], element)


def _barrier(e: WarpEmitter, op: gpu.Barrier) -> None:
    intrinsics.barrier(e.function)


def _arrive(e: WarpEmitter, op: ttig.BarrierArrive) -> None:
    intrinsics.half_barrier(e.function, arrives=True)


def _wait(e: WarpEmitter, op: ttig.BarrierWait) -> None:
    intrinsics.half_barrier(e.function, arrives=False)


RULES: Rules = {  # type: ignore[dict-item]
    **shared.RULES,
    ttg.LocalAlloc: _allocate,
    ttg.LocalLoad: _load,
    ttg.LocalStore: _store,
    gpu.Barrier: _barrier,
    ttig.BarrierArrive: _arrive,
    ttig.BarrierWait: _wait,
}
