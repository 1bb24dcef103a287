"""Arrays that start where 2D block accesses may, or at a chosen distance from such a place."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ALIGNMENT = 64  # bytes, of what block accesses ask for


def aligned(array: Array, beyond: int = 0) -> Array:
    """A copy whose address is so many bytes beyond a multiple of `ALIGNMENT`."""
    memory = np.zeros(array.nbytes + beyond + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT + beyond
    made = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
