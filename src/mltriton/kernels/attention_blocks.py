"""The blocks of attention: queries of a program, keys of a step, warps and stages, by target and dimension of heads.

Level: user. Tables, measured, and what chooses from them; nothing is launched.
"""

from __future__ import annotations

import mltriton as triton
from mltriton.kernels.arrays import Array, item_size
from mltriton.kernels.gemm_gpu import MULTIPROCESSORS
from mltriton.kernels.launch import family_of_warps, stages_on
from mltriton.records import NamedTuple
from mltriton.runtime.native.launcher import num_threads
from mltriton.targets.registry import spec


class Blocks(NamedTuple):
    """Queries of one program instance, keys of one step, and warps that share out the queries; None where a program is
    one thread. `part` of the dimension over which scores are summed at a time; 0 is all of it. `stages` of the loops
    over keys; None is as many as surely have room. `rows`, where a program is one thread: so many queries at a time are
    done with in a step; 0 is all of them. `apart`: blocks of a dimension that is no power of two are two
    (`parts_of_dim`), not one that is filled up.
    """

    queries: int
    keys: int
    warps: int | None = None
    part: int = 0
    stages: int | None = None
    rows: int = 0
    apart: bool = False


# By family or target, bytes of an element and dimension: queries, keys, warps, and the part of the dimension summed at
# a time. Intel's compiler keeps a warp's scores and sums in 256 registers then, NVIDIA's a lane's in 255.
WARP_BLOCKS = {
    "xe": {
        2: {64: Blocks(128, 64, 8), 128: Blocks(128, 64, 16), 256: Blocks(128, 16, 16)},
        4: {64: Blocks(128, 32, 16), 128: Blocks(128, 16, 16), 256: Blocks(128, 16, 16, 64)},
    },
    "cuda": {
        2: {64: Blocks(128, 64, 8), 128: Blocks(128, 64, 8), 256: Blocks(64, 32, 4)},
        4: {64: Blocks(64, 32, 4), 128: Blocks(64, 32, 4), 256: Blocks(64, 16, 4)},
    },
}
# Groups of warps multiply wide blocks best, of which shared memory holds two steps; of dimension 64 four groups, which
# take turns at powers and products, or two where four made programs for some multiprocessors only.
WARP_BLOCKS["cuda:90"] = {
    **WARP_BLOCKS["cuda"],
    2: WARP_BLOCKS["cuda"][2] | {64: Blocks(256, 64, 16, stages=4), 128: Blocks(128, 128, 8, stages=2)},
}
WARP_BLOCKS["cuda:90, few"] = {
    **WARP_BLOCKS["cuda:90"],
    2: WARP_BLOCKS["cuda:90"][2] | {64: Blocks(128, 128, 8, stages=3)},
}


MOST_QUERIES = 512  # of a program on a CPU
LONG = 2048  # queries beside which those that a block on the diagonal computes in vain are few
WIDE = 128  # queries from which on a program has all its warps


def blocks_on(target: str | None, q: Array) -> Blocks | None:
    """`choose_blocks_of_warps` where the warps of a program share blocks; nothing where a program is one thread."""
    family = family_of_warps(target)
    if family is None or target is None:
        return None
    name = spec(target).name  # "cuda" is the GPU at hand.
    machine = name if name in WARP_BLOCKS and q.shape[2] >= WIDE else family
    chosen = choose_blocks_of_warps(q.shape[2], q.shape[3], item_size(q), machine)
    few = f"{machine}, few"
    if few in WARP_BLOCKS and triton.cdiv(q.shape[2], chosen.queries) * q.shape[0] * q.shape[1] < MULTIPROCESSORS:
        return choose_blocks_of_warps(q.shape[2], q.shape[3], item_size(q), few)
    return chosen


def warps_on(target: str | None, q: Array, blocks: Blocks | None) -> tuple[int | None, int | None]:
    """Warps and stages of a launch with such blocks. Keys and values of a step are copied in either loop, with and
    without a mask.
    """
    if blocks is None:
        return None, None
    step_bytes = 2 * 2 * blocks.keys * block_dim(q.shape[3]) * item_size(q)
    return blocks.warps, blocks.stages or stages_on(target, step_bytes)


def block_dim(dim: int) -> int:
    """The dimension of a head in the kernels' blocks."""
    return max(16, triton.next_power_of_2(dim))


def parts_of_dim(dim: int) -> tuple[int, int]:
    """The dimensions of the two blocks of a wide head, the second 0 where one is no larger than both are."""
    first = block_dim(dim) // 2
    rest = block_dim(max(dim - first, 0))
    return (first, rest) if first >= NARROW_HEAD and rest < first else (block_dim(dim), 0)


def choose_blocks_of_warps(n_queries: int, dim: int, item_bytes: int, family: str = "xe") -> Blocks:
    """Block sizes for programs of many warps: fewer of these where there are few queries, each with as many."""
    chosen = next(of for most, of in WARP_BLOCKS[family][item_bytes].items() if dim <= most)
    assert chosen.warps is not None
    share = chosen.queries // chosen.warps
    used = min(chosen.warps, triton.next_power_of_2(triton.cdiv(n_queries, share)))
    return chosen._replace(queries=used * share, warps=used)


def choose_blocks(n_queries: int, n_keys: int, sequences: int, causal: bool) -> Blocks:
    """Block sizes for a CPU and so many sequences (batch * heads): many queries share what packing keys and values
    costs, but on the diagonal they also compute more that a causal mask drops; and every thread shall have something
    to do. Fewer queries take more keys a step, for which their sums are read once. Measured on an AVX-512 core with
    1 MB of second-level cache, dimensions 64 to 256, and on one with AMX, dimensions 64 and 128.
    """
    threads = num_threads()
    queries = (128 if n_queries < LONG else 256) if causal else MOST_QUERIES
    while queries > 32 and triton.cdiv(n_queries, queries) * sequences < 2 * threads:
        queries //= 2
    keys = 128 if causal or queries == MOST_QUERIES else 512
    return Blocks(min(queries, max(16, triton.next_power_of_2(n_queries))), _step_of(n_keys, keys))


ROWS = 16  # of a matrix tile
STEP = 1024
WIDE_HEAD = 128  # a dimension up to which keys and values of such steps stay in a cache
CAUSAL_STEP = 256
NARROW_HEAD = 64  # a dimension up to which short causal attention packs in no time
SHORT = 512  # queries up to which it does so in wide heads, too
FEWEST = 128  # queries of a program that pay for packing keys and values, where there are so many
ROUNDS = 4  # programs of each thread, without which the slowest threads make all others wait


def choose_narrow_blocks(
    n_queries: int, n_keys: int, sequences: int, causal: bool, dim: int, window: int | None = None
) -> Blocks:
    """The same for elements of two bytes. Keys and values of long steps are packed once for many queries, of which so
    many are done with at a time that their scores stay in the nearest caches. Measured with bf16 on a core with AMX,
    2048 tokens of dimension 64 / 128 / 256, causal: in 0.79 / 0.76 / 0.72 of the time of 128 queries at a time,
    1.00 / 0.83 / 0.79. Cores without such tiles take as long either way. Two blocks of dimension 80 / 96 / 160 take
    0.81 / 0.88 / 0.70 of one's time, causal 0.82 / 0.88; of 40 1.13. Causal, 256 tokens of dimension 128 take 1.1 times
    as long in rows as without.
    """
    chosen = choose_blocks(n_queries, n_keys, sequences, causal)
    seen = n_queries if window is None else min(n_queries, window)
    is_short = seen < LONG if dim <= NARROW_HEAD else n_queries < SHORT
    if chosen.queries <= 2 * ROWS or (causal and is_short):
        return chosen._replace(apart=True)
    step = STEP if dim <= WIDE_HEAD else STEP // 2
    queries, rounds = MOST_QUERIES, ROUNDS
    if causal:
        step = CAUSAL_STEP if seen < 2 * LONG else 2 * CAUSAL_STEP
        queries, rounds = step, 2
    least, programs = min(chosen.queries, FEWEST), rounds * num_threads()
    while queries > least and triton.cdiv(n_queries, queries) * sequences < programs:
        queries //= 2
    return Blocks(min(queries, triton.next_power_of_2(n_queries)), _step_of(n_keys, step), rows=ROWS, apart=True)


def _step_of(n_keys: int, longest: int) -> int:
    """Keys of a step, where there may be few."""
    return min(longest, max(16, triton.next_power_of_2(n_keys)))
