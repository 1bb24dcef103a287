"""Shared memory of a program that one thread runs: buffers in scratch memory, windows of them, loads and stores.

Level: warp to intrinsic. A `ttg.local_alloc` is a buffer that is kept from one iteration of a loop to the next, a
window of it a tile with another address. A `ttg.local_load` is evaluated where it is used, unless a store may change it
before (`footprints.killed_loads`). A dot whose sum is stored to a window accumulates there, where nothing else looks at
the window meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mltriton.analysis.aliasing import is_same_window, may_alias
from mltriton.dialects import tt, ttg
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import MemDescType
from mltriton.passes.intrinsic.tile_loops import accesses
from mltriton.passes.intrinsic.tile_loops.emitter import refuse
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Coordinates, consumers
from mltriton.passes.intrinsic.tile_loops.forms import Form, Index
from mltriton.passes.intrinsic.tile_loops.members import Accumulators, Member

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def allocate(low: Lowering, op: ttg.LocalAlloc) -> None:
    """Room for a buffer."""
    if op.init is not None:
        raise refuse(op, "a buffer in shared memory starts without contents on a target whose blocks live in memory")
    type = cast(MemDescType, op.result.type)
    low.e.buffers[op.result] = low.e.scratch.buffer(type.shape, type.element)


def store(low: Lowering, op: ttg.LocalStore) -> None:
    """A block joins the nest, unless it was computed in its place."""
    if op not in low.stored:
        low.add(StoreShared(op))


class StoreShared(Member):
    """A block stored to a window of a buffer: what the operation stores, or what a dot is to add to."""

    def __init__(self, op: ttg.LocalStore, value: Value | None = None) -> None:
        super().__init__(cast(MemDescType, op.memory.type).shape, op.loc)
        self.op = op
        self.value = value or op.value
        self.whole = op if value is None else None

    @property
    def store(self) -> Operation:
        return self.op

    def inputs(self) -> list[tuple[Value, Coordinates]]:
        return [(self.value, self.coordinates), (self.op.memory, ())]

    def evaluate(self, e: Evaluator, index: Index, lanes: int) -> list[Form]:
        return [e.at(self.value, index, lanes)]

    def commit(
        self, e: Evaluator, index: Index, lanes: int, forms: list[Form], old: Accumulators | None
    ) -> Accumulators:
        tile = e.window(self.op.memory)
        accesses.write(e, e.address(tile, index), None, forms[0], lanes)
        return []


def member(op: ttg.LocalStore) -> Member | None:
    """A dot's sum may be computed where it is stored: `destination`."""
    return None if isinstance(op.value.defining_op, tt.Dot) else StoreShared(op)


# Dots that accumulate in a buffer


def destination(low: Lowering, op: tt.Dot) -> ttg.LocalStore | None:
    """The store that puts a dot's sum into a window in which it may be computed: nothing reads or writes there from the
    dot to the store, nor writes there while the sum is needed after it.
    """
    block = op.block
    assert block is not None
    stores = [user for user in op.result.users if isinstance(user, ttg.LocalStore) and user.block is block]
    if len(stores) != 1:
        return None
    (store,) = stores
    numbers = {other: number for number, other in enumerate(block.ops)}
    here, there = numbers[op], numbers[store]

    def last_use(value: Value) -> int:
        holders = [user.ancestor_in(block) for user, _ in consumers(value) if user is not store]
        return max((numbers[holder] for holder in holders if holder is not None), default=-1)

    until = max(there, last_use(op.result))
    for other in block.ops[here + 1 : until + 1]:
        for inner in other.walk():
            reads = isinstance(inner, ttg.LocalLoad) and numbers[other] < there
            writes = isinstance(inner, ttg.LocalStore) and inner is not store
            if (reads or writes) and may_alias(inner, store):
                return None
    for other in block.ops[:here]:
        looks = isinstance(other, ttg.LocalLoad) and other.result not in low.e.tiles and may_alias(other, store)
        if looks and (last_use(other.results[0]) > here or not _is_read_as_accumulator(low, op, other, store)):
            return None
    return store if _is_known(low, store.memory, op) else None


def _is_read_as_accumulator(low: Lowering, op: tt.Dot, load: Operation, store: ttg.LocalStore) -> bool:
    """Whether a dot reads a load of the window, if it does, only in place of its accumulator."""
    if any(found is load for operand in (op.a, op.b) for found, _ in low.reads(operand).loads):
        return False
    own = tuple(range(len(cast(MemDescType, store.memory.type).shape)))
    uses = [coordinates for found, coordinates in low.reads(op.c).loads if found is load]
    return not uses or (
        is_same_window(load.operands[0], store.memory) and all(coordinates == own for coordinates in uses)
    )


def _is_known(low: Lowering, memory: Value, op: Operation) -> bool:
    """Whether the address of a window can be computed where a dot stands."""
    block = op.block
    while memory not in low.e.buffers:
        view = memory.defining_op
        if view is None:
            return False
        for offset in view.operands[1:]:
            found = low.reads(offset)
            if found.loads or any(leaf not in low.e.scalars for leaf, _ in found.leaves):
                return False
        if view.block is block and not view.is_before(op) and any(_is_after(v, op) for v in view.operands[1:]):
            return False
        memory = view.operands[0]
    return True


def _is_after(value: Value, op: Operation) -> bool:
    definition = value.defining_op
    return definition is not None and definition.block is op.block and op.is_before(definition)
