"""`ttg.local_gather`: elements of shared memory chosen by index; `tt.gather`: through memory that only this warp uses.

Level: intrinsic -> llvm. For `tt.gather` the source is written row-major into the warp's part of shared memory. Each
register of the result reads its own element. Guarantees: lanes of one warp wait for each other, warps do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from mltriton.dialects import tt, ttg
from mltriton.ir.types import TensorType, byte_width
from mltriton.targets.llvm.emit.booleans import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import I32, Value, constant, vector
from mltriton.targets.simt import accesses
from mltriton.targets.simt.context import Emitter, Rules, coordinates
from mltriton.targets.simt.lanes import Emitted, element_name, layout_of
from mltriton.targets.simt.shared import offset_of, touch


def _gather(e: Emitter, op: tt.Gather) -> Emitted:
    f, source = e.function, cast(TensorType, op.source.type)
    unit = vector(f"i{8 * byte_width(source.element)}", 1)
    strides = [prod(source.shape[dim + 1 :]) for dim in range(source.rank)]
    start = _own_memory(e, op)

    def address(at: tuple[Value, ...]) -> Value:
        return e.affine.address(start, offset_of(e.affine, at, strides), unit)

    there = [address(at) for at in _coordinates(e, source)]
    e.calls.barrier(f, of_warp=True)
    accesses.store(e, there, None, [to_memory(e, register) for register in e.registers(op.source)])
    e.calls.barrier(f, of_warp=True)
    return _chosen(e, op, start, strides)


def _local_gather(e: Emitter, op: ttg.LocalGather) -> Emitted:
    block = e.shared(op.memory)
    touch(e, op.memory, writes=False)
    return _chosen(e, op, block.pointer, block.strides)


def _chosen(e: Emitter, op: tt.Gather | ttg.LocalGather, start: Value, strides: Sequence[int]) -> Emitted:
    """The elements that the indices say of a block in shared memory."""
    f, type_ = e.function, cast(TensorType, op.result.type)
    element, unit = vector(element_name(type_.element), 1), vector(f"i{8 * byte_width(type_.element)}", 1)
    indices = [f.cast("trunc" if i.type.bits > I32.bits else "sext", i, I32) for i in e.registers(op.indices)]
    chosen = [
        (*at[: op.axis], index, *at[op.axis + 1 :]) for at, index in zip(_coordinates(e, type_), indices, strict=True)
    ]
    asked = [e.affine.address(start, offset_of(e.affine, at, strides), unit) for at in chosen]
    loaded = accesses.load(e, in_memory(element), asked, None, [])
    return e.held([from_memory(e, register, element) for register in loaded], type_)


def _coordinates(e: Emitter, type_: TensorType) -> list[tuple[Value, ...]]:
    """Where each register's element is in the block."""
    return list(zip(*(coordinates(e, layout_of(type_), dim) for dim in range(type_.rank)), strict=True))


def _own_memory(e: Emitter, op: tt.Gather) -> Value:
    """The start of this warp's part."""
    start = e.shared_starts[op]
    if e.warps == 1:
        return start
    offset = e.function.mul(e.calls.warp(e.function), constant(I32, e.own_bytes))
    return e.affine.address(start, offset, vector("i8", 1))


RULES: Rules = {tt.Gather: _gather, ttg.LocalGather: _local_gather}
