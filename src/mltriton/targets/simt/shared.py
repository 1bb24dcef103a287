"""Blocks in shared memory, and barriers.

Level: intrinsic -> llvm. A block is row-major, or as its encoding says (`swizzles.py`); allocations lie after each
other in one array of the workgroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import NamedTuple, cast

from mltriton.dialects import gpu, ttg, ttig
from mltriton.errors import SharedMemoryError
from mltriton.ir.attributes import integer_in
from mltriton.ir.module import Module as IRModule
from mltriton.ir.operation import Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import MemDescType, TensorType, byte_width
from mltriton.layouts.base import SharedEncoding
from mltriton.targets.llvm.emit.booleans import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import I32, Value, constant, vector
from mltriton.targets.llvm.writer import WORKGROUP_ALIGNMENT, Module
from mltriton.targets.registry import num_warps_of
from mltriton.targets.simt import accesses, swizzles
from mltriton.targets.simt.constant_offsets import Affine
from mltriton.targets.simt.context import Emitter, Rules, coordinates
from mltriton.targets.simt.lanes import Emitted, SharedBlock, Swizzle, element_name, layout_of
from mltriton.targets.simt.machine import Machine
from mltriton.targets.simt.swizzles import swizzle_of

MEMORY = "shared$memory"  # as no kernel can be called
_WIDEST = 16  # bytes that a lane accesses at once


class Allocations(NamedTuple):
    """Where each allocation starts, how many bytes there are in all, and how many of them are a warp's own."""

    offsets: dict[Operation, int]
    size: int
    own: int


def allocations(module: IRModule) -> Allocations:
    """As the pass allocate-shared-memory says, or one after the other. Operations with memory of their warp's own share
    what is at the end: all of them the same part, so that a warp finds there nothing but what it wrote itself.
    """
    offsets: dict[Operation, int] = {}
    end, own = 0, {op: size for op in module.walk() if (size := _own_bytes(op))}
    for op in module.walk():
        if isinstance(op, ttg.LocalAlloc):
            offsets[op] = integer_in(op.attributes, ttg.ALLOCATION_OFFSET, end)
            end = max(end, offsets[op] + _rounded(allocated_bytes(op)))
    offsets |= dict.fromkeys(own, end)
    part = _rounded(max(own.values(), default=0), _WIDEST)
    return Allocations(offsets, end + _rounded(num_warps_of(module) * part), part)


def allocated_bytes(op: ttg.LocalAlloc) -> int:
    """The memory that a block needs."""
    block = cast(MemDescType, op.result.type)
    return prod(block.shape) * byte_width(block.element)


def _own_bytes(op: Operation) -> int:
    """The shared memory of its own that a warp needs for blocks of which an operation reads elements by index."""
    types = (op.operands[number].type for number in (op.encodings.free if op.encodings else ()))
    return sum(type_.bytes for type_ in types if isinstance(type_, TensorType))


def _rounded(size: int, step: int = WORKGROUP_ALIGNMENT) -> int:
    return -(-size // step) * step


def place_allocations(e: Emitter, target: Module, module: IRModule) -> int:
    """Reserve the shared memory of a module; gives its size in bytes. Raises `SharedMemoryError`."""
    offsets, size, e.own_bytes = allocations(module)
    if size > e.machine.shared_bytes:
        raise _too_much(offsets, size, e.machine)
    if size:
        start = e.machine.shared_memory(target, MEMORY, size)
        e.affine.promise(start, WORKGROUP_ALIGNMENT)
        e.shared_starts.update({op: e.affine.displaced(start, offset) for op, offset in offsets.items()})
    return size


def _too_much(offsets: dict[Operation, int], size: int, machine: Machine) -> SharedMemoryError:
    """The error for blocks that do not fit, at the line of the largest one."""
    sizes = {
        op: allocated_bytes(op) if isinstance(op, ttg.LocalAlloc) else size - offset for op, offset in offsets.items()
    }
    lines = Counter(
        f"  {sizes[op]:>8} bytes at line {op.loc.in_source.line if op.loc.in_source else '?'}" for op in offsets
    )
    counted = [line if count == 1 else f"{line} ({count} times)" for line, count in lines.items()]
    advice = "Warps exchange elements through it: take smaller blocks. It holds"
    error = SharedMemoryError(
        f"the kernel needs more shared memory than {machine.name} has",
        expected=f"at most {machine.shared_bytes} bytes",
        found=f"{size} bytes",
        hint="\n".join((advice, *counted)),
    )
    error.missing = size - machine.shared_bytes
    return error.at(max(sizes, key=sizes.__getitem__).loc.in_source)


def _allocate(e: Emitter, op: ttg.LocalAlloc) -> Emitted:
    type_ = cast(MemDescType, op.result.type)
    shape, encoding = type_.shape, type_.encoding
    strides = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    block = SharedBlock(e.shared_starts[op], strides)
    if isinstance(encoding, SharedEncoding):
        swizzle = swizzle_of(encoding, shape)
        block = SharedBlock(block.pointer, strides[: len(shape) - len(swizzle.images)], swizzle)
    if op.init is not None:
        _write(e, op.init, op.result, block)
    return block


def load(e: Emitter, op: ttg.LocalLoad) -> Emitted:
    """A block, lane by lane."""
    type_ = cast(TensorType, op.result.type)
    element = vector(element_name(type_.element), 1)
    pointers = addresses(e, type_, e.shared(op.memory))
    touch(e, op.memory, writes=False)
    loaded = accesses.load(e, in_memory(element), pointers, None, [])
    return e.held([from_memory(e, register, element) for register in loaded], type_)


def store(e: Emitter, op: ttg.LocalStore) -> None:
    """A block, lane by lane."""
    _write(e, op.value, op.memory, e.shared(op.memory))


def _write(e: Emitter, value: IRValue, memory: IRValue, block: SharedBlock) -> None:
    touch(e, memory, writes=True)
    pointers = addresses(e, cast(TensorType, value.type), block)
    accesses.store(e, pointers, None, [to_memory(e, register) for register in e.registers(value)])


def touch(e: Emitter, memory: IRValue, *, writes: bool, under_way: bool = False) -> None:
    """All lanes access a block next: none before others are done with what they did to it."""
    if not e.machine.in_step and e.shared_accesses.must_meet(memory, writes=writes, under_way=under_way):
        e.meet()


def addresses(e: Emitter, type_: TensorType, block: SharedBlock) -> list[Value]:
    """The address of each register of a block of that type."""
    layout, affine = layout_of(type_), e.affine
    element = vector(f"i{8 * byte_width(type_.element)}", 1)
    if block.swizzle is not None:
        return swizzles.addresses(e, block.pointer, block.swizzle, layout, element)
    along = [coordinates(e, layout, dim) for dim in range(type_.rank)]
    return [
        affine.address(block.pointer, offset_of(affine, index, block.strides), element)
        for index in zip(*along, strict=True)
    ]


def offset_of(affine: Affine, at: Sequence[Value], strides: Sequence[int]) -> Value:
    """The row-major number of an element, i32."""
    total = constant(I32, 0)
    for index, stride in zip(at, strides, strict=True):
        total = affine.add(total, affine.mul(index, constant(I32, stride)))
    return total


def _window(e: Emitter, op: ttg.MemDescSubview) -> Emitted:
    block, offsets = e.shared(op.memory), [e.get(offset) for offset in op.offsets]
    result, outer = cast(MemDescType, op.result.type), len(block.strides)
    offset = offset_of(e.affine, offsets[:outer], block.strides)
    pointer = e.affine.address(block.pointer, offset, vector(f"i{8 * byte_width(result.element)}", 1))
    left = block.strides[len(op.offsets) - len(result.shape) :]
    if block.swizzle is None:
        return SharedBlock(pointer, left)
    moved = tuple(e.affine.add(a, b) for a, b in zip(block.swizzle.offsets, offsets[outer:], strict=True))
    return SharedBlock(pointer, left, block.swizzle._replace(offsets=moved))


def _transposed(e: Emitter, op: ttg.MemDescTrans) -> Emitted:
    block = e.shared(op.memory)
    turned = block.swizzle and Swizzle(block.swizzle.images[::-1], block.swizzle.offsets[::-1])
    return SharedBlock(block.pointer, block.strides[::-1], turned)


def _barrier(e: Emitter, op: gpu.Barrier) -> None:
    e.calls.barrier(e.function)
    e.shared_accesses.forget(met=True)


def _arrive(e: Emitter, op: ttig.BarrierArrive) -> None:
    e.calls.arrive(e.function)


def _wait(e: Emitter, op: ttig.BarrierWait) -> None:
    e.calls.wait(e.function)


RULES: Rules = {
    ttg.LocalAlloc: _allocate,
    ttg.LocalLoad: load,
    ttg.LocalStore: store,
    ttg.MemDescSubview: _window,
    ttg.MemDescTrans: _transposed,
    gpu.Barrier: _barrier,
    ttig.BarrierArrive: _arrive,
    ttig.BarrierWait: _wait,
}
