"""CPUs as passes see them: one warp a program, blocks in memory, chunks of one f32 vector register.

Level: data, made from `features.py`.
"""

from __future__ import annotations

from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, Type
from mltriton.targets.base import MicroKernel, Storage, TargetSpec
from mltriton.targets.cpu.features import FEATURES, CpuFeatures, host

PIPELINE = (
    "inline,canonicalize,cse,combine,reorder-broadcast,"
    "split-uniform-increments,normalize-block-pointers,canonicalize,cse,licm,dce",
    "assign-layouts,cse",
    "distribute-to-warps,canonicalize,cse,licm,dce",
    "match-target-size,dce",
)


_F32 = MicroKernel(F32, F32)
_I32 = MicroKernel(I32, I32)
_I8_QUADS = MicroKernel(I8, I32, group=4, column_multiple=4)
_BF16_PAIRS = MicroKernel(BF16, F32, group=2, column_multiple=4)


def micro_kernels(features: CpuFeatures) -> dict[Type, tuple[MicroKernel, ...]]:
    """Dots by operand element type: narrow floats are multiplied as f32 where there is no instruction for pairs."""
    return {
        F32: (_F32,),
        F64: (MicroKernel(F64, F64),),
        **dict.fromkeys((F16, F8E4M3, F8E5M2), (_F32,)),
        BF16: (_BF16_PAIRS, _F32) if features.bf16_dot else (_F32,),
        I8: (_I8_QUADS, _I32),
        **dict.fromkeys((I16, I32), (_I32,)),
    }


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
        micro_kernels=micro_kernels(features),
        pipeline=PIPELINE,
    )
