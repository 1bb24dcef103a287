"""The module: functions, and what is true of the whole program. Level: all."""

from __future__ import annotations

from collections.abc import Mapping

from mltriton.ir.attributes import Attribute, integer_in, string_in
from mltriton.ir.definition import region
from mltriton.ir.location import UNKNOWN, Location
from mltriton.ir.operation import Block, Operation, Region


class Module(Operation):
    """Top level: functions, and what is true of the whole program as attributes (`ttg.num-warps`, `ttg.target`,
    `tile.scratch_bytes`, `mltriton.level`).
    """

    name = "builtin.module"
    old_names = ("module",)
    syntax = "custom<module>"
    isolated = True
    body = region()

    @staticmethod
    def empty(attributes: Mapping[str, Attribute] | None = None, loc: Location = UNKNOWN) -> Module:
        """A module without functions."""
        return Module((), (), attributes, [Region([Block()])], loc)


def level_of(module: Module) -> str:
    """The level that a module says it is on."""
    return string_in(module.attributes, "mltriton.level", "tt")


def is_warp_level(module: Module) -> bool:
    """Whether the kernel was written for warps: every tensor belongs to one warp, at every level."""
    return bool(integer_in(module.attributes, "mltriton.warp_level", 0))
