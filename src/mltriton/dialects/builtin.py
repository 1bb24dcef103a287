"""`builtin`: the module. Level: all."""

from __future__ import annotations

from mltriton.ir.definition import region
from mltriton.ir.operation import Block, Operation, Region


class Module(Operation):
    """Top level: functions, and what is true of the whole program as attributes (`ttg.num-warps`, `ttg.target`,
    `tile.scratch_bytes`, `mltriton.level`).
    """

    name = "builtin.module"
    isolated = True
    body = region()

    @staticmethod
    def empty() -> Module:
        """A module without functions."""
        return Module(regions=[Region([Block()])])
