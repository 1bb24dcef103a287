"""What each operation of a program becomes: a member of the open loop nest, loops of its own, or scalars in its place.

Level: warp to intrinsic. `Lowering` walks a function by these; `operations.py` says which belongs to what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mltriton.dialects import tile, tt
from mltriton.ir.attributes import StringAttr
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType
from mltriton.passes.intrinsic.tile_loops.accesses import lasting
from mltriton.passes.intrinsic.tile_loops.members import PrintBlock, StoreBlock
from mltriton.passes.intrinsic.tile_loops.operations import member_of

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def store(low: Lowering, op: tt.Store | tt.DescriptorStore) -> None:
    """A block joins the nest; a scalar is stored now."""
    if isinstance(op.value.type, TensorType):
        assert low.membership is not None
        member = _store_member(op, low.membership.nest)
        member.prefetched = low.membership.prefetched
        low.add(member)
    else:
        copy_scalar(low, op)


def _store_member(op: tt.Store | tt.DescriptorStore, nest: tile.Nest) -> StoreBlock:
    """The member that does a store of a block, with its lanes as the nest says."""
    if nest.along < 0:
        return StoreBlock(op)
    from mltriton.passes.intrinsic.tile_loops.transposing import StoreAlong, StoreTransposed  # Few nests say so.

    return StoreTransposed(op, nest.along, nest.squares) if nest.squares else StoreAlong(op, nest.along)


def copy_scalar(low: Lowering, op: Operation) -> None:
    """An operation on scalars that touches memory, in its place."""
    low.flush()
    operands = [low.e.scalar(operand) for operand in op.operands]
    made = low.e.emitter.insert(
        op.__class__(operands, [result.type for result in op.results], op.attributes, (), op.loc, op.segments)
    )
    low.e.scalars.update(zip(op.results, made.results, strict=True))


def load(low: Lowering, op: tt.Load) -> None:
    """A block is loaded where it is used; a scalar now."""
    if isinstance(op.result.type, TensorType):
        return
    if low.needs_flush(op):
        low.flush()
    operands = [low.e.scalar(operand) for operand in op.operands]
    made = low.e.emitter.insert(tt.Load(operands, (op.result.type,), lasting(op), (), op.loc, op.segments))
    low.e.scalars[op.result] = made.results[0]


def join(low: Lowering, op: Operation) -> None:
    """A block joins the nest; a scalar is dealt with now."""
    member = member_of(op)
    if member is not None:
        low.add(member)
    else:
        copy_scalar(low, op)


def fill(low: Lowering, op: tile.Fill) -> None:
    """The block is in a tile from here on, for all, for dots, or for the later loops of a row."""
    if op.defines:
        low.force(op.source)
        return
    if op.row:
        low.keep(op)
        return
    from mltriton.passes.intrinsic.tile_loops import dot_fills, dots  # Programs without products need neither.

    if op.element is not None:
        dot_fills.fill_operand(low, op, op.element)
    else:
        dots.start_sum(low, op)


def print_values(low: Lowering, op: tt.Print) -> None:
    """One value after the other, as a line for each element."""
    if not any(isinstance(argument.type, TensorType) for argument in op.arguments):
        copy_scalar(low, op)
        return
    for number, argument in enumerate(op.arguments):
        operand = f"(operand {number}) " if len(op.arguments) > 1 else ""
        low.flush()
        if isinstance(argument.type, TensorType):
            low.add(PrintBlock(op, argument, f"{op.prefix}{operand}"))
        else:
            attributes = {**op.attributes, "prefix": StringAttr(f"{op.prefix}{operand}")}
            low.e.emitter.insert(tt.Print([low.e.scalar(argument)], (), attributes))


def assume(low: Lowering, op: tt.Assume) -> None:
    """Kept where it speaks of scalars."""
    if not isinstance(op.condition.type, TensorType) and not low.needs_flush(op):
        low.e.emitter.insert(tt.Assume([low.e.scalar(op.condition)]))


def nothing(low: Lowering, op: Operation) -> None:
    """One warp waits for nobody; a block is loaded where it is used."""


def prefetch(low: Lowering, op: Operation) -> None:
    """Only what is going to be written joins the nest."""
    member = member_of(op)
    if member is not None:
        low.add(member)
