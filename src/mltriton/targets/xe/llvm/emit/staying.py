"""What of the places of block accesses a loop does not change.

Level: intrinsic -> llvm. Before a loop is emitted, the scalars that its block accesses need and that are made of what
is there already are emitted in front of it. Guarantees: operations with effects, and those of loops inside, stay where
they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.dialects import scf, tt
from mltriton.ir.operation import Block, Operation
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import TensorType
from mltriton.targets.simt.context import Emitter

PLACES = (tt.MakeTensorPtr, tt.MakeTensorDesc, tt.DescriptorLoad, tt.DescriptorStore)


def bring_forward(e: Emitter, body: Block) -> frozenset[IRValue]:
    """The operands of a loop's block accesses that stay the same; they are emitted when this returns."""
    places = (op for op in _own_operations(body) if isinstance(op, PLACES))
    operands = dict.fromkeys(operand for op in places for operand in op.operands)
    return frozenset(value for value in operands if not isinstance(value.type, TensorType) and e.ensure(value))


def _own_operations(body: Block) -> Iterator[Operation]:
    """The operations of a loop's body and of branches in it, without those of other loops."""
    for op in body.ops:
        yield op
        if not isinstance(op, scf.For | scf.While):
            for region in op.regions:
                for block in region.blocks:
                    yield from _own_operations(block)
