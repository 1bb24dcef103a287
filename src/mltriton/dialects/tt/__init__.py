"""`tt`: what a Triton kernel says, on whole blocks.

Level: tt to intrinsic (shapes shrink from level to level: a block, a warp's part, one instruction's tile). Names and
operand order are upstream Triton's (TritonOps.td), so that upstream `.ttir` text loads; the block-pointer operations
that upstream removed are kept.
"""

from mltriton.dialects.tt import shapes
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
from mltriton.dialects.tt.functions import Call, Func, Return, kernel_of
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
from mltriton.dialects.tt.shapes import *  # noqa: F403 - `__all__` there names them

__all__ = [
    "AddPtr",
    "Advance",
    "Assert",
    "Assume",
    "AtomicCAS",
    "AtomicRMW",
    "Bitcast",
    "Call",
    "ClampF",
    "DescriptorLoad",
    "DescriptorStore",
    "Dot",
    "FpToFp",
    "Func",
    "GetNumPrograms",
    "GetProgramId",
    "InlineAsm",
    "IntToPtr",
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
    "Return",
    "Scan",
    "ScanReturn",
    "Store",
    "index_width",
    "kernel_of",
    "loaded_type",
    "reduced_type",
]
__all__ += shapes.__all__
