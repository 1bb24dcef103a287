"""The blocks of attention's gradients: queries of a step, keys of a program, its warps, by target and dimension.

Level: user. Tables, measured, and what chooses from them; nothing is launched.
"""

from __future__ import annotations

from typing import NamedTuple

import mltriton as triton
from mltriton.kernels.gemm_tiles import FULL
from mltriton.runtime.native.launcher import num_threads


class BackwardBlocks(NamedTuple):
    """Queries of one step, keys that walk over them together, and shares into which the keys of one head are cut.

    `warps` of a program, which share out the keys, so that scores have keys in rows; None where it is one thread.
    `part` of the dimension over which these sum scores at a time; 0 is all of it.
    """

    queries: int
    keys: int
    splits: int
    warps: int | None = None
    part: int = 0


def choose_backward_blocks(n_queries: int, n_keys: int, sequences: int, causal: bool) -> BackwardBlocks:
    """Block sizes for a CPU and so many sequences (batch * kv_heads): many keys share what packing queries costs, but
    on the diagonal they also compute more that a causal mask drops; and every thread shall have something to do.
    Measured on an AVX-512 core with 1 MB of second-level cache, dimensions 64 and 128.
    """
    queries = min(64, max(16, triton.next_power_of_2(n_queries)))
    keys = min(64 if causal else 128, max(16, triton.next_power_of_2(n_keys)))
    threads = num_threads()
    splits = triton.cdiv(2 * threads, sequences) if sequences % threads else 1
    return BackwardBlocks(queries, keys, min(splits, triton.cdiv(n_keys, keys)))


# By family, bytes of an element and dimension: queries, keys, warps, and the part of the dimension summed at a time.
# Intel's compiler keeps a warp's sums in 256 registers then (with f32 from dimension 128 on, the most of them).
WARP_BLOCKS = {
    "xe": {
        2: {64: (32, 32, 4, 0), 128: (16, 32, 8, 0), 256: (16, 32, 16, 0)},
        4: {64: (16, 32, 4, 32), 128: (16, 32, 8, 0), 256: (16, 32, 16, 0)},
    },
    "cuda": {
        2: {64: (32, 64, 4, 0), 128: (32, 64, 8, 0), 256: (16, 32, 8, 0)},
        4: {64: (16, 64, 4, 0), 128: (16, 32, 8, 0), 256: (16, 32, 8, 0)},
    },
}


def choose_warp_blocks(n_keys: int, sequences: int, dim: int, item_bytes: int, family: str = "xe") -> BackwardBlocks:
    """Block sizes for programs of many warps, and no more shares than fill a GPU: each has a dq of its own."""
    queries, keys, warps, part = next(of for most, of in WARP_BLOCKS[family][item_bytes].items() if dim <= most)
    splits = min(triton.cdiv(FULL, sequences), triton.cdiv(n_keys, keys))
    return BackwardBlocks(queries, keys, splits, warps, part)
