"""A target for tests of passes: blocks in registers of 32 lanes, `mma.sync` for dots, no accesses of 2D blocks.

`register(monkeypatch)` makes `mma` a target's name for the time of a test; it compiles down to the intrinsic level.
"""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from mltriton.ir.types import BF16, F16, F32, I8
from mltriton.layouts.nvidia import mma_sync, wgmma
from mltriton.targets import target
from mltriton.targets.base import DotSize, Home, Storage, TargetSpec
from mltriton.targets.generic.target import GenericTarget

NAME = "mma"
SYNC = DotSize(16, 8, 16, encoding=mma_sync)
GROUPED = DotSize(
    256,
    256,
    16,
    warps=4,
    a=Home.EITHER,
    b=Home.SHARED,
    asynchronous=True,
    fewer_rows=(16, 32),
    fewer_columns=(16, 32, 64, 128),
    encoding=wgmma,
    otherwise=SYNC,
)
SPECS = {
    "mma": {F16: SYNC, BF16: SYNC, F32: SYNC._replace(k=8), I8: SYNC._replace(k=32)},
    "mma:ahead": {F16: SYNC, BF16: SYNC, F32: SYNC._replace(k=8), I8: SYNC._replace(k=32)},
    "mma:grouped": {F16: GROUPED, BF16: GROUPED, F32: SYNC._replace(k=8), I8: SYNC._replace(k=32)},
}


def spec(variant: str) -> TargetSpec:
    """The description."""
    name = f"{NAME}:{variant}" if variant else NAME
    return TargetSpec(
        name=name,
        storage=Storage.REGISTERS,
        warp_size=32,
        dot=SPECS[name],
        has_lanes=True,
        register_bytes=128,
        copy_bytes=(4, 8, 16) if variant else (),
        shared_bytes=228 * 1024,
        pipeline=(
            "inline,canonicalize,cse,combine,convert-dot-operands,canonicalize,cse,licm,dce",
            "assign-layouts,cse,assign-lanes,dce,pipeline-loads,dce,cse,delay-dots,start-dots,verify-encodings",
            "distribute-to-warps,lower-cross-warp,fence-shared-memory,assign-lanes,canonicalize,cse,licm,dce,verify-encodings",
            "match-target-size,canonicalize,cse,dce,verify-encodings",
        ),
    )


class MmaTarget(GenericTarget):
    """As far as there is one: no machine code."""

    def __init__(self, variant: str) -> None:
        self.name = f"{NAME}:{variant}" if variant else NAME


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `mma`, `mma:ahead` (with asynchronous copies) and `mma:grouped` (with `wgmma`, too) names of targets."""
    monkeypatch.setitem(target.FAMILIES, NAME, ("ahead", "grouped"))
    for name, members in (("", {}), (".spec", {"spec": spec}), (".target", {"create": MmaTarget})):
        module = ModuleType(f"mltriton.targets.{NAME}{name}")
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, module.__name__, module)
