"""hoist-block-places: what of the places of block accesses a loop does not change is computed in front of it.

Level: intrinsic. Takes any program and changes it in place. Match-target-size leaves the offsets of pieces where the
pieces are; here the scalars that a loop's block pointers, descriptors and accesses through these need, and that do not
vary in it, move in front of it, out of branches, too. Guarantees: only pure scalar operations move; those of loops
inside stay in the loop around them.
"""

from __future__ import annotations

from mltriton.analysis.block_io import places
from mltriton.dialects import scf
from mltriton.ir.module import Module
from mltriton.ir.operation import BlockArgument, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType


class HoistBlockPlaces(Pass):
    """Compute once where blocks are."""

    name = "hoist-block-places"

    def run(self, module: Module) -> Module:
        loops = [op for op in module.walk() if isinstance(op, scf.For)]
        for loop in reversed(loops):  # those inside first
            _hoist(loop)
        return module


def _hoist(loop: scf.For) -> None:
    inside = set(loop.walk()) - {loop}
    moved: dict[Operation, None] = {}

    def stays(value: Value) -> bool:
        op = value.defining_op
        if op is None:
            assert isinstance(value, BlockArgument)
            around = value.block.parent_op
            return around is not loop and around not in inside
        if op not in inside or op in moved:
            return True
        if not op.pure or op.regions or isinstance(value.type, TensorType) or not all(map(stays, op.operands)):
            return False
        moved[op] = None
        return True

    for value in places(loop.body.block):
        stays(value)
    _move_before(loop, moved)


def _move_before(loop: scf.For, moved: dict[Operation, None]) -> None:
    for block in {op.block for op in moved if op.block is not None}:
        block.ops[:] = [op for op in block.ops if op not in moved]
    body = loop.block
    assert body is not None
    at = body.ops.index(loop)
    body.ops[at:at] = moved
    for op in moved:
        op.block = body
