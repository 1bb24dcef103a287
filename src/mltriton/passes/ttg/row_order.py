"""In which order the matrix engine takes the rows of a left operand: that in which it arrives at least cost.

Level: ttg, part of `assign-lanes`. A transposing load of elements of less than 32 bits brings words of several rows;
taking them apart costs one move for each run of elements that become neighbours, and in another order of rows the runs
can be longer. The result of the dot then has its rows in that order, too. Guarantees: the order changes only where
every dot whose result has the encoding gains, in a loop, and where no dot takes the result as an operand, which would
have to be put in order inside of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from mltriton.analysis.block_io import BlockAccess
from mltriton.dialects import scf, tt, ttg
from mltriton.ir.operation import Operation, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import TensorType, byte_width
from mltriton.layouts.encodings import MatrixEncoding, operand_of
from mltriton.targets.base import BlockIO, Wanted


def best_rows(
    dots: Sequence[tt.Dot],
    own: MatrixEncoding,
    accesses: Iterable[BlockAccess],
    limits: BlockIO,
    threads: int,
) -> MatrixEncoding:
    """The encoding `own` of the results of `dots` with the order of rows that suits their left operands."""
    known: dict[Operation, BlockAccess] = {access.op: access for access in accesses}
    loads = [_load(dot, known) for dot in dots]
    in_loops = all(dot.ancestor(scf.For, scf.While) is not None for dot in dots)
    if not in_loops or any(load is None or not load.transposes for load in loads):
        return own
    orders = [own, *own.row_orders()]

    def cost(order: MatrixEncoding) -> int:
        """Of all left operands; of orders that cost the same the natural one is first."""
        return sum(_cost(load, order, limits, threads) for load in loads if load is not None)

    best = min(orders, key=cost)
    return own if best is own or any(_feeds_a_dot(dot.result) for dot in dots) else best


def _load(dot: tt.Dot, accesses: Mapping[Operation, BlockAccess]) -> BlockAccess | None:
    """The access that brings a left operand, as it is."""
    op = dot.a.defining_op
    while isinstance(op, ttg.ConvertLayout):
        op = op.source.defining_op
    return None if op is None else accesses.get(op)


def _cost(load: BlockAccess, order: MatrixEncoding, limits: BlockIO, threads: int) -> int:
    block, choose = load.block, limits.choose
    assert load.contiguous is not None and choose is not None
    width = byte_width(block.element)
    choice = choose(Wanted(operand_of(order, 0, width), block.shape, width, load.contiguous, False), limits, threads)
    return 0 if choice is None else choice.cost


def _feeds_a_dot(result: Value) -> bool:
    """Whether a dot takes as an operand what is computed of a result."""
    return any(
        isinstance(op, tt.Dot) and value in (op.a, op.b)
        for value in reached([result], lambda value: [each for op in value.users for each in _computed(op, value)])
        for op in value.users
    )


def _computed(op: Operation, value: Value) -> Iterable[Value]:
    """What depends on a value that an operation takes: results, and where regions are, what these are handed."""
    regions = op.blocks
    arguments = [argument for block in regions for argument in block.arguments]
    handed = op.parent_op.results if isinstance(op, scf.Yield) and op.parent_op is not None else ()
    looped = op.parent_op.regions[0].block.arguments if isinstance(op.parent_op, scf.For | scf.While) and handed else ()
    found = (*op.results, *arguments, *handed, *looped)
    return [other for other in found if isinstance(cast(object, other.type), TensorType)]
