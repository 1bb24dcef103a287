"""Which operations are members of loop nests, and as what.

Level: warp. `member_of` makes the member that an operation is inside a nest; None where it has none: an operation on
scalars, what has loops of its own, and what is computed where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mltriton.dialects import tile, tt, ttg, ttig
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType, shape_of
from mltriton.passes.intrinsic.tile_loops.members import AssertBlock, Atomic, Fill, Member, StoreBlock
from mltriton.passes.intrinsic.tile_loops.prefetching import PrefetchBlock
from mltriton.passes.intrinsic.tile_loops.shared import StoreShared
from mltriton.passes.intrinsic.tile_loops.tiles import Tile


def member_of(op: Operation) -> Member | None:
    """The member of a nest that does all of `op`."""
    make = MEMBERS.get(op.__class__)
    return make(op) if make is not None else None


def is_member(op: Operation) -> bool:
    """Whether `op` is a member of a nest."""
    return member_of(op) is not None


def _store(op: tt.Store | tt.DescriptorStore) -> Member | None:
    return StoreBlock(op) if isinstance(op.value.type, TensorType) else None


def _reduce(op: tt.Reduce) -> Member:
    """Along the last dimension in rows, along another in columns."""
    from mltriton.passes.intrinsic.tile_loops.reductions import ReduceColumns, ReduceRow  # Products have none.

    last = len(shape_of(op.sources[0].type)) - 1
    return ReduceRow(op, {}) if op.axis == last else ReduceColumns(op, {})


def _atomic(op: tt.AtomicRMW | tt.AtomicCAS | tt.VolatileAsm) -> Member | None:
    return Atomic(op) if isinstance(op.results[0].type, TensorType) else None


def _assertion(op: tt.Assert) -> Member | None:
    return AssertBlock(op) if isinstance(op.condition.type, TensorType) else None


def _prefetch(op: ttig.Prefetch) -> Member | None:
    """What is going to be written is asked for by the loops that compute meanwhile."""
    return PrefetchBlock(op) if op.write else None


def _shared_store(op: ttg.LocalStore) -> Member | None:
    """A dot's sum may be computed where it is stored: `shared.destination`."""
    return None if isinstance(op.value.defining_op, tt.Dot) else StoreShared(op)


def fill_of(op: tile.Fill, owner: Value | None = None) -> Fill:
    """The member that stores a block, in a tile whose place is still to be found; `owner` is what that may hold now."""
    value = op.source
    element = op.element or cast(TensorType, value.type).element
    owner = value if op.defines else owner
    return Fill(value, Tile(value, element, (), owner), op.loc, defines=op.defines, is_new=True)


MEMBERS: dict[type[Operation], Callable[[Any], Member | None]] = {
    tt.Store: _store,
    tt.DescriptorStore: _store,
    tt.Reduce: _reduce,
    tt.AtomicRMW: _atomic,
    tt.AtomicCAS: _atomic,
    tt.VolatileAsm: _atomic,
    tt.Assert: _assertion,
    ttig.Prefetch: _prefetch,
    ttg.LocalStore: _shared_store,
    tile.Fill: fill_of,
}
