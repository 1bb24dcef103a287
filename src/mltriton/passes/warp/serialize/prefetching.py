"""Stores that a later piece does, asked for by the piece before it.

Level: warp. A piece that writes what the piece before it has computed waits for the cache lines that it writes;
the one that computes can ask for them meanwhile, as the loops of one row do (`tile_loops/prefetching.py`).
"""

from __future__ import annotations

from itertools import pairwise

from mltriton.dialects import tt
from mltriton.ir.operation import Value
from mltriton.ir.types import TensorType
from mltriton.passes.warp.serialize.plan import Plan
from mltriton.passes.warp.serialize.units import Piece


def prefetches_of(plan: Plan) -> dict[Piece, list[tt.Store]]:
    """For each piece the stores to ask for; what their addresses need is added to the plan."""
    found: dict[Piece, list[tt.Store]] = {}
    for units in plan.cut.units.values():
        used = [unit for unit in units if not isinstance(unit, Piece) or plan.work(unit)]
        for before, piece in pairwise(used):
            if isinstance(before, Piece) and isinstance(piece, Piece):
                for store in _stores(plan, before, piece):
                    _need(plan, store.ptr, before)
                    found.setdefault(before, []).append(store)
    return found


def _stores(plan: Plan, before: Piece, piece: Piece) -> list[tt.Store]:
    """The stores of blocks as large as one that the piece before computes, whose addresses can be computed there."""
    shapes = {
        value.type.shape for op in plan.work(before) for value in op.results if isinstance(value.type, TensorType)
    }
    stores = [op for op in plan.work(piece) if isinstance(op, tt.Store)]
    return [
        op
        for op in stores
        if isinstance(op.value.type, TensorType) and op.value.type.shape in shapes and _is_known(plan, op.ptr, before)
    ]


def _is_there(plan: Plan, value: Value, piece: Piece) -> bool:
    """Whether a value is defined at or before a piece."""
    op = value.defining_op
    home = plan.cut.piece_of.get(op) if op is not None else None
    return home is None or home.at <= piece.at


def _is_known(plan: Plan, value: Value, piece: Piece) -> bool:
    """Whether a piece has a value, or can compute it without keeping or loading anything."""
    if _is_there(plan, value, piece):
        return not plan.would_keep(value, piece)
    op = value.defining_op
    assert op is not None
    return op.pure and not op.regions and all(_is_known(plan, operand, piece) for operand in op.operands)


def _need(plan: Plan, value: Value, piece: Piece) -> None:
    """A piece needs what a later value is computed from."""
    op = value.defining_op
    if _is_there(plan, value, piece) or op is None:
        plan.need(value, piece)
        return
    for operand in op.operands:
        _need(plan, operand, piece)
