"""The part of `ttng` that is about copies: tensor maps, copies of blocks by an engine, barriers in shared memory.

Level: ttg to intrinsic. `engine.py` says what a wrong order of these is.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from mltriton.dialects import ttng
from mltriton.executor.blocks import TensorView
from mltriton.executor.code import BLOCKED, Handler, Stop, Table
from mltriton.executor.dialects.tt_memory import load_block, store_block, updates_of
from mltriton.executor.dialects.ttg import access
from mltriton.executor.engine import Barrier
from mltriton.executor.faults import InvalidOperation, NoTensorMap
from mltriton.executor.machine import Warp
from mltriton.executor.shared import SharedView
from mltriton.executor.values import Array
from mltriton.ir.types import TensorDescType, TensorType, byte_width

_WHOLE = 16  # bytes that the engine writes at a time


def tensor_map(op: ttng.TensorMap) -> Handler:
    """A descriptor."""
    rank = len(op.shape)
    positive = 2 * rank + len(op.positive)

    def call(warp: Warp, base: Array, *numbers: Array) -> TensorView:
        shape, strides = (tuple(map(int, numbers[i * rank : (i + 1) * rank])) for i in range(2))
        if any(number <= 0 for number in (*shape, *numbers[2 * rank : positive])):
            raise NoTensorMap("a tensor map of numbers that are not positive, which no launch makes")
        if base in numbers[positive:]:
            raise NoTensorMap("a tensor map of an array that is also another parameter's, which no launch makes")
        return TensorView(int(base), shape, strides, (0,) * rank)

    return call


def _address(view: SharedView) -> int:
    return view.bits.ctypes.data


def init_barrier(op: ttng.InitBarrier) -> Handler:
    """A barrier in its first phase."""
    count = op.count

    def call(warp: Warp, view: SharedView) -> None:
        warp.instance.shared.engine.barriers[_address(view)] = Barrier(count, count)

    return call


def inval_barrier(op: ttng.InvalBarrier) -> Handler:
    """No barrier any more."""

    def call(warp: Warp, view: SharedView) -> None:
        warp.instance.shared.engine.barrier(_address(view))
        del warp.instance.shared.engine.barriers[_address(view)]

    return call


def barrier_expect(op: ttng.BarrierExpect) -> Handler:
    """So many bytes more, and an arrival."""
    size = op.size

    def call(warp: Warp, view: SharedView, pred: Array = _ALWAYS) -> None:
        if pred:
            engine = warp.instance.shared.engine
            barrier = engine.barrier(_address(view))
            barrier.bytes += size
            barrier.arrive(1, engine.clocks.tell(warp.id))

    return call


def arrive_barrier(op: ttng.ArriveBarrier) -> Handler:
    """So many arrivals."""
    count = op.count

    def call(warp: Warp, view: SharedView, pred: Array = _ALWAYS) -> None:
        if pred:
            engine = warp.instance.shared.engine
            engine.barrier(_address(view)).arrive(count, engine.clocks.tell(warp.id))

    return call


def wait_barrier(op: ttng.WaitBarrier) -> Handler:
    """Stop until the phase is over; what came in it has arrived for this warp."""

    def call(warp: Warp, view: SharedView, parity: Array) -> Stop | None:
        engine, epoch = warp.instance.shared.engine, warp.instance.epoch
        found = engine.barriers.get(_address(view))
        if found is None:
            raise InvalidOperation("a barrier that nobody has initialised")
        if not found.has_ended(int(parity)):
            return BLOCKED
        engine.events += 1
        for told in found.told.get(int(parity) & 1, ()):
            engine.clocks.learn(warp.id, told)
        for transfer in found.ended.get(int(parity) & 1, ()):
            if not transfer.arrived:
                transfer.complete()
                transfer.arrived = True
            transfer.seen[warp.id] = epoch
        return None

    return call


def copy_in(op: ttng.AsyncTMACopyGlobalToLocal) -> Handler:
    """Read now; it arrives with its barrier's phase."""
    block, rank = cast(TensorDescType, op.desc.type).block, len(op.indices)

    def call(warp: Warp, view: TensorView, *rest: Array) -> None:
        indices, there, at = rest[:rank], cast(SharedView, rest[rank]), cast(SharedView, rest[rank + 1])
        if not _holds(rest[rank + 2 :]):
            return
        values = load_block(warp, view.moved(indices), block.shape, block.element, tuple(range(rank)), None)
        transfer = there.receive(np.asarray(values).reshape(there.bits.shape), access(warp, op))
        barrier = warp.instance.shared.engine.barrier(_address(at))
        barrier.transfers.append(transfer)
        barrier.bytes -= there.bits.nbytes
        if barrier.bytes < 0:
            raise InvalidOperation("more bytes come to a barrier than it expects")
        barrier.settle()

    return call


def copy_out(op: ttng.AsyncTMACopyLocalToGlobal) -> Handler:
    """Write, or combine, now; shared memory is free, and global memory may be accessed, when that is waited for."""
    block, rank = cast(TensorDescType, op.desc.type).block, len(op.indices)
    kind, dimensions = op.kind if isinstance(op, ttng.AsyncTMAReduce) else None, tuple(range(rank))
    update = None if kind is None else updates_of(block, kind)

    def call(warp: Warp, view: TensorView, *rest: Array) -> None:
        _check_row_end(view, block)
        there, here = view.moved(rest[:rank]), cast(SharedView, rest[rank])
        if not _holds(rest[rank + 1 :]):
            return
        values = here.send(access(warp, op)).reshape(block.shape)
        places, inside = there.addresses(block.shape, byte_width(block.element)), there.inside(block.shape, dimensions)
        with warp.memory.flights.start(warp.id, places, inside, kind):
            if update is not None:
                update(warp, there, values)
            else:
                store_block(warp, there, values, block.element, dimensions)

    return call


def _check_row_end(view: TensorView, block: TensorType) -> None:
    if view.shape[-1] * byte_width(block.element) % _WHOLE:
        raise NoTensorMap("a tensor map to store through whose rows end inside of 16 bytes, which no launch makes")


def store_wait(op: ttng.AsyncTMAStoreWait) -> Handler:
    """All copies to global memory have read what they copy, where none may be left, or written it."""
    most_left, written = op.pendings, op.written

    def call(warp: Warp) -> None:
        if most_left == 0:
            warp.instance.shared.sent(warp.id)
        if written:
            warp.memory.flights.wait(warp.id, most_left)

    return call


def _holds(rest: tuple[Array, ...]) -> bool:
    """Whether there is no predicate, or it is true."""
    return not rest or bool(rest[0])


_ALWAYS: Array = np.bool_(True)


def grid_size(op: ttng.GridSize) -> Handler:
    """All programs that are asked for run here."""

    def call(warp: Warp) -> np.int32:
        return np.int32(warp.instance.grid[0])

    return call


TABLE: Table = {
    ttng.TensorMap: tensor_map,
    ttng.GridSize: grid_size,
    ttng.InitBarrier: init_barrier,
    ttng.InvalBarrier: inval_barrier,
    ttng.BarrierExpect: barrier_expect,
    ttng.ArriveBarrier: arrive_barrier,
    ttng.WaitBarrier: wait_barrier,
    ttng.AsyncTMACopyGlobalToLocal: copy_in,
    ttng.AsyncTMACopyLocalToGlobal: copy_out,
    ttng.AsyncTMAReduce: copy_out,
    ttng.AsyncTMAStoreWait: store_wait,
}
