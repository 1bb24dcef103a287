"""`gpu` on the machine: the warp's id and the barrier. Level: ttg to intrinsic."""

from __future__ import annotations

import numpy as np

from mltriton.dialects import gpu
from mltriton.executor.code import STOP, Handler, Stop, Table
from mltriton.executor.machine import Warp
from mltriton.ir.operation import Operation


def subgroup_id(op: Operation) -> Handler:
    """The warp's id in its program."""

    def call(warp: Warp) -> np.int64:
        return np.int64(warp.id)

    return call


def barrier(op: Operation) -> Handler:
    """Stop until all warps have come here."""

    def call(warp: Warp) -> Stop:
        return STOP

    return call


TABLE: Table = {gpu.SubgroupId: subgroup_id, gpu.Barrier: barrier}
