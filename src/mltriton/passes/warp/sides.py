"""What one warp does for all of a program, what each does for itself, and the sides of a `ttg.warp_specialize`.

Level: ttg -> warp; rules of `distribute-to-warps`. The engine's copies and the barriers in shared memory are operated
by one warp; those that follow on each other by one branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from mltriton.analysis.effects import is_pure
from mltriton.dialects import scf, ttg, ttng
from mltriton.ir.operation import Operation, Region, Value
from mltriton.ir.rewriting import RuleTable
from mltriton.ir.types import I1, PointerType, TensorType, Type
from mltriton.layouts.encodings import Encoding
from mltriton.passes.warp.coordinates import WarpCoordinates
from mltriton.passes.warp.exchange import Exchange

if TYPE_CHECKING:
    from mltriton.passes.warp.distribute_to_warps import Distributor


def by_owner(d: Distributor, type: Type, emit: Callable[[], Sequence[Value]]) -> Sequence[Value]:
    """Of the warps that hold the same part of a block, one does what is emitted."""
    owner = owner_of(d, type)
    if owner is None:
        emit()
        return []
    branch = d.builder.create(scf.If, owner, result_types=[], regions=[Region(), Region([])])
    with d.builder.inside(branch.then.block):
        emit()
        d.builder.create(scf.Yield, [], result_types=[])
    return []


def owner_of(d: Distributor, type: Type) -> Value | None:
    """Whether this warp is the first that holds its part of a block; None where no two hold the same."""
    block = type.pointee if isinstance(type, PointerType) else type
    if isinstance(block, TensorType):
        return d.warp.owner(cast(Encoding, block.encoding), block.shape)
    return d.warp.owner(None, ())


def arrive(d: Distributor, op: ttng.ArriveBarrier, operands: list[Value]) -> Sequence[Value]:
    """Where there is an arrival for each warp, each arrives once it has come there."""
    if op.count % d.num_warps:
        return by_first_warp(d, op, operands)
    d.builder.create(ttng.ArriveBarrier, *operands[:1], op.pred and operands[1], count=op.count // d.num_warps)
    return []


def specialize(d: Distributor, op: ttg.WarpSpecialize, operands: list[Value]) -> Sequence[Value]:
    """A side of the program's own warps, and one of a warp that has no part of a block."""
    default = d.rebuild_region(op.default)
    kept = d.num_warps, d.warp, d.exchange
    d.num_warps, d.warp, d.exchange = 1, WarpCoordinates(1, d.builder.loc), Exchange(d.builder, 1)
    partition = d.rebuild_region(op.partition)
    d.num_warps, d.warp, d.exchange = kept
    made = d.builder.create(ttg.WarpSpecialize, result_types=[], regions=[default, partition])
    made.attributes |= op.attributes
    return []


def by_first_warp(d: Distributor, op: Operation, operands: list[Value]) -> Sequence[Value]:
    """What is done once for the program; by one branch what follows on each other."""
    block, branch = d.builder.block, d.once
    if branch is None or branch.block is not block or not all(map(is_pure, block.ops[block.position(branch) + 1 :])):
        by_owner(d, I1, lambda: d.copy(op, operands))
        d.once = next((made for made in block.ops[-1:] if isinstance(made, scf.If)), None)
        return []
    block.ops.remove(branch)
    block.append(branch)
    then = branch.then.block
    end = then.terminator
    then.ops.remove(end)
    with d.builder.inside(then):
        d.copy(op, operands)
    then.append(end)
    return []


_BARRIERS = (ttng.InitBarrier, ttng.InvalBarrier, ttng.BarrierExpect)
_COPIES = (ttng.AsyncTMACopyGlobalToLocal, ttng.AsyncTMACopyLocalToGlobal, ttng.AsyncTMAReduce)

RULES: RuleTable = {
    **dict.fromkeys((*_BARRIERS, *_COPIES), by_first_warp),
    ttng.ArriveBarrier: arrive,
    ttg.WarpSpecialize: specialize,
}
