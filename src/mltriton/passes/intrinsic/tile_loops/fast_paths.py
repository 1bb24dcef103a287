"""Two versions of a piece of code: without masks where all accesses lie inside them, and with.

Level: warp to intrinsic. Which one runs is found out once, before the loops, from the corners of the masks; where that
is known not to hold, since an operand would be read in place if it did, only the second is written. Source: a mask that
has to be made from many parts, or that the target has no instruction for, costs more than the access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import scf, tt, ttg
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.types import TensorType
from mltriton.passes.intrinsic.tile_loops import addressing
from mltriton.passes.intrinsic.tile_loops.addressing import InMemory, NotProvable
from mltriton.passes.intrinsic.tile_loops.alternatives import Alternatives

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering


def with_and_without_masks(
    low: Lowering, accesses: Iterable[Operation], write: Callable[[], Sequence[Value]]
) -> Sequence[Value]:
    """Call `write` for each version that is needed; it gives the scalars that it computes."""
    e = low.e
    known: set[Operation] = set()
    conditions: list[Value] = []
    for op in dict.fromkeys(accesses):
        if _is_masked(op) and _is_known(low, op):
            try:
                conditions += addressing.inside(low, _block_of(op))
                known.add(op)
            except NotProvable:
                continue
    if not known:
        return write()
    condition = addressing.conjunction(e, conditions)
    if condition is None:
        with e.inside_masks(frozenset(known)):
            return write()
    if condition in e.refuted:
        return write()
    sides: list[Block] = []
    alternatives = Alternatives(e)
    for unmasked, refuted in ((known, ()), ((), (condition,))):
        side = Block()
        with e.emitter.inside(side), e.inside_masks(frozenset(unmasked)), e.without(*refuted), alternatives.side():
            e.emitter.insert(scf.Yield(list(write())))
        sides.append(side)
    alternatives.join()
    types = [value.type for value in sides[0].terminator.operands]
    return e.emitter.effect(scf.If, [condition], types, {}, [Region([side]) for side in sides]).results


def _is_known(low: Lowering, op: Operation) -> bool:
    """Whether the mask can be looked at before the loops: nothing in it is loaded, or computed by them."""
    for operand in op.operands:
        if isinstance(op, tt.Store | tt.DescriptorStore) and operand is op.value:
            continue
        if isinstance(op, tt.Load) and operand is op.other:
            continue
        found = low.reads(operand)
        if found.loads or any(leaf not in low.e.scalars for leaf, _ in found.leaves):
            return False
    return True


def _block_of(op: Operation) -> InMemory:
    value = op.value if isinstance(op, tt.Store | tt.DescriptorStore) else op.results[0]
    type = cast(TensorType, value.type)
    return InMemory(op, tuple(range(type.rank)), type.element)


def _is_masked(op: Operation) -> bool:
    if isinstance(op, tt.Load | tt.Store):
        return op.mask is not None or bool(op.boundary_check)
    return not isinstance(op, ttg.LocalLoad)
