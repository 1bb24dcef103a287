# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""What all matrix products share: block sizes, the order of blocks, accumulators.

Level: user. `choose_tile` gives the block of C that one program instance computes on a CPU, `choose_warp_tiles` that
of a program of many warps; instances are ordered in groups of rows of blocks so that neighbours share operands in
cache.
"""

from __future__ import annotations

import os
from functools import lru_cache

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import Array, dtype_name, item_size
from mltriton.records import NamedTuple


@triton.jit
def block_coordinates(M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of the block of C that this program instance computes, GROUP rows of blocks at a time."""
    return coordinates_of(tl.program_id(0), M, N, BM, BN, GROUP)


@triton.jit
def coordinates_of(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Row and column of block number `pid` of C, GROUP rows of blocks at a time."""
    rows = tl.cdiv(M, BM)
    columns = tl.cdiv(N, BN)
    first_row = pid // (GROUP * columns) * GROUP
    group_rows = tl.minimum(rows - first_row, GROUP)
    inside = pid % (GROUP * columns)
    return first_row + inside % group_rows, inside // group_rows


# Accumulator by operand dtype; a dtype that is missing here has no matrix product.
ACCUMULATORS = {
    "float16": tl.float32,
    "bfloat16": tl.float32,
    "float32": tl.float32,
    "float64": tl.float64,
    "float8_e4m3fn": tl.float32,
    "float8_e5m2": tl.float32,
    "int8": tl.int32,
    "uint8": tl.int32,
}
# Dtypes that matrix engines widen -> bytes of what is multiplied instead.
MULTIPLIED_BYTES = {"float8_e4m3fn": 2, "float8_e5m2": 2}


class Tile(NamedTuple):
    """Block sizes of one program instance, and rows of blocks taken together."""

    m: int
    n: int
    k: int
    group: int


class Speeds(NamedTuple):
    """Speed that a block of so many rows, or columns, of C reaches against the best: more of it shares packed B and
    what is read of A. `slack` is what a round of all threads costs besides, in programs of each thread; `narrow_slack`
    the same where elements have fewer than four bytes.
    """

    rows: dict[int, float]
    columns: dict[int, float]
    slack: float
    narrow_slack: float


# Measured on two AVX-512 cores (matmul of 2048 x 2048 f32).
FEW_THREADS = Speeds(
    {16: 0.45, 32: 0.65, 64: 0.8, 128: 0.87, 256: 0.94, 512: 1.0},
    {16: 0.35, 32: 0.5, 64: 0.65, 128: 0.8, 256: 0.95, 512: 1.0},
    slack=1 / 4,
    narrow_slack=1 / 4,
)
# Measured on 8 and 16 cores with AMX (512 to 2048, f32 and bf16): what is read of A comes from a large shared cache,
# and narrow panels of B stay in the cores' own. Virtual cores are not equally fast: some share a core's FMA units, and
# with one program for each thread all wait for those.
MANY_THREADS = Speeds(
    {16: 0.5, 32: 0.7, 64: 0.82, 128: 0.9, 256: 0.97, 512: 1.0},
    {16: 0.4, 32: 0.85, 64: 0.97, 128: 1.0, 256: 0.95, 512: 0.9},
    slack=1 / 2,
    narrow_slack=1 / 8,
)
MANY = 4  # threads
# Few rows take no packed B: its rows are read where they lie, and long pieces of them are read faster.
FEW_ROWS = 8
COLUMNS_OF_FEW_ROWS = {**FEW_THREADS.columns, 1024: 1.2}
NARROW = 128  # columns of f32 up to which a step of K may be twice as long: the packed block is as large
LARGEST_BLOCK = 1 << 20  # bytes of C in a program's scratch memory


@lru_cache(maxsize=4096)
def choose_tile(m: int, n: int, k: int, item_bytes: int, batch: int = 1, threads: int | None = None) -> Tile:
    """Block sizes for a CPU: large, but not much larger than the matrix, with enough programs for all threads (of the
    machine when None), and K deep enough for packing to pay.
    """
    team = threads or os.cpu_count() or 1

    def value(block: tuple[int, int]) -> float:
        even = balance(m, n, block, batch, team, item_bytes) if team > 1 else 1  # One thread waits for no other.
        return speed(m, n, block, team) * even

    return tile_of(max(blocks_of(m, n, item_bytes), key=value), k, item_bytes)


def blocks_of(m: int, n: int, item_bytes: int) -> list[tuple[int, int]]:
    """Rows and columns that a block of C may have."""
    return [
        (rows, columns)
        for rows in sorted({min(size, triton.next_power_of_2(m)) for size in FEW_THREADS.rows})
        for columns in sorted({min(size, triton.next_power_of_2(n)) for size in _columns(m, FEW_THREADS)})
        if rows * columns * max(4, item_bytes) <= LARGEST_BLOCK
    ]


def speeds_of(threads: int) -> Speeds:
    """The speeds of blocks where so many threads share the work."""
    return MANY_THREADS if threads >= MANY else FEW_THREADS


def speed(m: int, n: int, block: tuple[int, int], threads: int = 1) -> float:
    """How fast a core gets on with an [m, n] matrix in such blocks; 1 with the best ones that fit exactly."""
    speeds, (rows, columns) = speeds_of(threads), block
    used = m * n / (triton.cdiv(m, rows) * rows * triton.cdiv(n, columns) * columns)
    return speeds.rows.get(rows, 0.3) * _columns(m, speeds).get(columns, 0.3) * used


def _columns(m: int, speeds: Speeds) -> dict[int, float]:
    return COLUMNS_OF_FEW_ROWS if m <= FEW_ROWS else speeds.columns


def balance(m: int, n: int, block: tuple[int, int], batch: int, threads: int, item_bytes: int) -> float:
    """The part of the time that all threads work when each block is one program."""
    programs = batch * triton.cdiv(m, block[0]) * triton.cdiv(n, block[1])
    speeds = speeds_of(threads)
    slack = speeds.slack if item_bytes >= 4 else speeds.narrow_slack
    return programs / (triton.cdiv(programs, threads) * threads + threads * slack)


def tile_of(block: tuple[int, int], k: int, item_bytes: int) -> Tile:
    """A tile with such a block of C."""
    rows, columns = block
    longest = 256 if item_bytes >= 4 and columns > NARROW else 512
    depth = min(longest, triton.next_power_of_2(max(1, k)))
    smallest = max(1, 16 // item_bytes)
    return Tile(rows, max(columns, smallest), max(depth, smallest), 8)


class WarpTiles(NamedTuple):
    """A block of C and the warps that share it."""

    tile: Tile
    warps: int


# By family and bytes of an element as it is multiplied: rows and columns of C that a warp computes, and the depth of a
# step. Intel's compiler keeps sums and operands in 256 registers then. Elements of f32 are multiplied in parts.
WARP_SHARES = {
    "xe": {1: (32, 64, 64), 2: (32, 64, 32), 4: (32, 32, 16), 8: (32, 32, 16)},
    "cuda": {1: (64, 32, 64), 2: (64, 32, 64), 4: (32, 32, 32), 8: (32, 16, 16)},
}
BLOCK_SIDES = (256, 128, 64, 32, 16, 8)
MOST_WARPS = {"xe": 32, "cuda": 8}  # with so many registers
FULL = 64  # programs that occupy a GPU


@lru_cache(maxsize=4096)
def choose_warp_tiles(m: int, n: int, item_bytes: int, batch: int = 1, family: str = "xe") -> WarpTiles:
    """The block that reads least for each product, where enough programs are left, with the warps' shares as data has
    them.
    """
    rows, columns, depth = WARP_SHARES[family][item_bytes]
    sides = [
        (height, width)
        for height in BLOCK_SIDES
        for width in BLOCK_SIDES
        if width >= columns and triton.cdiv(height, rows) * (width // columns) <= MOST_WARPS[family]
    ]
    height, width = max(sides, key=lambda side: _reuse(m, n, side, batch))
    warps = triton.cdiv(height, rows) * (width // columns)
    return WarpTiles(Tile(height, width, depth, 4), warps)


def multiplied_bytes(x: Array) -> int:
    """Bytes of an element of an operand as a matrix engine multiplies it."""
    return MULTIPLIED_BYTES.get(dtype_name(x)) or item_size(x)


def _reuse(m: int, n: int, block: tuple[int, int], batch: int) -> float:
    """Products for each element that a block reads, less what lies outside of C and what leaves a GPU idle."""
    rows, columns = block
    programs = batch * triton.cdiv(m, rows) * triton.cdiv(n, columns)
    used = batch * m * n / (programs * rows * columns)
    return rows * columns / (rows + columns) * used * min(1.0, programs / FULL)
