"""copy-blocks: blocks of tensors that the launch describes are copied through shared memory by an engine.

Level: ttg, after `pipeline-loads`. Takes any program and changes it in place: a `tt.descriptor_load` or
`tt.descriptor_store` (`tt.descriptor_reduce`) through a `ttng.tensor_map` becomes a copy to or from a block in shared
memory, with a barrier that says when it has come, and a load or store of that block, which is written transposed where
a transpose is stored. Guarantees: no such access is left; a block in shared memory is written only after the engine and
all warps are done with it, and one in global memory only after an earlier copy that may meet it
(`analysis/store_order.py`), and after what lanes have loaded of it.
"""

from __future__ import annotations

from typing import cast

from mltriton.analysis.aliasing import may_alias
from mltriton.analysis.store_order import stores_that_wait
from mltriton.dialects import arith, gpu, scf, tt, ttg, ttng
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I64, MemDescType, TensorType, byte_width
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of

Load = tt.Load | tt.DescriptorLoad

_BARRIER_BYTES = 64  # with what aligns the next block


class CopyBlocks(Pass):
    """Copy what a descriptor of the launch describes."""

    name = "copy-blocks"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        functions = [op for op in module.body.block.ops if isinstance(op, tt.Func)]
        for function in functions if spec.tensor_copies is not None else ():
            waiting, after_loads = stores_that_wait(function), _stores_after_loads(function)
            for op in list(function.walk()):
                if isinstance(op, tt.DescriptorLoad) and is_described(op):
                    _load(op, spec)
                elif isinstance(op, tt.DescriptorStore) and is_described(op):
                    _store(op, spec, waits=op in waiting, after_loads=op in after_loads)
        return module


def is_described(op: tt.DescriptorLoad | tt.DescriptorStore) -> bool:
    """Whether the launch makes the descriptor of an access."""
    return isinstance(op.desc.defining_op, ttng.TensorMap)


def _load(op: tt.DescriptorLoad, spec: TargetSpec) -> None:
    builder = Builder().before(op)
    there = builder.emit(ttg.LocalAlloc, None, result_types=[copied_type(op, spec)])
    barriers = make_barriers(builder, 1)
    zero = arith.integer(builder, 0)
    barrier = window_at(builder, barriers, zero)
    builder.create(ttng.BarrierExpect, barrier, None, size=block_bytes(op))
    builder.create(ttng.AsyncTMACopyGlobalToLocal, op.desc, op.indices, there, barrier, None)
    builder.create(ttng.WaitBarrier, barrier, zero)
    end_barriers(builder, barriers, 1)
    read_from(op, there)


def _stores_after_loads(function: tt.Func) -> set[Operation]:
    """The stores to memory that lanes may have loaded."""
    loads = [op for op in function.walk() if isinstance(op, Load) and not _is_copied(op)]
    stores = [op for op in function.walk() if isinstance(op, tt.DescriptorStore) and is_described(op)]
    return {store for store in stores if any(may_alias(load, store) for load in loads)}


def _is_copied(load: Load) -> bool:
    return isinstance(load, tt.DescriptorLoad) and is_described(load)


def _store(op: tt.DescriptorStore, spec: TargetSpec, *, waits: bool, after_loads: bool) -> None:
    builder = Builder().before(op)
    block = cast(TensorType, op.value.type)
    if waits:
        builder.create(ttng.AsyncTMAStoreWait, written=True)
    here = builder.emit(ttg.LocalAlloc, None, result_types=[_copied(block, spec)])
    value, there = op.value, here
    if isinstance(turned := _maker(value), tt.Trans) and tuple(turned.order) == (1, 0):
        value, there = turned.source, builder.emit(ttg.MemDescTrans, here)
    builder.create(ttg.LocalStore, value, there)
    builder.create(ttng.FenceAsyncShared, everywhere=after_loads)
    builder.create(gpu.Barrier)
    if isinstance(op, tt.DescriptorReduce):
        builder.create(ttng.AsyncTMAReduce, op.desc, op.indices, here, None, kind=op.kind)
    else:
        builder.create(ttng.AsyncTMACopyLocalToGlobal, op.desc, op.indices, here, None)
    builder.create(ttng.AsyncTMAStoreWait)
    op.erase()


def _maker(value: Value) -> Operation | None:
    """What gives a block, in whatever layout."""
    op = value.defining_op
    while isinstance(op, ttg.ConvertLayout):
        op = op.source.defining_op
    return op


# What pipelines use as well.


def block_bytes(load: Load) -> int:
    """The size of the block that is loaded."""
    return cast(TensorType, load.result.type).bytes


def bytes_beside(function: tt.Func) -> int:
    """Shared memory that a function needs for all of its time, but for what loops copy ahead."""
    total = 0
    for op in function.walk():
        if isinstance(op, tt.DescriptorLoad) and is_described(op):
            total += _BARRIER_BYTES
            total += 0 if isinstance(op.parent_op, scf.For) else block_bytes(op)
    return total


def copied_type(load: tt.DescriptorLoad, spec: TargetSpec, count: int | None = None) -> MemDescType:
    """The block in shared memory that a load is copied to, or so many of them."""
    return _copied(cast(TensorType, load.result.type), spec, () if count is None else (count,))


def _copied(block: TensorType, spec: TargetSpec, outer: tuple[int, ...] = ()) -> MemDescType:
    assert spec.tensor_copies is not None
    layout = spec.tensor_copies.layout(block.shape, byte_width(block.element))
    return MemDescType((*outer, *block.shape), block.element, layout)


def make_barriers(builder: Builder, count: int) -> Value:
    """Barriers of one arrival each, that all warps may wait for."""
    barriers = builder.emit(ttg.LocalAlloc, None, result_types=[MemDescType((count, 1), I64)])
    for number in range(count):
        builder.create(ttng.InitBarrier, window_at(builder, barriers, arith.integer(builder, number)), count=1)
    builder.create(ttng.FenceAsyncShared)  # What was in the memory before may have been written by lanes.
    builder.create(gpu.Barrier)
    return barriers


def end_barriers(builder: Builder, barriers: Value, count: int) -> None:
    """No warp waits for them any more."""
    builder.create(gpu.Barrier)
    for number in range(count):
        builder.create(ttng.InvalBarrier, window_at(builder, barriers, arith.integer(builder, number)))


def window_at(builder: Builder, buffers: Value, number: Value) -> Value:
    """One of several blocks."""
    whole = cast(MemDescType, buffers.type)
    window = MemDescType(whole.shape[1:], whole.element, whole.encoding, whole.mutable)
    zero = arith.integer(builder, 0)
    return builder.emit(ttg.MemDescSubview, buffers, [number, *[zero] * len(window.shape)], result_types=[window])


def read_from(load: tt.Load | tt.DescriptorLoad, memory: Value) -> None:
    """Read shared memory in place of a load: each user gets the block as it wants it, in its own encoding, turned, or
    where it is.
    """
    _read(load, load.result, memory)
    if load.result.users:
        _replace(load, memory, load.result.hint)
    else:
        load.erase()


def _read(load: Load, loaded: Value, memory: Value) -> None:
    name = load.result.hint
    for user in list(loaded.users):
        if isinstance(user, ttg.ConvertLayout):
            _replace(user, memory, name, None if user.block is load.block else load)
        elif isinstance(user, ttg.LocalAlloc):
            _stand_for(user, memory)
        elif isinstance(user, tt.Trans) and tuple(user.order) == (1, 0):
            turned = Builder().before(load).emit(ttg.MemDescTrans, memory)
            _read(load, user.result, turned)
            if user.result.users:
                _replace(user, turned, name)
            else:
                user.erase()


def _stand_for(allocation: ttg.LocalAlloc, memory: Value) -> None:
    """Dots that read either order take `memory` as it lies; so do views, which lie as what they are views of."""
    for view in list(allocation.result.users):
        if isinstance(view, ttg.MemDescTrans):
            view.replace_by([Builder().before(view).emit(ttg.MemDescTrans, memory)])
    allocation.replace_by([memory])


def _replace(op: Load | ttg.ConvertLayout | tt.Trans, memory: Value, name: str | None, at: Load | None = None) -> None:
    """Load from shared memory in place of an operation; `at`: once, not where it is."""
    loaded = Builder().before(at or op).emit(ttg.LocalLoad, memory, result_types=[op.result.type])
    loaded.hint = name
    op.replace_by([loaded])
