"""Which pointer parameters of a kernel are written through.

Level: tt. Takes a module; gives the positions of the parameters whose memory a store, an atomic or a descriptor store
may reach. Conservative: a pointer that is computed from two parameters counts for both.
"""

from __future__ import annotations

from mltriton.dialects import scf, tt
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, BlockArgument, Operation, OpResult, Value
from mltriton.ir.types import IntegerType, element_type

# The operand that names the memory each operation writes.
_WRITTEN: dict[type[Operation], str] = {
    tt.Store: "ptr",
    tt.AtomicRMW: "ptr",
    tt.AtomicCAS: "ptr",
    tt.DescriptorStore: "desc",
}


def written_arguments(module: Module) -> frozenset[int]:
    """Positions of the parameters of the module's public function that it may write through."""
    return written_parameters(tt.kernel_of(module))


def written_parameters(function: tt.Func) -> frozenset[int]:
    """Positions of the parameters that a function may write through."""
    pending = [getattr(op, _WRITTEN[type(op)]) for op in function.walk() if type(op) in _WRITTEN]
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            pending.extend(_sources(value))
    return frozenset(a.index for a in function.body.block.arguments if a in seen)


def _sources(value: Value) -> list[Value]:
    """The values that an address may come from in one step.

    Integers that move a pointer are no address unless it is cast from one.
    """
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op
        return [] if parent is None or isinstance(parent, tt.Func) else _carried(parent, value.block)
    assert isinstance(value, OpResult)
    op = value.op
    if op.regions:
        return [*op.operands, *(operand for block in _blocks(op) for operand in block.terminator.operands)]
    if isinstance(op, tt.IntToPtr):
        return list(op.operands)
    is_address = not isinstance(element_type(value.type), IntegerType)
    return [o for o in op.operands if not (is_address and isinstance(element_type(o.type), IntegerType))]


def _carried(loop: Operation, block: Block) -> list[Value]:
    """What a block argument of a loop may be: an initial value, or one handed on."""
    if not isinstance(loop, scf.For | scf.While):
        return list(loop.operands)
    return [*loop.operands, *(operand for inner in _blocks(loop) for operand in inner.terminator.operands)]


def _blocks(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks if block.ops]
