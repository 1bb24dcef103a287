"""hoist-block-offsets: loop-invariant offsets of block accesses are computed in front of loops.

Level: intrinsic. Takes any program and changes it in place. Match-target-size leaves the offsets of pieces where the
pieces are; here the scalars that a loop's block pointers, descriptors and accesses through these need, and that do not
vary in it, move in front of it, out of branches, too. Guarantees: only pure scalar operations move; those of loops
inside stay in the loop around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    hoisting = Hoisting([loop])
    for value in _block_scalars(loop.body.block):
        hoisting.reaches(value)
    hoisting.move_before(loop)


class Hoisting:
    """What can be computed in front of operations that follow each other."""

    def __init__(self, ops: Iterable[Operation]) -> None:
        self._inside = {inner for op in ops for inner in op.walk()}
        self._moved: dict[Operation, None] = {}

    def reaches(self, value: Value) -> bool:
        """Whether a value is there in front of them, or can be: what it is made of then moves."""
        op = value.defining_op
        if op is None:
            assert isinstance(value, BlockArgument)
            return value.block.parent_op not in self._inside
        if op not in self._inside or op in self._moved:
            return True
        if not op.pure or op.regions or isinstance(value.type, TensorType) or not all(map(self.reaches, op.operands)):
            return False
        self._moved[op] = None
        return True

    def move_before(self, first: Operation) -> None:
        """Move what was reached."""
        for block in {op.block for op in self._moved if op.block is not None}:
            block.ops[:] = [op for op in block.ops if op not in self._moved]
        body = first.block
        assert body is not None
        at = body.ops.index(first)
        body.ops[at:at] = self._moved
        for op in self._moved:
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
            for block in op.blocks:
                yield from _own_operations(block)
