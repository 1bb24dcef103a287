"""Where block pointers come from: the `tt.make_tensor_ptr` operations that a value may stem from.

Level: tt. Takes a function; changes nothing. Advances, loops, branches and selects are looked through. Says which
parts (base, sizes, strides, offsets: the operands of a `tt.make_tensor_ptr`) of a block pointer that control flow hands
on may differ from one execution to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from mltriton.dialects import arith, scf, tt
from mltriton.dialects.scf_flow import handed_from
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import reached

OperationT = TypeVar("OperationT", bound=Operation)


class Roots:
    """The origins of every block pointer that a loop or branch of a function hands on; they stay true while the
    function is rewritten.
    """

    def __init__(self, function: tt.Func) -> None:
        handed_on = (value for value in _handed_on(function) if is_block_pointer(value.type))
        self._found = {value: tuple(origins(value, tt.MakeTensorPtr)) for value in handed_on}

    def of(self, value: Value) -> tuple[tt.MakeTensorPtr, ...]:
        """The operations that may have made a block pointer, in the order of discovery."""
        return self._found[value]

    def changing(self, value: Value, join: Operation) -> list[bool]:
        """For each part, whether `join`, the loop or branch that hands the block pointer on, must hand it on too.

        Offsets always do. Another part does where the origins differ in it, or it is computed inside `join`.
        """
        makers = self.of(value)
        rank = len(makers[0].offsets)
        fixed = len(makers[0].operands) - rank
        parts = [{maker.operands[i] for maker in makers} for i in range(fixed)]
        return [len(values) > 1 or is_defined_inside(next(iter(values)), join) for values in parts] + [True] * rank


def _handed_on(function: tt.Func) -> Iterator[Value]:
    """Results and arguments of loops and branches."""
    for op in function.walk():
        if isinstance(op, scf.For | scf.While | scf.If):
            yield from op.results
            for block in op.blocks:
                yield from block.arguments


def origins(value: Value, maker: type[OperationT]) -> list[OperationT]:
    """The operations of class `maker` that may have made a value, in the order of discovery."""
    makers = (found.defining_op for found in reached([value], sources_of))
    return [op for op in makers if isinstance(op, maker)]


def sources_of(value: Value) -> Sequence[Value]:
    """What a value may be, one step back through advances, selects, loops and branches."""
    op = value.defining_op
    if isinstance(op, tt.Advance):
        return [op.ptr]
    if isinstance(op, arith.Select):
        return [op.true_value, op.false_value]
    return handed_from(value) or ()
