"""Whether an engine may do an access of a block in an order of its own, for all that the program does beside it.

Level: tt. Takes the accesses of a function whose block pointers are made right before their use; changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.analysis.aliasing import (
    GLOBAL_READS,
    GLOBAL_WRITES,
    argument_of,
    may_alias,
    pointer_of,
    through_other_parameter,
    waits_for_own_programs,
)
from mltriton.analysis.rectangles import NotRegular
from mltriton.dialects import tt
from mltriton.ir.operation import Operation, Value

Access = tt.Load | tt.Store | tt.DescriptorLoad | tt.DescriptorStore


def other_arrays(function: tt.Func, accesses: Iterable[Operation], op: Access) -> tuple[Value, ...]:
    """The parameters that may be the same array as an access's as far as the program shows, and must not be. Raises
    `NotRegular` where anything else may access the memory, but a load in front of a store that both happen once, and
    writes of the same kind: stores by one engine wait for each other (`copy-blocks`), updates need not.
    """
    if waits_for_own_programs(function):
        raise NotRegular(
            "the program has atomic operations or assembly with effects, which may order memory between programs"
        )
    loads, apart = isinstance(op, tt.Load | tt.DescriptorLoad), set[Value]()
    for other in accesses:
        if isinstance(other, GLOBAL_WRITES if loads else GLOBAL_READS):
            load, write = (op, other) if loads else (other, op)
            if _in_order(function, load, write):
                continue
        elif loads or (_update_of(other) == _update_of(op) and not _must_be_apart(other, op)):
            continue
        if _elsewhere(other, op) or not may_alias(other, op):
            continue
        if not through_other_parameter(other, op):
            raise NotRegular("the program may load, or update, what it stores", "Store to another array.")
        apart.add(cast(Value, argument_of(pointer_of(other))))
    return tuple(argument for argument in function.body.block.arguments if argument in apart)


def stores_beside(accesses: Iterable[Operation], op: Access) -> Iterator[tt.Store | tt.DescriptorStore]:
    """The other stores, or updates, through the same parameter."""
    for other in accesses:
        if other is op or not isinstance(other, tt.Store | tt.DescriptorStore):
            continue
        if may_alias(other, op) and not through_other_parameter(other, op):
            yield other


def _in_order(function: tt.Func, load: Operation, write: Operation) -> bool:
    """Whether a load happens in front of a store whenever both do."""
    body = function.body.block
    first, second = _in_body(load, body), _in_body(write, body)
    return first is not second and body.position(first) < body.position(second)


def _in_body(op: Operation, body: object) -> Operation:
    """The operation of a block that another one is, or is inside of."""
    while op.block is not body:
        parent = op.parent_op
        assert parent is not None
        op = parent
    return op


def _must_be_apart(a: Operation, b: Operation) -> bool:
    """Whether two writes of one kind are stores to two parameters."""
    return not isinstance(a, tt.DescriptorReduce) and through_other_parameter(a, b)


def _elsewhere(a: Operation, b: Operation) -> bool:
    """Whether an access through one parameter is at other indices than one through another: then they are not the same
    array.
    """
    first, second = _indices(a), _indices(b)
    return first is not None and second is not None and first != second and through_other_parameter(a, b)


def _update_of(op: Operation) -> str:
    """What becomes of memory that an operation writes or reads: the kind of an update, else the operation's."""
    if isinstance(op, tt.DescriptorReduce):
        return op.kind
    return "store" if isinstance(op, tt.Store | tt.DescriptorStore) else op.name


def _indices(op: Operation) -> list[Polynomial] | None:
    """The first element of a block in its tensor; None where that is not known."""
    if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
        return list(map(Polynomial.of, op.indices))
    maker = op.ptr.defining_op if isinstance(op, tt.Load | tt.Store) else None
    return list(map(Polynomial.of, maker.offsets)) if isinstance(maker, tt.MakeTensorPtr) else None
