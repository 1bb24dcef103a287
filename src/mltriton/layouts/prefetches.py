"""How a block is cut between all warps of a program to be prefetched: each brings other lines of memory.

Level: ttg. Takes the block, the dimension that lies next to each other in memory and the number of warps; gives the
encoding of the block pointer to prefetch through. Guarantees: no two warps have the same part while there are lines
left to share; one access takes at most the rows and bytes of `BlockIO`.
"""

from __future__ import annotations

from mltriton.ir.types import TensorType, byte_width
from mltriton.layouts.xe import Subgroup2DBlockEncoding
from mltriton.targets.base import BlockIO


def prefetch_encoding(
    block: TensorType, contiguous: int, num_warps: int, limits: BlockIO, threads: int
) -> Subgroup2DBlockEncoding:
    """Warps are laid along memory first, a line of `max_row_bytes` each, then across; a block has two dimensions."""
    width, across = byte_width(block.element), 1 - contiguous
    line = min(block.shape[contiguous], limits.max_row_bytes // width)
    along = _share(num_warps, block.shape[contiguous] // line)
    warps, share = [1, 1], list(block.shape)
    warps[contiguous] = along
    warps[across] = _share(num_warps // along, block.shape[across])
    share = [extent // count for extent, count in zip(block.shape, warps, strict=True)]
    rows, columns = min(share[0], limits.max_rows), min(share[1], limits.max_row_bytes // width)
    column = min(columns, max(threads, columns // limits.max_blocks))
    return Subgroup2DBlockEncoding(
        (warps[0], warps[1]),
        (rows, column),
        columns // column,
        (contiguous, across),
        width,
        threads,
        (share[0], share[1]),
    )


def _share(num_warps: int, parts: int) -> int:
    """The largest power of two of warps that have a part each."""
    return 1 << (max(1, min(num_warps, parts)).bit_length() - 1)
