"""`ttg` on the machine: shared memory, asynchronous copies, layout changes.

Level: ttg to intrinsic. `ttg.convert_layout` keeps every element where it is: at `ttg` a block is whole in any
layout, and below it may only be left where the per-warp part stays the same.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from mltriton.dialects import ttg
from mltriton.executor.code import Handler, Table
from mltriton.executor.faults import InvalidOperation
from mltriton.executor.machine import Warp
from mltriton.executor.races import Access
from mltriton.executor.shared import SharedView
from mltriton.executor.values import Array, memory_dtype
from mltriton.ir.operation import Operation
from mltriton.ir.types import MemDescType, TensorType


def access(warp: Warp, op: Operation) -> Access:
    """This warp's access to shared memory by that operation."""
    return Access(warp.id, warp.instance.epoch, op)


def convert_layout(op: ttg.ConvertLayout) -> Handler:
    """The same elements."""
    source, result = cast(TensorType, op.source.type), cast(TensorType, op.result.type)
    if source.shape != result.shape:
        raise InvalidOperation("a layout change that gives a warp another part must go through shared memory")
    return lambda warp, values: values


def local_alloc(op: ttg.LocalAlloc) -> Handler:
    """The buffer of this operation, initialised with the operand if it has one."""
    type = cast(MemDescType, op.result.type)

    def call(warp: Warp, *init: Array) -> SharedView:
        view = warp.instance.shared.allocate(op, type)
        for values in init:
            view.store(values, access(warp, op))
        return view

    return call


def local_load(op: ttg.LocalLoad) -> Handler:
    """The whole block."""
    return lambda warp, view: view.load(access(warp, op))


def local_gather(op: ttg.LocalGather) -> Handler:
    """Elements at indices along an axis."""
    axis = op.axis
    return lambda warp, view, indices: np.take_along_axis(view.load(access(warp, op)), indices, axis)


def local_store(op: ttg.LocalStore) -> Handler:
    """The whole block."""

    def call(warp: Warp, values: Array, view: SharedView) -> None:
        if values.shape != view.bits.shape:
            raise InvalidOperation(f"a block of {values.shape} does not fit shared memory of {view.bits.shape}")
        view.store(values, access(warp, op))

    return call


def subview(op: ttg.MemDescSubview) -> Handler:
    """A window that shares the memory."""
    shape = cast(MemDescType, op.result.type).shape

    def call(warp: Warp, view: SharedView, *offsets: Array) -> SharedView:
        return view.window([int(offset) for offset in offsets], shape)

    return call


def transposed(op: ttg.MemDescTrans) -> Handler:
    """The transposed view."""
    return lambda warp, view: view.transposed()


def start_copy(op: ttg.AsyncCopyGlobalToLocal) -> Handler:
    """Read now, write when waited for; masked-off elements become `other`, or 0."""
    has_mask, has_other = op.mask is not None, op.other is not None

    def call(warp: Warp, pointers: Array, view: SharedView, *rest: Array) -> None:
        mask, other = rest[0] if has_mask else None, rest[-1] if has_other else None
        if memory_dtype(view.element).itemsize != view.bits.itemsize or pointers.shape != view.bits.shape:
            raise InvalidOperation(f"a copy of {pointers.shape} into shared memory of {view.bits.shape}")
        values = warp.memory.load(pointers, view.element, mask, other)
        view.begin(access(warp, op))
        warp.copies.start(lambda: view.arrive(np.asarray(values), access(warp, op)))

    return call


def commit(op: ttg.AsyncCommitGroup) -> Handler:
    """Close the group."""

    def call(warp: Warp, *tokens: None) -> None:
        warp.copies.commit()

    return call


def wait(op: ttg.AsyncWait) -> Handler:
    """Let the oldest groups arrive."""
    most_left = op.num

    def call(warp: Warp, *tokens: None) -> None:
        warp.copies.wait(most_left)

    return call


TABLE: Table = {
    ttg.ConvertLayout: convert_layout,
    ttg.LocalAlloc: local_alloc,
    ttg.LocalLoad: local_load,
    ttg.LocalGather: local_gather,
    ttg.LocalStore: local_store,
    ttg.MemDescSubview: subview,
    ttg.MemDescTrans: transposed,
    ttg.AsyncCopyGlobalToLocal: start_copy,
    ttg.AsyncCommitGroup: commit,
    ttg.AsyncWait: wait,
}
