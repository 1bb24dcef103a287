"""`tt`: what a Triton kernel says, on whole blocks.

Level: tt to intrinsic (shapes shrink from level to level: a block, a warp's part, one instruction's tile). Names and
operand order are upstream Triton's (TritonOps.td), so that upstream `.ttir` text loads; the block-pointer operations
that upstream removed are kept.
"""

# `__all__` of each module names what there is.
# ruff: noqa: F403
from mltriton.dialects.tt.blocks import *
from mltriton.dialects.tt.compute import *
from mltriton.dialects.tt.elementwise import *
from mltriton.dialects.tt.functions import *
from mltriton.dialects.tt.pointers import *
from mltriton.dialects.tt.program import *
from mltriton.dialects.tt.shapes import *
