"""Prefetches of what the last loop of a row is going to store.

Level: warp to intrinsic. Where a row takes several loops (softmax: maximum, sum, result) the last one does little but
store, and waits for the cache lines that it writes. The loop before it, which computes, asks for them meanwhile, where
the nest says so (`row_plans.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from mltriton.dialects import tile, ttig
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.operation import Value
from mltriton.ir.types import I1, TensorType, block_of
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Index
from mltriton.passes.intrinsic.tile_loops.members import Accumulators, Member, StoreBlock

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.loop_nests import Loop


class PrefetchStore(Member):
    """The addresses of a store that another loop of the row does."""

    def __init__(self, store: StoreBlock) -> None:
        super().__init__(store.shape, store.loc)
        self.op = store.op

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return []

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [accesses.address_at(e, self.op, index, lanes)]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        prefetch(e, forms[0])
        return []


class PrefetchBlock(Member):
    """The addresses of a block that the program says is going to be written."""

    def __init__(self, op: ttig.Prefetch) -> None:
        super().__init__(cast(TensorType, block_of(op.ptr.type)).shape, op.loc)
        self.op = self.whole = op

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return [(self.op.ptr, self.coordinates if isinstance(self.op.ptr.type, TensorType) else ())]

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        ptr = self.op.ptr
        if isinstance(ptr.type, TensorType):
            return [e.at(ptr, index, lanes)]
        return [accesses.block_access(e, accesses.block_pointer(e, ptr), (), index, lanes).address]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        prefetch(e, forms[0])
        return []


def member(op: ttig.Prefetch) -> Member | None:
    """What is going to be written is asked for by the loops that compute meanwhile."""
    return PrefetchBlock(op) if op.write else None


def prefetch(e: Evaluator, address: Form) -> None:
    """Ask for the cache line that a chunk is going to be written to."""
    if isinstance(address, Affine) and address.stride == 1:
        e.emitter.effect(tile.Prefetch, [e.arithmetic.scalar(address)], (), {"write": IntegerAttr(1, I1)})


def prefetch_stores(loops: Sequence[Loop]) -> None:
    """Let the loop before that of a store prefetch it where the program says so."""
    for before, loop in pairwise(loops):
        before.members += [PrefetchStore(m) for m in loop.members if isinstance(m, StoreBlock) and m.prefetched]
