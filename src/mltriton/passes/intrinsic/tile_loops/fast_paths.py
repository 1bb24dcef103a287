"""Two versions of a piece of code: without masks where all accesses lie inside them, and with.

Level: warp to intrinsic. Which one runs is found out once, before the loops, from the corners of the masks. Source: a
mask that has to be made from many parts, or that the target has no instruction for, costs more than the access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from mltriton.dialects import scf, tt
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.types import TensorType
from mltriton.passes.intrinsic.tile_loops import addressing
from mltriton.passes.intrinsic.tile_loops.addressing import InMemory, NotProvable
from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def with_and_without_masks(low: Lowering, accesses: Iterable[Operation], write: Callable[[], None]) -> None:
    """Call `write` for each version that is needed."""
    e = low.e
    known: set[Operation] = set()
    conditions: list[Value] = []
    for op in accesses:
        try:
            conditions += addressing.inside(low, _block_of(op))
        except NotProvable:
            continue
        if _is_masked(op):
            known.add(op)
    if not known:
        write()
        return
    condition = addressing.conjunction(e, conditions)
    if condition is None:
        with e.inside_masks(frozenset(known)):
            write()
        return
    sides: list[Block] = []
    for unmasked in (frozenset(known), frozenset[Operation]()):
        side = Block()
        with e.emitter.inside(side), e.inside_masks(unmasked):
            write()
            e.emitter.insert(scf.Yield([]))
        sides.append(side)
    e.emitter.effect(scf.If, [condition], [], {}, [Region([side]) for side in sides])


def _block_of(op: Operation) -> InMemory:
    value = op.value if isinstance(op, tt.Store | tt.DescriptorStore) else op.results[0]
    type = cast(TensorType, value.type)
    return InMemory(op, tuple(range(type.rank)), type.element)


def _is_masked(op: Operation) -> bool:
    if isinstance(op, tt.Load | tt.Store):
        return op.mask is not None or bool(op.boundary_check)
    return True
