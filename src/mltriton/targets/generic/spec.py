"""The generic GPU: Intel Ponte Vecchio's sizes, compiled down to the intrinsic level.

Level: data. Source: ML-Triton paper, table 1 and sections 2.3 and 2.5 (dot 8x16x16 for 16-bit operands, loads of
32x32, 16 lanes, 128 KB shared memory).
"""

from __future__ import annotations

from mltriton.ir.types import BF16, F16, F32, I8, Type
from mltriton.targets.base import BlockIO, DotSize, RegisterMode, Storage, TargetSpec
from mltriton.targets.xe.layouts.prefetches import prefetch_encoding

# Elements along K of a dot: 8 steps of 32 bits.
DOT_STEPS: dict[Type, int] = {F16: 16, BF16: 16, F32: 8, I8: 32}

GENERIC = TargetSpec(
    name="generic",
    storage=Storage.REGISTERS,
    warp_size=16,
    max_warps=64,
    dot={element: DotSize(8, 16, k, fewer_rows=(1, 2, 4)) for element, k in DOT_STEPS.items()},
    block_load=BlockIO(max_rows=32, max_row_bytes=64, max_blocks=4, store_rows=8, prefetched=prefetch_encoding),
    register_bytes=64,
    register_modes=(RegisterMode(128, 64), RegisterMode(256, 32)),
    shared_bytes=128 * 1024,
    pipeline=(
        "inline,rewrite-descriptor-reduces,canonicalize,cse,combine,reorder-broadcast,"
        "normalize-block-pointers,canonicalize,cse,licm,dce,check-warp-level",
        "assign-layouts,cse,verify-encodings",
        "distribute-to-warps,lower-cross-warp,canonicalize,cse,licm,dce,verify-encodings",
        "match-target-size,canonicalize,cse,dce",
    ),
)


def spec(variant: str) -> TargetSpec:
    """The description; there are no variants."""
    return GENERIC
