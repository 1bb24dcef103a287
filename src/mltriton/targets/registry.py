"""Finds what passes ask about a target, and what a module says about its target.

Level: all. Names are `cpu`, `cpu:avx2`, `generic`, ...: a family, or a family and a variant (`targets/target.py`). A
family's `spec.py` has `spec(variant) -> TargetSpec`; it is imported when it is asked for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from mltriton.errors import TargetError
from mltriton.ir.attributes import integer_in, string_in
from mltriton.ir.module import Module, is_warp_level
from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.target import module_of, split_name

TOTAL_WARPS = "ttg.total-num-warps"  # of a module in which some warps share none of a program's blocks
TAKES_TURNS = "ttg.takes-turns"  # of a module whose programs do the work of all, however many of them run
# Of a module whose programs have a multiprocessor each: how many would share it without what `in_one_round` gives up.
BESIDE = "ttg.programs-in-one-round"


@cache
def spec(name: str) -> TargetSpec:
    """The description of a target. Raises `TargetError` for an unknown name."""
    family, variant = split_name(name)
    return module_of(family, "spec").spec(variant)


def spec_of(module: Module) -> TargetSpec:
    """The target that the module is compiled for, its attribute `ttg.target`; where it has wide warps and the module's
    attribute `ttg.threads-per-warp` asks for them, with these.
    """
    usual = spec(string_in(module.attributes, "ttg.target", "generic"))
    lanes = integer_in(module.attributes, "ttg.threads-per-warp", usual.warp_size)
    wide = usual.wide_warps is not None and lanes == usual.wide_warps.lanes
    return _with_wide_warps(usual.name) if wide else usual


def spec_in_memory(module: Module, name: str) -> TargetSpec:
    """The module's target, for the pass of this name. Raises `TargetError` where blocks lie in registers."""
    found = spec_of(module)
    if found.storage is not Storage.MEMORY:
        raise TargetError(f"{name} is for targets whose blocks lie in memory", expected="cpu", found=found.name)
    return found


@cache
def _with_wide_warps(name: str) -> TargetSpec:
    usual = spec(name)
    return usual if usual.wide_warps is None else replace(usual, warp_size=usual.wide_warps.lanes)


def fewer_stages_of(module: Module) -> int:
    """How many stages loops have to do with less, for shared memory to hold all else."""
    return integer_in(module.attributes, "ttg.fewer-stages", 0)


def most_registers_of(module: Module) -> int:
    """How many registers the program says that a lane may have; 0 where it does not."""
    return integer_in(module.attributes, "ttg.maxnreg", 0)


def num_warps_of(module: Module) -> int:
    """Warps of a program.

    The attribute `ttg.num-warps` (4 when absent), unless the target runs every program of a workgroup-level kernel
    with its own number.
    """
    fixed = None if is_warp_level(module) else spec_of(module).workgroup_warps
    return fixed if fixed is not None else integer_in(module.attributes, "ttg.num-warps", 4)


def total_warps_of(module: Module) -> int:
    """Warps that a launch starts for a program: with those of a `ttg.warp_specialize` that share none of its blocks."""
    return integer_in(module.attributes, TOTAL_WARPS, num_warps_of(module))


def sharing_warps_of(module: Module) -> int:
    """How many warps of a program share each tensor: one in a warp-level kernel, all of them otherwise."""
    return 1 if is_warp_level(module) else num_warps_of(module)
