"""Where a launch came by: which loads and stores ran, and how often in each program.

Level: all. Takes a table of operations and gives one that also counts. Guarantees: an access counts only where it
touches an element: where the block of a block pointer and its tensor meet, where a mask is not all false; what is
computed is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from mltriton.dialects import tt
from mltriton.executor.blocks import TensorView
from mltriton.executor.code import Handler, Maker, Table
from mltriton.executor.machine import Coordinate, Warp
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType

_COUNTED = (tt.Load, tt.Store)


class Visits:
    """`counts[op][program]`: how often an operation ran in a program instance."""

    def __init__(self) -> None:
        self.counts: dict[Operation, Counter[Coordinate]] = {}

    def table(self, table: Table) -> Table:
        """The same operations, counted."""
        return {**table, **{kind: self._counting(table[kind]) for kind in _COUNTED}}

    def _counting(self, make: Maker) -> Maker:
        def made(op: Operation) -> Handler:
            handler = cast(Callable[..., Any], make(op))

            def call(warp: Warp, *operands: Any) -> Any:
                if _counts(op, operands):
                    self.counts.setdefault(op, Counter())[warp.program] += 1
                return handler(warp, *operands)

            return call

        return made


def _counts(op: Operation, operands: tuple[Any, ...]) -> bool:
    """Whether an access touches an element."""
    assert isinstance(op, tt.Load | tt.Store)
    view = operands[0]
    if not isinstance(view, TensorView):
        index = 1 if isinstance(op, tt.Load) else 2
        return op.mask is None or bool(np.any(operands[index]))
    block = cast(TensorType, op.result.type if isinstance(op, tt.Load) else op.value.type)
    inside = view.inside(block.shape, range(block.rank))
    return inside is None or bool(np.any(inside))
