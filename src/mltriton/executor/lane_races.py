"""Races between the lanes of one warp in global memory: who wrote which element since the last barrier.

Level: warp to intrinsic, on targets whose lanes matter. The lanes that hold an element of a block access it, as its
encoding says. A lane that reads or writes what only others of its warp have written, with no barrier between, races
with them. Reads come before what is written later in the program: the lanes of a warp read together.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mltriton.dialects import tt
from mltriton.executor.values import Array
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType, block_of
from mltriton.layouts.encodings import Encoding
from mltriton.layouts.hardware import warp_layout


def lanes_of(op: Operation, atomic: bool) -> Array | None:
    """For each element of the block that an operation accesses a set of lanes, as bits; None where that is no block.

    Of the lanes that hold an element one does an atomic operation.
    """
    block = _accessed(op)
    if block is None or not isinstance(block.encoding, Encoding):
        return None
    try:
        holders = _holders(block.encoding, block.shape)
    except ValueError:  # Between passes there are blocks whose lanes are not stated yet.
        return None
    return holders & -holders if atomic else holders


def _accessed(op: Operation) -> TensorType | None:
    if isinstance(op, tt.DescriptorLoad):
        return block_of(op.result.type)
    if isinstance(op, tt.DescriptorStore):
        return block_of(op.value.type)
    is_access = isinstance(op, tt.Load | tt.Store | tt.AtomicRMW | tt.AtomicCAS)
    return block_of(op.ptr.type) if is_access else None


@cache
def _holders(encoding: Encoding, shape: tuple[int, ...]) -> Array:
    places = warp_layout(encoding, shape).table()
    bits: Array = np.array([1 << lane for lane in range(places.shape[1])], np.int64)
    lanes: Array = np.broadcast_to(bits, places.shape[:2])
    holders: Array = np.zeros(shape, np.int64)
    np.bitwise_or.at(holders, tuple(np.moveaxis(places, -1, 0)), lanes)
    return holders


def fitting(lanes: Array, offsets: Array, active: Array | None) -> Array | None:
    """The lanes of the elements at `offsets`, which `active` has chosen; None where that cannot be said."""
    if lanes.size == (offsets.size if active is None else active.size):
        return lanes.reshape(offsets.shape) if active is None else lanes.reshape(active.shape)[active]
    return None


def first_lane(lanes: int) -> int:
    """The lowest lane of a set."""
    return (lanes & -lanes).bit_length() - 1
