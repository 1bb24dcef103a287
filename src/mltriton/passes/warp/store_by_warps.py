"""store-by-warps: each warp hands its own rows to the engine, and waits for no other warp.

Level: warp, behind `distribute-to-warps`. Takes blocks that all warps write to shared memory, each its rows, and that
one warp then lets the engine copy to global memory, in loops of the default side of a `ttg.warp_specialize`. Changes
them in place: a warp has a block of its own in shared memory, writes it once the engine has read what the warp's last
copy took, and starts the copy of its rows; barriers for all warps go. Long rows go in pieces, one after the other
through the same memory, which all stores of a loop share whose pieces are alike (`analysis/staging.py`). Guarantees: no
result changes; behind the loop the engine has read all. Purpose: warps that end an item of work do not wait for those
that still multiply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from mltriton.analysis.aliasing import may_alias
from mltriton.analysis.staging import piece_columns
from mltriton.dialects import arith, gpu, scf, ttg, ttig, ttng
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, MemDescType, TensorDescType, TensorType, byte_width
from mltriton.targets.base import TensorCopies
from mltriton.targets.registry import num_warps_of, spec_of

Owned = dict[tuple[scf.For, MemDescType], Value]  # what a warp has of its own in a loop, of each kind


@dataclass(frozen=True)
class StoreByWarps(Pass):
    """Let each warp store its rows. `apart`: up to so many warps go on by themselves; more meet once."""

    name = "store-by-warps"
    apart: int = 8

    def run(self, module: Module) -> Module:
        copies = spec_of(module).tensor_copies
        if copies is None or is_warp_level(module):
            return module
        warps = num_warps_of(module)
        stores = {op: _find(op, warps) for op in module.walk() if isinstance(op, ttng.AsyncTMACopyLocalToGlobal)}
        owned: Owned = {}
        for op, found in stores.items():
            if found is not None:
                meet = warps > self.apart or any(_may_follow(op, other, stores) for other in stores)
                _rewrite(found, copies, warps, owned, meet=meet)
        return module


class _Copy(NamedTuple):
    """A copy by one warp (`branch`), the store of a warp's part (`part`) in front of it, the wait behind it, and the
    barriers and fences between the allocation and the branch.
    """

    copy: ttng.AsyncTMACopyLocalToGlobal
    branch: scf.If
    store: ttg.LocalStore
    part: ttg.MemDescSubview
    wait: ttng.AsyncTMAStoreWait
    meetings: Sequence[Operation]


def _find(copy: ttng.AsyncTMACopyLocalToGlobal, warps: int) -> _Copy | None:
    """None where it is not of that kind, or a warp's part has no whole rows of its own."""
    branch, made = copy.parent_op, copy.source.defining_op
    if not isinstance(branch, scf.If) or not isinstance(made, ttg.LocalAlloc) or copy.pred is not None:
        return None
    block = branch.block
    if len(branch.then.block.ops) != 2 or block is None or made.block is not block or not _is_in_loop_beside(branch):
        return None
    part = next((user for user in made.result.users if isinstance(user, ttg.MemDescSubview)), None)
    store = part and next((user for user in part.result.users if isinstance(user, ttg.LocalStore)), None)
    wait = block.ops[block.position(branch) + 1]
    if part is None or not isinstance(store, ttg.LocalStore) or not isinstance(wait, ttng.AsyncTMAStoreWait):
        return None
    if {*made.result.users} != {part, copy} or store.block is not block or not _is_of_rows(made, part, warps):
        return None
    between = block.ops[block.position(made) + 1 : block.position(branch)]
    meetings = [op for op in between if isinstance(op, gpu.Barrier | ttng.FenceAsyncShared)]
    others = [op for op in between if not op.pure and op not in meetings and op is not store]
    return None if others else _Copy(copy, branch, store, part, wait, meetings)


def _may_follow(
    copy: ttng.AsyncTMACopyLocalToGlobal,
    other: ttng.AsyncTMACopyLocalToGlobal,
    stores: Mapping[ttng.AsyncTMACopyLocalToGlobal, _Copy | None],
) -> bool:
    """Whether a warp's copy may go to where another copy, which all its warps share, has gone: then the warp that
    started that must have waited for it. A warp waits for its own.
    """
    return other is not copy and stores[other] is None and may_alias(copy, other)


def _is_in_loop_beside(op: Operation) -> bool:
    """Whether an operation stands in a loop of a default side."""
    loop = op.parent_op
    around = loop.parent_op if isinstance(loop, scf.For) else None
    return isinstance(around, ttg.WarpSpecialize) and isinstance(loop, scf.For) and loop.block is around.default.block


def _is_of_rows(made: ttg.LocalAlloc, part: ttg.MemDescSubview, warps: int) -> bool:
    """Whether each warp has as many rows, and all of their columns."""
    whole, own = cast(MemDescType, made.result.type).shape, cast(MemDescType, part.result.type).shape
    return len(whole) == len(own) == 2 and own[1] == whole[1] and own[0] * warps == whole[0]


def _rewrite(found: _Copy, copies: TensorCopies, warps: int, owned: Owned, *, meet: bool) -> None:
    loop = cast(scf.For, found.branch.parent_op)
    value = cast(TensorType, found.store.value.type)
    rows, columns = value.shape
    width = piece_columns(columns, byte_width(value.element))
    layout = copies.layout((rows, width), byte_width(value.element))
    own = MemDescType((rows, width), value.element, layout)
    builder = Builder().before(found.store)
    builder.loc = found.copy.loc
    if (loop, own) not in owned:
        owned[loop, own] = _own_block(builder, own, warps)
    there = owned[loop, own]
    everywhere = any(isinstance(op, ttng.FenceAsyncShared) and op.everywhere for op in found.meetings)
    *outer, row, column = found.copy.indices
    row, desc = builder.emit(arith.AddI, row, found.part.offsets[0]), _map_of_rows(found.copy.desc, own)
    if meet:
        builder.create(gpu.Barrier)
    for number in range(columns // width):
        piece, first = found.store.value, column
        if width < columns:
            type = TensorType((rows, width), value.element, value.encoding)
            piece = builder.emit(ttig.Extract, piece, result_types=[type], index=number)
        if number:
            first = builder.emit(arith.AddI, column, arith.integer(builder, number * width))
        builder.create(ttng.AsyncTMAStoreWait)
        builder.create(ttg.LocalStore, piece, there)
        builder.create(ttng.FenceAsyncShared, everywhere=everywhere)
        builder.create(ttng.AsyncTMACopyLocalToGlobal, desc, [*outer, row, first], there, None)
    Builder().before(_behind(loop)).create(ttng.AsyncTMAStoreWait)
    for op in (found.store, *found.meetings, found.branch, found.wait, found.part, found.part.memory.defining_op):
        assert op is not None
        op.erase()


def _own_block(builder: Builder, own: MemDescType, warps: int) -> Value:
    """A block in shared memory for each warp: this one's."""
    made = builder.emit(
        ttg.LocalAlloc, None, result_types=[MemDescType((warps, *own.shape), own.element, own.encoding)]
    )
    warp = builder.emit(arith.IndexCast, builder.emit(gpu.SubgroupId), result_types=[I32])
    zero = arith.integer(builder, 0)
    return builder.emit(ttg.MemDescSubview, made, [warp, zero, zero], result_types=[own])


def _map_of_rows(desc: Value, rows: MemDescType) -> Value:
    """The same tensor's map, for blocks of fewer rows."""
    whole = cast(ttng.TensorMap, desc.defining_op)
    builder = Builder().before(whole)
    builder.loc = whole.loc
    block = cast(TensorDescType, desc.type).block
    smaller = TensorDescType(block.with_shape((*block.shape[:-2], *rows.shape)))
    groups = (whole.base, whole.shape, whole.strides, whole.positive, whole.apart)
    return builder.emit(ttng.TensorMap, *groups, result_types=[smaller])


def _behind(loop: scf.For) -> Operation:
    assert loop.block is not None
    return loop.block.ops[loop.block.position(loop) + 1]
