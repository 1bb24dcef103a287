"""Promises of what control flow makes.

Level: `tt`. Takes a function's finished body and what is promised of values that no operation of their own makes:
arguments of loops, results of loops and branches. Guarantees: a promise about a loop's counter is an attribute of the
loop; one about any other integer or pointer is that of a sum with 0, which all else takes in the value's place. What
is promised of parameters is left to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.dialects import arith, scf, tt
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Block, BlockArgument, Operation, OpResult, Value
from mltriton.ir.promises import DIVISIBILITY, promise
from mltriton.ir.types import I1, I32, IntegerType, PointerType, TensorType, element_type, like

Promised = Mapping[str, tuple[int, ...]]


def in_place(promises: Mapping[Value, Promised], entry: Block) -> dict[Value, Promised]:
    """Put promises where the value is made; gives those of the entry block's arguments."""
    of_parameters: dict[Value, Promised] = {}
    for value, promised in promises.items():
        if isinstance(value, BlockArgument) and value.block is entry:
            of_parameters[value] = promised
        elif value.users:
            _put(value, promised)
    return of_parameters


def _put(value: Value, promised: Promised) -> None:
    if isinstance(value, BlockArgument):
        loop, ops = value.block.parent_op, value.block.ops
        if isinstance(loop, scf.For) and value is loop.counter:
            promise(loop, {name: numbers for name, numbers in promised.items() if name == DIVISIBILITY})
        else:
            _promise_sum(Builder().before(ops[0]), value, promised)
    elif isinstance(value, OpResult) and value.op.block is not None:
        ops = value.op.block.ops
        _promise_sum(Builder().before(ops[ops.index(value.op) + 1]), value, promised)


def _promise_sum(builder: Builder, value: Value, promised: Promised) -> None:
    element = element_type(value.type)
    is_pointer = isinstance(element, PointerType) and not isinstance(element.pointee, TensorType)
    if not is_pointer and (not isinstance(element, IntegerType) or element is I1):
        return
    zero = arith.filled(builder, 0, like(value.type, I32)) if is_pointer else arith.filled(builder, 0, value.type)
    op: Operation = builder.create(tt.AddPtr if is_pointer else arith.AddI, value, zero)
    promise(op, promised)
    value.replace_by(op.results[0])
    op.set_operand(0, value)
