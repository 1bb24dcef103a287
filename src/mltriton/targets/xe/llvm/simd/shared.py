"""Blocks in shared memory (SLM) and barriers, in a warp's vector program.

Level: intrinsic -> llvm. Addresses in shared memory are numbers of bytes from its start, of 32 bits.
"""

from __future__ import annotations

from math import prod
from typing import cast

from mltriton.dialects import gpu, ttg, ttig
from mltriton.dialects.builtin import Module as IRModule
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import MemDescType, TensorType, byte_width
from mltriton.targets.llvm.emit.memory import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import I32, Value, constant, vector
from mltriton.targets.xe.llvm.emit import shared
from mltriton.targets.xe.llvm.emit.context import Emitted, Rules, SharedBlock
from mltriton.targets.xe.llvm.emit.shared import allocations
from mltriton.targets.xe.llvm.simd import accesses, intrinsics
from mltriton.targets.xe.llvm.simd.blocks import at_places
from mltriton.targets.xe.llvm.simd.context import WarpEmitter, held_element
from mltriton.targets.xe.llvm.simd.intrinsics import LANES


def place_allocations(e: WarpEmitter, module: IRModule) -> None:
    """Say where each allocation starts."""
    places, _ = allocations(module)
    e.shared_places.update({op: constant(I32, place) for op, place in places.items()})


def _allocate(e: WarpEmitter, op: ttg.LocalAlloc) -> Emitted:
    shape = cast(MemDescType, op.result.type).shape
    block = SharedBlock(e.shared_places[op], [prod(shape[dim + 1 :]) for dim in range(len(shape))])
    if op.init is not None:
        _write(e, op.init, block)
    return block


def _load(e: WarpEmitter, op: ttg.LocalLoad) -> Emitted:
    type_ = cast(TensorType, op.result.type)
    element = held_element(type_.element).with_lanes(LANES)
    loaded = accesses.load(e, in_memory(element).scalar, _addresses(e, type_, e.shared(op.memory)), None, [])
    return e.held([from_memory(e, register, element) for register in loaded], type_)


def _store(e: WarpEmitter, op: ttg.LocalStore) -> None:
    _write(e, op.value, e.shared(op.memory))


def _write(e: WarpEmitter, value: IRValue, block: SharedBlock) -> None:
    pointers = _addresses(e, cast(TensorType, value.type), block)
    accesses.store(e, pointers, None, [to_memory(e, register) for register in e.registers(value)])


def _addresses(e: WarpEmitter, type_: TensorType, block: SharedBlock) -> list[Value]:
    element = vector(f"i{8 * byte_width(type_.element)}", 1)
    return at_places(e, type_, block.pointer, [constant(I32, stride) for stride in block.strides], element)


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
