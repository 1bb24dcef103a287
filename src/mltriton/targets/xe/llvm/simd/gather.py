"""`ttg.local_gather` and `tt.gather` in a SIMD kernel: elements of shared memory chosen by index, and through
shared memory that only this warp uses.

Level: intrinsic -> llvm. The warp's accesses to one address keep their order, so that nobody waits.
"""

from __future__ import annotations

from math import prod
from typing import cast

from mltriton.dialects import tt, ttg
from mltriton.ir.types import TensorType, byte_width
from mltriton.targets.llvm.emit.booleans import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import I32, Type, Value, constant, vector
from mltriton.targets.simt.context import Rules, coordinates
from mltriton.targets.simt.lanes import Emitted, layout_of
from mltriton.targets.xe.llvm.simd import accesses, intrinsics
from mltriton.targets.xe.llvm.simd.blocks import element_addresses
from mltriton.targets.xe.llvm.simd.context import WarpEmitter, held_element
from mltriton.targets.xe.llvm.simd.intrinsics import LANES


def _gather(e: WarpEmitter, op: tt.Gather) -> Emitted:
    f, source = e.function, cast(TensorType, op.source.type)
    unit = vector(f"i{8 * byte_width(source.element)}", 1)
    strides = [constant(I32, prod(source.shape[dim + 1 :])) for dim in range(source.rank)]
    start = e.shared_starts[op]
    if e.warps > 1:
        start = e.affine.add(start, f.mul(intrinsics.warp(f), e.own_bytes))
    there = element_addresses(e, source, start, strides, unit)
    accesses.store(e, there, None, [to_memory(e, register) for register in e.registers(op.source)])
    return _chosen(e, op, start, strides)


def _local_gather(e: WarpEmitter, op: ttg.LocalGather) -> Emitted:
    block = e.shared(op.memory)
    return _chosen(e, op, block.pointer, [constant(I32, stride) for stride in block.strides])


def _chosen(e: WarpEmitter, op: tt.Gather | ttg.LocalGather, start: Value, strides: list[Value]) -> Emitted:
    """The elements that the indices say of a block in shared memory."""
    type_ = cast(TensorType, op.result.type)
    element = held_element(type_.element).with_lanes(LANES)
    unit = vector(f"i{8 * byte_width(type_.element)}", 1)
    asked = [_address(e, start, at, strides, unit) for at in _coordinates(e, op)]
    loaded = accesses.load(e, in_memory(element).scalar, asked, None, [])
    return e.held([from_memory(e, register, element) for register in loaded], type_)


def _coordinates(e: WarpEmitter, op: tt.Gather | ttg.LocalGather) -> list[list[Value]]:
    """Where each register's elements come from."""
    indices = cast(TensorType, op.indices.type)
    along = [coordinates(e, layout_of(indices), dim) for dim in range(indices.rank)]
    along[op.axis] = [
        e.function.cast("trunc" if index.type.bits > I32.bits else "sext", index, I32.with_lanes(LANES))
        for index in e.registers(op.indices)
    ]
    return [list(at) for at in zip(*along, strict=True)]


def _address(e: WarpEmitter, start: Value, at: list[Value], strides: list[Value], unit: Type) -> Value:
    address = e.affine.spread(start, LANES)
    for index, stride in zip(at, strides, strict=True):
        address = e.affine.add(address, e.affine.mul(index, constant(I32, int(stride.literal or 0) * unit.bytes)))
    return address


RULES: Rules = {tt.Gather: _gather, ttg.LocalGather: _local_gather}  # type: ignore[dict-item]
