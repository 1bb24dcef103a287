"""Where the block accesses of a loop are: the scalars that they need. Level: intrinsic."""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.dialects import scf, tt
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import TensorType

_PLACES = (tt.MakeTensorPtr, tt.MakeTensorDesc, tt.DescriptorLoad, tt.DescriptorStore)


def places(body: Block) -> list[Value]:
    """The scalars that a loop's own block accesses need, without those of other loops inside."""
    found = (op for op in _own_operations(body) if isinstance(op, _PLACES))
    operands = dict.fromkeys(operand for op in found for operand in op.operands)
    return [value for value in operands if not isinstance(value.type, TensorType)]


def _own_operations(body: Block) -> Iterator[Operation]:
    for op in body.ops:
        yield op
        if not isinstance(op, scf.For | scf.While):
            for region in op.regions:
                for block in region.blocks:
                    yield from _own_operations(block)
