"""allocate-addresses: which 2D block accesses of a loop have an address of their own.

Level: intrinsic, targets with 2D block accesses, after choose-registers. The address of an access is a register: a
matrix, and an index in it. Where the hardware adds no distance to an index (`BlockIO.distances`), accesses at a
constant distance that share an address each take a copy and an addition, and as the copy's register is in use, up to
four instructions that wait. Accesses of innermost loops therefore get addresses of their own, of which an iteration
writes one coordinate: `ttig.address` is the number of an access's among those of its matrix and type. 0, which is not
written down, is there anyway. Guarantees: a loop has no more of them than there are registers left.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.analysis.block_io import invariant_offsets, parts
from mltriton.analysis.registers import RegisterEstimate
from mltriton.dialects import scf, tt, ttg
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.dialects.ttig import ADDRESS
from mltriton.ir.attributes import IntegerAttr, integer_in
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, TensorType
from mltriton.targets.registry import spec_of

# Registers for what a loop loads, of which Intel's compiler keeps a part at a time: with 67 paged attention spills
# where it has 128 registers; no other kernel of the library needs as many.
FOR_LOADS = 70

_Access = tt.Load | tt.Store | tt.DescriptorLoad | tt.DescriptorStore


class AllocateAddresses(Pass):
    """Say which block accesses have an address of their own."""

    name = "allocate-addresses"

    def run(self, module: Module) -> Module:
        spec, registers = spec_of(module), integer_in(module.attributes, "ttig.register_mode", 0)
        if spec.block_load is None or spec.block_load.distances or not registers:
            return module
        for function in module.body.block.ops:
            if isinstance(function, tt.Func):
                estimate = RegisterEstimate(function, spec, loaded=False)
                for loop in scf.innermost_loops(function):
                    _number(loop, registers - FOR_LOADS - estimate.within(loop))
        return module


def _number(loop: scf.For, left: int) -> None:
    if any(_by_lanes(op) for op in loop.walk()):  # These addresses take the registers.
        return
    known: dict[tuple[object, ...], dict[tuple[Value, ...], int]] = {}
    for op in _moving(loop):
        found = parts(op)
        assert found is not None
        tensor, offsets = found
        numbers = known.setdefault((*tensor, *offsets[:-2], _block(op)), {})
        index = tuple(offsets[-2:])
        if numbers and index not in numbers:
            if left <= 0:
                continue
            left -= 1
        number = numbers.setdefault(index, len(numbers))
        if number:
            op.attributes = op.attributes | {ADDRESS: IntegerAttr(number, I32)}


def _moving(loop: scf.For) -> Iterator[_Access]:
    """Block accesses that the loop moves along one dimension of a matrix that stays."""
    for op in loop.walk():
        if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore) or (
            isinstance(op, tt.Load | tt.Store) and is_block_pointer(op.ptr.type)
        ):
            stays = invariant_offsets(op)
            if stays is not None and len(stays) > 1 and all(stays[:-2]) and stays[-2] != stays[-1]:
                yield op


def _block(op: _Access) -> tuple[type[Operation], object]:
    """What a message moves: the class of the access, and the block's type with its encoding."""
    return type(op), op.value.type if isinstance(op, tt.Store | tt.DescriptorStore) else op.result.type


def _by_lanes(op: Operation) -> bool:
    """Whether lanes access shared memory, or blocks of pointers."""
    if isinstance(op, tt.Load | tt.Store):
        return isinstance(op.ptr.type, TensorType)
    return isinstance(op, ttg.LocalLoad | ttg.LocalGather | ttg.LocalStore)
