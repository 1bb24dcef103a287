"""How a block is cut between all warps of a program to be prefetched: each brings other lines of memory.

Level: ttg. Takes the block, the dimension that lies next to each other in memory and the number of warps; gives the
encoding of the block pointer to prefetch through, or None where one access has fewer elements than a warp has lanes.
Guarantees: no two warps have the same part while there are lines left to share, of an element for each lane; one access
takes at most the rows and bytes of `BlockIO`.
"""

from __future__ import annotations

import math

from mltriton.ir.types import TensorType, byte_width
from mltriton.targets.base import BlockIO
from mltriton.targets.xe.layouts.encodings import Subgroup2DBlockEncoding


def prefetch_encoding(
    block: TensorType, contiguous: int, num_warps: int, limits: BlockIO, threads: int
) -> Subgroup2DBlockEncoding | None:
    """Warps are laid along memory first, a line of `max_row_bytes` each, then to batches, then across."""
    width, across = byte_width(block.element), 2 * block.rank - 3 - contiguous
    line = min(block.shape[contiguous], limits.max_row_bytes // width)
    warps, left = [1] * block.rank, _share(num_warps, math.prod(block.shape) // threads)
    for dim in (contiguous, *reversed(range(block.rank - 2)), across):
        warps[dim] = _share(left, block.shape[dim] // (line if dim == contiguous else 1))
        left //= warps[dim]
    per_warp = tuple(extent // count for extent, count in zip(block.shape, warps, strict=True))
    along_rows = contiguous == block.rank - 1
    most = limits.max_rows, limits.max_row_bytes // width
    rows, columns = map(min, per_warp[-2:], most if along_rows else reversed(most))
    column = min(columns, max(threads, columns // limits.max_blocks)) if along_rows else columns
    if rows * column < threads:
        return None
    order = (contiguous, across, *reversed(range(block.rank - 2)))
    fields = (tuple(warps), (rows, column), columns // column, order, width, threads)
    return Subgroup2DBlockEncoding(*fields, per_warp)


def _share(num_warps: int, parts: int) -> int:
    """The largest power of two of warps that have a part each."""
    return 1 << (max(1, min(num_warps, parts)).bit_length() - 1)
