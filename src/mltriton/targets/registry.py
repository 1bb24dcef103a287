"""Finds a target by its name, and what a module says about its target.

Level: all. Names are `cpu`, `cpu:avx2`, `generic`, ...: a family, or a family and a variant. A family is a package
beside this file: `spec.py` there describes it to passes (`spec(variant) -> TargetSpec`), `target.py` makes machine code
(`create(variant) -> Target`). Both are imported when asked for.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib import import_module

from mltriton.dialects.builtin import Module
from mltriton.errors import TargetError
from mltriton.ir.attributes import IntegerAttr, StringAttr
from mltriton.targets.base import Target, TargetSpec

# family -> its variants; the variant of the plain family name is "".
FAMILIES: dict[str, tuple[str, ...]] = {
    "cpu": ("avx512", "avx512-vnni", "avx512-bf16", "avx2", "sse", "neon"),
    "generic": (),
}


def names() -> list[str]:
    """Every target name: families, and families with a variant."""
    return [name for family, variants in FAMILIES.items() for name in (family, *(f"{family}:{v}" for v in variants))]


@cache
def spec(name: str) -> TargetSpec:
    """The description of a target. Raises `TargetError` for an unknown name."""
    family, variant = _split(name)
    return import_module(f"mltriton.targets.{family}.spec").spec(variant)


@cache
def target(name: str) -> Target:
    """The target itself. Raises `TargetError` for an unknown name."""
    family, variant = _split(name)
    return import_module(f"mltriton.targets.{family}.target").create(variant)


def spec_of(module: Module) -> TargetSpec:
    """The target that the module is compiled for: its attribute `ttg.target`."""
    target = module.attributes.get("ttg.target")
    return spec(target.value if isinstance(target, StringAttr) else "generic")


def num_warps_of(module: Module) -> int:
    """Warps of a program.

    The attribute `ttg.num-warps` (4 when absent), unless the target runs every program with its own number.
    """
    asked = module.attributes.get("ttg.num-warps")
    fixed = spec_of(module).workgroup_warps
    return fixed if fixed is not None else asked.value if isinstance(asked, IntegerAttr) else 4


def _split(name: str) -> tuple[str, str]:
    if name not in names():
        close = get_close_matches(name, names(), n=1)
        hint = f"Did you mean {close[0]}?" if close else f"The targets are {', '.join(names())}."
        raise TargetError(f"unknown target {name!r}", hint=hint)
    family, _, variant = name.partition(":")
    return family, variant
