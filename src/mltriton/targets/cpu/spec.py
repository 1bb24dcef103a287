"""CPUs as passes see them: one warp a program, blocks in memory, chunks of one f32 vector register.

Level: data, made from `features.py`.
"""

from __future__ import annotations

from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.cpu.features import FEATURES, host

PIPELINE = (
    "inline,canonicalize,cse,combine,reorder-broadcast,"
    "split-uniform-increments,normalize-block-pointers,canonicalize,cse,licm,dce",
    "assign-layouts,cse",
    "distribute-to-warps,canonicalize,cse,licm,dce",
    "match-target-size,dce",
)


def spec(variant: str) -> TargetSpec:
    """The description of an instruction set; of this machine's for the plain `cpu`."""
    features = FEATURES[variant] if variant else host()
    return TargetSpec(
        name=f"cpu:{variant}" if variant else "cpu",
        storage=Storage.MEMORY,
        warp_size=1,
        max_warps=1,
        workgroup_warps=1,
        lanes=features.f32_lanes,
        pipeline=PIPELINE,
    )
