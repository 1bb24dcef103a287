"""Which pointer parameters of a kernel are written through.

Level: tt. Takes a module; gives the positions of the parameters whose memory a store, an atomic or a descriptor store
may reach, and of those that assembly with effects gets. Conservative: a pointer that is computed from two parameters
counts for both.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import tt
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import reached
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
    written = [getattr(op, _WRITTEN[type(op)]) for op in function.walk() if type(op) in _WRITTEN]
    written += [source for op in function.walk() if isinstance(op, tt.VolatileAsm) for source in op.sources]
    arguments = function.body.block.arguments
    return frozenset(arguments.index(value) for value in reached(written, _sources) if value in arguments)


def _sources(value: Value) -> Sequence[Value]:
    """The values that an address may come from in one step.

    Integers that move a pointer are no address unless it is cast from one.
    """
    handed, op = handed_from(value), value.defining_op
    if handed is not None:
        return handed
    if op is None:
        parent = value.defining_block.parent_op
        return () if parent is None or isinstance(parent, tt.Func) else parent.operands
    if isinstance(op, tt.IntToPtr):
        return op.operands
    is_address = not isinstance(element_type(value.type), IntegerType)
    return [o for o in op.operands if not (is_address and isinstance(element_type(o.type), IntegerType))]
