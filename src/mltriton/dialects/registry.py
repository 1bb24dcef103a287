"""Finds an operation class by its name. Level: all."""

from __future__ import annotations

from functools import cache

from mltriton.dialects import arith, builtin, gpu, math, scf, tile, tt, ttg, ttig
from mltriton.ir.operation import Operation

DIALECTS = (builtin, arith, math, scf, gpu, tt, ttg, ttig, tile)


@cache
def operations() -> dict[str, type[Operation]]:
    """Every registered operation class by its full name (`tt.load`)."""
    return {
        item.name: item
        for dialect in DIALECTS
        for item in vars(dialect).values()
        if isinstance(item, type) and issubclass(item, Operation) and item.name != Operation.name
    }
