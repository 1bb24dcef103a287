"""`tt`: what a Triton kernel says, on whole blocks.

Level: tt to intrinsic (shapes shrink from level to level: a block, a warp's part, one instruction's tile). Names and
operand order are upstream Triton's (TritonOps.td), so that upstream `.ttir` text loads; the block-pointer operations
that upstream removed are kept.
"""

from mltriton.dialects.tt.blocks import Advance, DescriptorLoad, DescriptorStore, MakeTensorDesc, MakeTensorPtr
from mltriton.dialects.tt.compute import Dot, Reduce, ReduceReturn, Scan, ScanReturn, reduced_type
from mltriton.dialects.tt.elementwise import (
    Bitcast,
    ClampF,
    FpToFp,
    InlineAsm,
    IntToPtr,
    MulhiUI,
    PreciseDivF,
    PreciseSqrt,
    PtrToInt,
)
from mltriton.dialects.tt.functions import Call, Func, Return
from mltriton.dialects.tt.memory import AddPtr, AtomicCAS, AtomicRMW, Load, Store, loaded_type
from mltriton.dialects.tt.program import (
    Assert,
    Assume,
    GetNumPrograms,
    GetProgramId,
    MakeRange,
    Print,
    Python,
    index_width,
)
from mltriton.dialects.tt.shapes import Broadcast, Cat, ExpandDims, Gather, Join, Reshape, Splat, Split, Trans, Unsplat

__all__ = [
    "AddPtr",
    "Advance",
    "Assert",
    "Assume",
    "AtomicCAS",
    "AtomicRMW",
    "Bitcast",
    "Broadcast",
    "Call",
    "Cat",
    "ClampF",
    "DescriptorLoad",
    "DescriptorStore",
    "Dot",
    "ExpandDims",
    "FpToFp",
    "Func",
    "Gather",
    "GetNumPrograms",
    "GetProgramId",
    "InlineAsm",
    "IntToPtr",
    "Join",
    "Load",
    "MakeRange",
    "MakeTensorDesc",
    "MakeTensorPtr",
    "MulhiUI",
    "PreciseDivF",
    "PreciseSqrt",
    "Print",
    "PtrToInt",
    "Python",
    "Reduce",
    "ReduceReturn",
    "Reshape",
    "Return",
    "Scan",
    "ScanReturn",
    "Splat",
    "Split",
    "Store",
    "Trans",
    "Unsplat",
    "index_width",
    "loaded_type",
    "reduced_type",
]
