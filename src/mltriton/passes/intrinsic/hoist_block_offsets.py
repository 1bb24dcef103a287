"""hoist-block-offsets: loop-invariant offsets of block accesses are computed in front of loops.

Level: intrinsic. Takes any program and changes it in place. Match-target-size leaves the offsets of pieces where the
pieces are; here the scalars that a loop's block pointers, descriptors and accesses through these need, and that do not
vary in it, move in front of it, out of branches, too. Guarantees: only pure scalar operations move; those of loops
inside stay in the loop around them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.dialects import scf, tt
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, BlockArgument, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType


class HoistBlockOffsets(Pass):
    """Compute once where blocks are."""

    name = "hoist-block-offsets"

    def run(self, module: Module) -> Module:
        loops = [op for op in module.walk() if isinstance(op, scf.For)]
        for loop in reversed(loops):  # those inside first
            _hoist(loop)
        return module


def _hoist(loop: scf.For) -> None:
    inside = set(loop.walk()) - {loop}
    moved: dict[Operation, None] = {}

    def is_invariant(value: Value) -> bool:
        op = value.defining_op
        if op is None:
            assert isinstance(value, BlockArgument)
            around = value.block.parent_op
            return around is not loop and around not in inside
        if op not in inside or op in moved:
            return True
        if not op.pure or op.regions or isinstance(value.type, TensorType) or not all(map(is_invariant, op.operands)):
            return False
        moved[op] = None
        return True

    for value in _block_scalars(loop.body.block):
        is_invariant(value)
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


_WITH_SCALARS = (tt.MakeTensorPtr, tt.MakeTensorDesc, tt.DescriptorLoad, tt.DescriptorStore)


def _block_scalars(body: Block) -> list[Value]:
    """The scalars that a loop's own block accesses need, without those of other loops inside."""
    found = (op for op in _own_operations(body) if isinstance(op, _WITH_SCALARS))
    operands = dict.fromkeys(operand for op in found for operand in op.operands)
    return [value for value in operands if not isinstance(value.type, TensorType)]


def _own_operations(body: Block) -> Iterator[Operation]:
    for op in body.ops:
        yield op
        if not isinstance(op, scf.For | scf.While):
            for region in op.regions:
                for block in region.blocks:
                    yield from _own_operations(block)
