"""How products are shared out on GPUs: the block of C of a program, its warps, the stages of its loop, the parts of K.

Level: user. Where groups of warps multiply together (NVIDIA's Hopper) the choice is that of the least cost: rounds of
programs ("wave efficiency"), steps along K, what a program and another launch cost besides. Few rows only read B: there
programs are many, and their buffers deep.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import mltriton as triton
from mltriton.kernels.arrays import Array, dtype_name, item_size, strides_of
from mltriton.kernels.gemm_tiles import Tile, choose_warp_tiles, multiplied_bytes
from mltriton.kernels.launch import family_of_warps, stages_on, target_of
from mltriton.records import NamedTuple


class Shares(NamedTuple):
    """Block and warps of a program (both None where a program is one thread), stages of its loop (None: the usual
    number), parts of K; whether the transpose is computed, and whether a warp more is to copy where that can be.
    """

    tile: Tile | None = None
    warps: int | None = None
    stages: int | None = None
    splits: int = 1
    turned: bool = False
    produced: bool = False


class Forms(NamedTuple):
    """How a product can be computed besides by a program for each block: `in_turns`, by persistent programs, and then
    `turned`, as its transpose, whose right operand has K along memory. `narrow`: the result's elements have at most two
    bytes, so that warps store more than 256 columns in pieces; whole ones take the memory of operands.
    """

    in_turns: bool = False
    turned: bool = False
    narrow: bool = True


class GroupTile(NamedTuple):
    """A block of C for groups of four warps that multiply together, how fast it is against what the GPU's matrix units
    could do, the stages of a loop where there are several programs for each multiprocessor, and the bytes of K of each.
    """

    rows: int
    columns: int
    warps: int
    speed: float
    stages: int = 4
    step_bytes: int = 128


# Measured on an H100 (2048 to 8192, f16): large blocks read less for each product. Two programs of 128 x 128 with three
# stages share a multiprocessor.
GROUP_TILES = (
    GroupTile(128, 256, 8, 1.0),
    GroupTile(256, 128, 8, 0.98),
    GroupTile(128, 128, 4, 0.86, 3),
    GroupTile(64, 256, 4, 0.79),
    GroupTile(64, 128, 4, 0.71, 3),
    GroupTile(128, 64, 4, 0.72, 3),
    GroupTile(64, 64, 4, 0.47),
    GroupTile(64, 32, 4, 0.28),
)
# Only of persistent programs, which multiply a power of two of columns and 64, 32 or 16 more apart: 384 of 192 columns
# are 3 rounds at 3072 (0.97 of the speed of cuBLAS, 0.77 with 128 x 256), 132 of 144 one round at 1536 (0.96 and 0.72).
# Of 320 columns steps of 64 bytes leave room for six slots: 5 rounds at 5120 (1.01 of cuBLAS, with two slots of 128
# bytes 0.99, 7 rounds of 128 x 256 0.91), one at 2176 (1.00, 0.94; 0.92 by 160 columns). Its speed is that of 5 rounds,
# where it is at least 0.97, and of one, 0.88. 128 x 128 are 7 rounds of a half at 3712 (1.05, 5 of 192 columns 1.02);
# they are as fast as 128 x 256 from 0.97 (3712, B by columns) to 1.02 (8192).
TURN_TILES = (
    GroupTile(128, 320, 8, 0.95, 7, 64),
    GroupTile(128, 192, 8, 0.98),
    GroupTile(128, 160, 8, 0.875),
    GroupTile(128, 144, 8, 0.88),
    GroupTile(128, 128, 8, 0.97, 8),
)
# Of batches of matrices that have 32 to 64 of the largest blocks, smaller ones are faster in turn, where they need no
# longer by the count of rounds: 8 to 16 of 1024 0.99 of cuBLAS (0.95 with 128 x 256), 4 of 2048 x 1024 0.97 (0.93), but
# 32 of 512 0.99 (1.04).
BATCH_TILE, BATCH_BLOCKS, BATCH_GROUP = GroupTile(128, 128, 8, 1.0), range(32, 65), 4
JOINED = 160  # columns of blocks whose parts one instruction multiplies, where K lies along memory in B
WIDEST = 256  # columns of blocks whose elements have four bytes
STEP_BYTES = 128  # of K
MULTIPROCESSORS = 132
# One round of programs of the largest block, each with so few steps that it mostly waits for the first operands and
# stores: of half the block two share a multiprocessor (64 of 256 on an H200 1.02 of cuBLAS, with the largest 0.97; at
# 2048, of 32 steps, 0.99 and 1.00).
FEW_STEPS, HALF = 8, GROUP_TILES[2]
DEEPEST = 8  # stages, where a program has a multiprocessor to itself
# In cycles of a multiprocessor, which does so many products of f16 in each:
PRODUCTS = 2048
PROGRAM = 3000  # until the first operands are there, and for the result
LAUNCH = 5000  # of the sum of the parts of K
SUMMED_BYTES = 1500  # of partial sums that all multiprocessors move together
MOST_SPLITS = 16


def cost(tile: GroupTile, m: int, n: int, k: int, item_bytes: int, batch: int, splits: int) -> float:
    """Cycles that a product takes in such blocks and with K in so many parts."""
    programs = batch * splits * blocks_in(tile, m, n)
    added = LAUNCH + 8 * splits * batch * m * n / SUMMED_BYTES if splits > 1 else 0.0
    return triton.cdiv(programs, MULTIPROCESSORS) * cycles_of(tile, k, item_bytes, splits) + added


def cycles_of(tile: GroupTile, k: int, item_bytes: int, splits: int) -> float:
    """Cycles of one program."""
    steps = triton.cdiv(triton.cdiv(k, STEP_BYTES // item_bytes), splits)
    return steps * tile.rows * tile.columns * STEP_BYTES / 2 / PRODUCTS / tile.speed + PROGRAM


@lru_cache(maxsize=4096)
def choose_group_shares(
    m: int, n: int, k: int, item_bytes: int, batch: int, splits: int | None, forms: Forms
) -> tuple[GroupTile, int, bool, bool]:
    """The tile and the parts of K (those that are asked for, if any) of the least cost, whether each program has a
    multiprocessor to itself, and whether the transpose is computed.
    """
    steps = triton.cdiv(k, STEP_BYTES // item_bytes)
    parts = [splits] if splits else [p for p in (1, 2, 4, 8, MOST_SPLITS) if p == 1 or steps >= 4 * p]
    found = [(tile, p, False) for p in parts for tile in GROUP_TILES]
    if forms.in_turns and splits in (None, 1):
        found += [(tile, 1, forms.turned and is_joined(tile)) for tile in turn_tiles(m, n, batch, narrow=forms.narrow)]
    sides = {False: (m, n), True: (n, m)}
    best, count, turned = min(found, key=lambda each: cost(each[0], *sides[each[2]], k, item_bytes, batch, each[1]))
    alone = batch * count * blocks_in(best, *sides[turned]) <= MULTIPROCESSORS
    if best is GROUP_TILES[0] and count == 1 and alone and steps <= FEW_STEPS:
        return HALF, 1, False, False
    return best, count, alone, turned


def is_joined(tile: GroupTile) -> bool:
    """Whether one instruction multiplies both parts of a block's columns where K lies along memory in B."""
    return is_odd(tile) and tile.columns <= JOINED


def is_odd(tile: GroupTile) -> bool:
    """Whether a block's columns are no power of two, but two parts."""
    return tile.columns & (tile.columns - 1) > 0


def turn_tiles(m: int, n: int, batch: int, *, narrow: bool) -> list[GroupTile]:
    """Blocks that persistent programs may compute: those of a power of two of columns in several rounds only, and where
    the largest block would be half empty. They read more for each product, and are less even: at 3840, whose columns
    are whole blocks, 1.05 to 0.81 of cuBLAS from run to run of one H100.
    """
    tiles = [tile for tile in TURN_TILES if narrow or tile.columns <= WIDEST]
    in_halves = -n % GROUP_TILES[0].columns >= GROUP_TILES[0].columns // 2
    return [t for t in tiles if is_odd(t) or (in_halves and batch * blocks_in(t, m, n) > MULTIPROCESSORS)]


def is_batch_of_blocks(m: int, n: int, batch: int) -> bool:
    """Whether a batch is multiplied in blocks of `BATCH_TILE`."""
    largest = GROUP_TILES[0]
    rounds = [triton.cdiv(batch * blocks_in(tile, m, n), MULTIPROCESSORS) for tile in (largest, BATCH_TILE)]
    areas = [tile.rows * tile.columns for tile in (largest, BATCH_TILE)]
    is_as_fast = rounds[1] * areas[1] <= rounds[0] * areas[0]
    return batch > 1 and rounds[0] > 1 and is_as_fast and blocks_in(largest, m, n) in BATCH_BLOCKS


def blocks_in(tile: GroupTile, m: int, n: int) -> int:
    """How many blocks a result of m rows and n columns has."""
    return triton.cdiv(m, tile.rows) * triton.cdiv(n, tile.columns)


FEW_ROWS = 32  # that are multiplied by single warps
READ_BYTES = 16384  # of B in a step
FEW_WARPS, FEW_STAGES = 4, 5
GROUP_ROWS = 64  # that a group of warps multiplies at least
# Of K, where it multiplies no more, and of small blocks (128 x 4096 x 4096: 1.02 of cuBLAS, with 128 bytes 0.90).
GROUP_STEP_BYTES = 256
SMALL_SIDES = 128  # rows and columns together
# The same of blocks for which a producer warp copies where each has a multiprocessor to itself: on an H200 512 takes 4
# to 7 % less by it, 1024 up to 4 %.
PRODUCED_SIDES = 192
LEAST_STEPS = 4  # of a part of K


def choose_few_rows(m: int, n: int, k: int, item_bytes: int, batch: int, splits: int | None) -> tuple[Tile, int, int]:
    """The block, the most stages and the parts of K where a product only reads B: programs for all multiprocessors, if
    there are columns or steps enough.
    """
    rows = max(16, triton.next_power_of_2(m))
    columns = next((c for c in (64, 32) if batch * triton.cdiv(n, c) >= 0.9 * MULTIPROCESSORS), 32)
    depth = READ_BYTES // item_bytes // columns if m <= FEW_ROWS else GROUP_STEP_BYTES // item_bytes
    programs, steps = batch * triton.cdiv(n, columns), triton.cdiv(k, depth)
    chosen = splits or max(1, min(MULTIPROCESSORS // programs, steps // LEAST_STEPS, MOST_SPLITS))
    is_alone = m > FEW_ROWS and programs * chosen <= MULTIPROCESSORS
    return Tile(rows, columns, depth, 1), DEEPEST if is_alone else FEW_STAGES if m <= FEW_ROWS else 3, chosen


def shares_on(
    target: str | None,
    m: int,
    n: int,
    k: int,
    operand: Array,
    batch: int,
    splits: int | None,
    along_k: bool = False,
    forms: Forms = Forms(),  # noqa: B008 - it never changes
) -> Shares:
    """How a product of matrices like `operand` is shared out on a target; `splits` parts of K, or as many as are best
    where that is None. `along_k`: K lies along memory in both, so that a step of 64 bytes is half a line of the cache
    for B, too (3200, in several rounds: 0.91 of cuBLAS, with 128 bytes 0.97).
    """
    target = target_of(target, operand)
    family, size = family_of_warps(target), multiplied_bytes(operand)
    if family is None:
        return Shares(splits=splits or 1)
    in_groups = multiplies_in_groups(target, operand, along_k=along_k and m > FEW_ROWS)
    only_reads = m <= FEW_ROWS or (m <= GROUP_ROWS and in_groups and k * size >= GROUP_STEP_BYTES * DEEPEST)
    if family == "cuda" and only_reads and dtype_name(operand) in ("float16", "bfloat16"):
        tile, stages, count = choose_few_rows(m, n, k, size, batch, splits)
        return Shares(tile, FEW_WARPS, _stages(target, tile, size, stages), count)
    if not in_groups:
        return Shares(*choose_warp_tiles(m, n, size, batch * (splits or 1), family), None, splits or 1)
    size = item_size(operand)
    if forms.in_turns and splits in (None, 1) and is_batch_of_blocks(m, n, batch):
        tile = Tile(BATCH_TILE.rows, BATCH_TILE.columns, STEP_BYTES // size, BATCH_GROUP)
        return Shares(tile, BATCH_TILE.warps, _stages(target, tile, size, DEEPEST))
    best, count, alone, turned = choose_group_shares(m, n, k, size, batch, splits, forms)
    is_small = best.rows + best.columns <= SMALL_SIDES and k // count * size >= GROUP_STEP_BYTES * LEAST_STEPS
    step = GROUP_STEP_BYTES if alone and is_small else best.step_bytes
    depth = (max(step, STEP_BYTES) if along_k and not alone else step) // size
    tile = Tile(best.rows, best.columns, depth, 8)
    most = min(DEEPEST, max(LEAST_STEPS, triton.cdiv(k // count, depth))) if alone else best.stages
    stages = _stages(target, tile, size, most)
    produced = alone and count == 1 and best.rows + best.columns <= PRODUCED_SIDES
    return Shares(tile, best.warps, stages, count, turned, produced)


def forms_of(a: Array, b: Array, out: Array, *, in_turns: bool) -> Forms:
    """The forms of a product of [batch, M, K] and [batch, K, N] arrays that persistent programs can compute, or not."""
    return Forms(in_turns, in_turns and strides_of(a)[2] == 1 != strides_of(b)[1], item_size(out) <= 2)


def lies_along_k(a: Array, b: Array) -> bool:
    """Whether K lies along memory in [batch, M, K] and [batch, K, N] arrays."""
    return strides_of(a)[2] == strides_of(b)[1] == 1


def is_large(tile: Tile, warps: int | None) -> bool:
    """Whether a program of groups of warps has a multiprocessor to itself, whatever the grid."""
    large = (*GROUP_TILES[:2], *TURN_TILES)
    return (tile.m, tile.n, warps) in [(each.rows, each.columns, each.warps) for each in large]


def _stages(target: str | None, tile: Tile, item_bytes: int, most: int) -> int | None:
    """Steps of K that are in shared memory at a time."""
    return stages_on(target, (tile.m + tile.n) * tile.k * item_bytes, most)


def tile_on(target: str | None, m: int, n: int, operand: Array, batch: int) -> tuple[Tile | None, int | None]:
    """Block and warps of programs that multiply matrices like `operand` where the warps of a program share a block, of
    a usual K; nothing where a program is one thread.
    """
    return shares_on(target, m, n, USUAL_DEPTH, operand, batch, 1)[:2]


USUAL_DEPTH = 2048
COPIED_BY_LANES = 0.85  # the speed of blocks of four warps, where no engine copies, against what it was


def groups_on(target: str | None, sizes: Sequence[tuple[int, int, int]], operand: Array) -> Shares:
    """How products of several sizes (M, N, K), of matrices like `operand`, are shared out in one launch, in which lanes
    copy the operands.
    """
    target = target_of(target, operand)
    if not multiplies_in_groups(target, operand):
        m, n, _ = map(max, zip(*sizes, strict=True))
        return Shares(*tile_on(target, m, n, operand, len(sizes)))
    best = choose_tile_of_groups(tuple(sizes), item_size(operand))
    return Shares(Tile(best.rows, best.columns, STEP_BYTES // item_size(operand), 8), best.warps)


@lru_cache(maxsize=256)
def choose_tile_of_groups(sizes: tuple[tuple[int, int, int], ...], item_bytes: int) -> GroupTile:
    """The tile of the least cost for products of such sizes whose blocks are numbered through."""

    def time(tile: GroupTile) -> float:
        tile = tile if tile.warps > 4 else tile._replace(speed=tile.speed * COPIED_BY_LANES)
        blocks = [blocks_in(tile, m, n) for m, n, _ in sizes]
        work = sum(count * cycles_of(tile, k, item_bytes, 1) for count, (_, _, k) in zip(blocks, sizes, strict=True))
        return triton.cdiv(sum(blocks), MULTIPROCESSORS) * work / max(1, sum(blocks))

    return min(GROUP_TILES, key=time)


def is_engine_of(target: str | None, operand: Array) -> bool:
    """Whether an engine copies blocks that groups of warps multiply, of matrices like `operand`."""
    target = target_of(target, operand)
    if target is None or not multiplies_in_groups(target, operand):
        return False
    from mltriton.targets.registry import spec  # Few launches ask for it.

    return spec(target).tensor_copies is not None


def multiplies_in_groups(target: str | None, operand: Array, *, along_k: bool = False) -> bool:
    """Whether several warps multiply operands of such a dtype together; some do only where K lies along memory."""
    if target is None or family_of_warps(target) != "cuda":
        return False
    from mltriton.ir import types  # Few launches ask for it.
    from mltriton.targets.registry import spec

    name = dtype_name(operand)
    size = spec(target).dot.get(getattr(types, ELEMENTS[name])) if name in ELEMENTS else None
    return size is not None and size.warps > 1 and (along_k or not size.k_major)


ELEMENTS = {  # that groups of warps may multiply
    "float16": "F16",
    "bfloat16": "BF16",
    "int8": "I8",
    "uint8": "I8",
    "float8_e4m3fn": "F8E4M3",
    "float8_e5m2": "F8E5M2",
}
