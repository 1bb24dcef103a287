"""Launch grids: what stands between the brackets of `kernel[grid]`.

Level: runtime. Guarantees: a grid is three integers from 0 to 2**31 - 1, or a `GridError`. With a 0 nothing runs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import gcd
from typing import Any, cast

from mltriton.errors import GridError
from mltriton.runtime.arithmetic import cdiv

Grid = tuple[int, int, int]
MAX_PROGRAMS = 2**31 - 1
check_integers = gcd  # what takes integers alone in the least time: 4.0 is found where 4 is kept, and is a TypeError


class EmptyGridError(Exception):
    """What a function gave is a grid of no programs: the launch ends here, which is no mistake."""


def even_programs(blocks: int, most: int) -> int:
    """As few programs as compute so many blocks in as many rounds as the most would."""
    return max(1, cdiv(blocks, max(1, cdiv(blocks, most))))


def normalize(grid: Any) -> Grid:
    """A grid as three integers: an int, or a tuple or list of one to three ints (numpy's and constexpr included)."""
    sizes: tuple[Any, ...] = tuple(cast("Sequence[Any]", grid)) if isinstance(grid, list | tuple) else (grid,)
    if not 1 <= len(sizes) <= 3:
        raise GridError(f"a grid has one to three dimensions, not {len(sizes)}", found=repr(sizes))
    x, y, z = (*map(_size, sizes), 1, 1)[:3]
    return x, y, z


def _size(size: Any) -> int:
    try:
        count = operator.index(size)
    except TypeError:
        raise GridError(
            "the dimensions of a grid are integers", found=f"{size!r} of type {type(size).__name__}"
        ) from None
    if not 0 <= count <= MAX_PROGRAMS:
        raise GridError(f"a grid dimension is from 0 to {MAX_PROGRAMS}", found=str(count))
    return count
