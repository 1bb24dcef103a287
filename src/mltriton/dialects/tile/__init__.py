"""`tile`: the intrinsic level of targets whose tiles live in memory, and the loop nests that lead there.

Level: warp (`nests.py`: `tile.nest`, `tile.fill`, `tile.pack`) and intrinsic (`chunks.py`).
"""

# `__all__` of each module names what there is.
# ruff: noqa: F403
from mltriton.dialects.tile.chunks import *
from mltriton.dialects.tile.nests import *
