"""The tables of all dialects together: how every operation runs.

Level: all. Guarantees (held by a test): every registered operation is in `OPERATIONS`, in `FLOW`, or in `STRUCTURAL`,
which are not run by themselves.
"""

from __future__ import annotations

from mltriton.dialects import scf, tt
from mltriton.dialects import tile as tile_dialect
from mltriton.dialects.ttg import WarpReturn, WarpYield
from mltriton.executor.code import FlowTable, Table
from mltriton.executor.dialects import (
    arith,
    assembly,
    gpu,
    math,
    specialization,
    tile,
    tt_blocks,
    tt_dot,
    tt_memory,
    ttg,
    ttig,
    ttng,
    warps,
)
from mltriton.executor.dialects import scf as flow
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation

OPERATIONS: Table = {
    **arith.TABLE,
    **math.TABLE,
    **gpu.TABLE,
    **tt_blocks.TABLE,
    **tt_memory.TABLE,
    **tt_dot.TABLE,
    **ttg.TABLE,
    **ttig.TABLE,
    **ttng.TABLE,
    **tile.TABLE,
    **assembly.TABLE,
}
FLOW: FlowTable = {**flow.FLOW, **tt_dot.FLOW, **warps.FLOW, **specialization.FLOW, **tile.FLOW}
STRUCTURAL: frozenset[type[Operation]] = frozenset(
    {
        Module,
        tt.Func,
        tt.Return,
        tt.ReduceReturn,
        tt.ScanReturn,
        scf.Yield,
        scf.Condition,
        tile_dialect.Yield,
        WarpYield,
        WarpReturn,
    }
)
