"""CPUs as passes see them: one warp a program, blocks in memory, chunks of one f32 vector register.

Level: data, made from `features.py`.
"""

from __future__ import annotations

from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, Type, byte_width
from mltriton.targets.base import IndirectDot, MicroKernel, Storage, TargetSpec
from mltriton.targets.cpu.features import FEATURES, CpuFeatures, host

PIPELINE = (
    "inline,rewrite-descriptor-reduces,canonicalize,cse,combine,reorder-broadcast,"
    "normalize-block-pointers,split-uniform-increments,canonicalize,cse,licm,dce,"
    "flush-powers,fuse-exponents,shorten-powers,check-warp-level",
    "assign-layouts,cse,verify-encodings",
    "distribute-to-warps,lower-cross-warp,merge-k-steps,convert-dot-operands,serialize-warps,"
    "canonicalize,cse,licm,dce,verify-encodings",
    "form-nests,pack-operands,match-target-size,split-wrapped-accesses,prefetch-next-rows,dce,allocate-scratch",
)


# For warp-level kernels, which one thread runs warp after warp: GPUs' numbers, so that a kernel that fits one fits here
# (the memory is a part of the thread's scratch, and stays in a cache of the second level).
MAX_WARPS = 64
SHARED_BYTES = 128 * 1024


def micro_kernels(features: CpuFeatures) -> dict[Type, tuple[MicroKernel, ...]]:
    """Dots by operand element type: narrow floats are multiplied as f32 where there is no instruction for pairs."""

    def kernel(dtype: str, operand: Type, accumulator: Type, group: int = 1) -> MicroKernel:
        panel = features.tile(dtype).vectors * features.lanes(byte_width(accumulator) * 8)
        return MicroKernel(operand, accumulator, group, 1 if group == 1 else 4, panel)

    f32, i32 = kernel("f32", F32, F32), kernel("i32", I32, I32)
    has_bf16 = features.fast_bf16_dot or "bf16" in features.matrix_tiles
    f16 = (kernel("f16", F16, F32, group=2),) if "f16" in features.matrix_tiles else ()
    return {
        F32: (f32,),
        F64: (kernel("f64", F64, F64),),
        F16: (*f16, f32),
        **dict.fromkeys((F8E4M3, F8E5M2), (f32,)),
        BF16: (kernel("bf16", BF16, F32, group=2), f32) if has_bf16 else (f32,),
        I8: (kernel("i8", I8, I32, group=4), i32),
        **dict.fromkeys((I16, I32), (i32,)),
    }


FEW_ROWS = 8  # rows of C up to which B is read once, so that packing it cannot pay


def indirect_dots(features: CpuFeatures) -> dict[tuple[Type, str], IndirectDot]:
    """Dots of few rows: all in f32, bf16 pairs where there is a fast instruction for them."""
    lanes = features.f32_lanes
    wide = {
        (element, layout): IndirectDot(FEW_ROWS, F32, F32, lanes)
        for element in (F32, F16, BF16)
        for layout in ("row", "column")
    }
    if features.fast_bf16_dot:
        wide |= {(BF16, layout): IndirectDot(FEW_ROWS, BF16, F32, 2 * lanes) for layout in ("row", "column")}
    return wide


# Shorter steps along K cost a GEMM up to 20 % in traffic of the accumulator and packing of B (docs/measurements.md).
MERGED_K: dict[Type, int] = {F64: 256, F32: 256, F16: 512, BF16: 512, I8: 512}


def spec(variant: str) -> TargetSpec:
    """The description of an instruction set; of this machine's for the plain `cpu`."""
    features = FEATURES[variant] if variant else host()
    return TargetSpec(
        name=f"cpu:{variant}" if variant else "cpu",
        storage=Storage.MEMORY,
        warp_size=1,
        max_warps=MAX_WARPS,
        workgroup_warps=1,
        shared_bytes=SHARED_BYTES,
        lanes=features.f32_lanes,
        merged_k=MERGED_K,
        micro_kernels=micro_kernels(features),
        indirect_dots=indirect_dots(features),
        cheap_masks=features.avx512,
        pipeline=PIPELINE if features.has_fma else tuple(level.replace("fuse-exponents,", "") for level in PIPELINE),
    )
