"""Finds a target by its name, and what a module says about its target.

Level: all. Names are `cpu`, `cpu:avx2`, `generic`, ...: a family, or a family and a variant. A target's module is imported when it is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from mltriton.dialects.builtin import Module
from mltriton.errors import DeviceError
from mltriton.ir.attributes import IntegerAttr, StringAttr
from mltriton.targets.base import TargetSpec

# family -> module with `spec(variant: str) -> TargetSpec`; the variant is "" for the plain family name.
SPECS: dict[str, str] = {
    "cpu": "mltriton.targets.cpu.spec",
    "generic": "mltriton.targets.generic.spec",
}


@cache
def spec(name: str) -> TargetSpec:
    """The description of a target. Raises `DeviceError` for an unknown name."""
    family, _, variant = name.partition(":")
    if family not in SPECS:
        raise DeviceError(f"unknown target {name!r}; there are: {', '.join(sorted(SPECS))}")
    return import_module(SPECS[family]).spec(variant)


def spec_of(module: Module) -> TargetSpec:
    """The target that the module is compiled for: its attribute `ttg.target`."""
    target = module.attributes.get("ttg.target")
    return spec(target.value if isinstance(target, StringAttr) else "generic")


def num_warps_of(module: Module) -> int:
    """Warps of a program: the attribute `ttg.num-warps` (4 when absent), unless the target runs every program with its own number."""
    asked = module.attributes.get("ttg.num-warps")
    fixed = spec_of(module).workgroup_warps
    return fixed if fixed is not None else asked.value if isinstance(asked, IntegerAttr) else 4
