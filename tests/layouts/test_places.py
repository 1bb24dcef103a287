"""Where the matrix engine and block loads put elements, counted element by element, for many sizes of both.

The formulas here know no bases: an instruction's words follow each other row by row over the lanes, then over the
registers; a warp's instructions, the warps, and the whole of that follow each other as numbers in a mixed base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from mltriton.layouts.encodings import DotOperandEncoding, Encoding
from mltriton.layouts.hardware import linear_layout
from mltriton.targets.xe.layouts.encodings import DpasEncoding, Subgroup2DBlockEncoding

Place = tuple[int, int]  # register and lane
DEPTH = 8
# rows of an instruction; warps, instructions of each, and how often all that is repeated, down and across
SIZES = [
    (8, (1, 1), (1, 1), (1, 1)), (8, (2, 4), (2, 1), (2, 2)), (4, (4, 2), (1, 4), (1, 2)),
    (2, (1, 2), (2, 2), (2, 1)), (1, (2, 1), (4, 1), (1, 1)),
]  # fmt: skip
ROWS_FIRST, COLUMNS_FIRST = (0, 1), (1, 0)


def in_words(row: int, column: int, columns: int, packed: int, lanes: int) -> Place:
    """Of a matrix whose words hold `packed` elements next to each other in a row, word after word over the lanes."""
    word = row * (columns // packed) + column // packed
    return word // lanes * packed + column % packed, word % lanes


def result(dpas: DpasEncoding, row: int, column: int) -> Place:
    return in_words(row, column, 16, 1, dpas.threads_per_warp)


def left(dpas: DpasEncoding, row: int, column: int) -> Place:
    return in_words(row, column, dpas.depth, 2 if dpas.ops_per_channel == 4 else 1, dpas.threads_per_warp)


def right(dpas: DpasEncoding, row: int, column: int) -> Place:
    """Words hold elements below each other, so that a column of 16 x depth lies in one lane."""
    ops = dpas.ops_per_channel
    register, lane = in_words(row // ops, column, 16, 1, dpas.threads_per_warp)
    return register * ops + row % ops, lane


def numbered(digits: list[tuple[int, int]]) -> int:
    """The number with these digits, each with its base, the lowest first."""
    number, unit = 0, 1
    for digit, base in digits:
        number, unit = number + digit * unit, unit * base
    return number


def check(encoding: Encoding, shape: tuple[int, int], places: Iterator[tuple[Place, set[int]]]) -> None:
    """`places` are those of all elements, row by row: register and lane, and the warps that have it."""
    layout = linear_layout(encoding, shape)
    registers, lanes, warps = (layout.count(name) for name in ("register", "lane", "warp"))
    expected = np.full((registers, lanes, warps, 2), -1)
    for element, ((register, lane), holders) in zip(np.ndindex(shape), places, strict=True):
        for warp in holders:
            assert expected[register, lane, warp, 0] == -1
            expected[register, lane, warp] = element
    np.testing.assert_array_equal(layout.table(), expected)


def of_engine(
    dpas: DpasEncoding, shape: tuple[int, int], kind: str, tile: tuple[int, int]
) -> Iterator[tuple[Place, set[int]]]:
    """Elements in instructions, instructions in a warp's cluster, clusters in warps, and all that again."""
    place = {"result": result, "left": left, "right": right}[kind]
    cluster = [1 if kind == "right" else dpas.rep_cluster[0], 1 if kind == "left" else dpas.rep_cluster[1]]
    warps = [1 if kind == "right" else dpas.warps_per_cta[0], 1 if kind == "left" else dpas.warps_per_cta[1]]
    all_rows, all_columns = dpas.warps_per_cta
    again = [extent // (t * c * w) for extent, t, c, w in zip(shape, tile, cluster, warps, strict=True)]
    size = math.prod(tile) // dpas.threads_per_warp
    order = ROWS_FIRST if kind == "right" else COLUMNS_FIRST
    for element in np.ndindex(shape):
        within = [x % t for x, t in zip(element, tile, strict=True)]
        rest = [x // t for x, t in zip(element, tile, strict=True)]
        member = [x % c for x, c in zip(rest, cluster, strict=True)]
        owner = [x // c % w for x, c, w in zip(rest, cluster, warps, strict=True)]
        round_ = [x // c // w for x, c, w in zip(rest, cluster, warps, strict=True)]
        register, lane = place(dpas, *within)
        digits = [(register, size), (member[1], cluster[1]), (member[0], cluster[0])]
        rows = range(all_rows) if kind == "right" else [owner[0]]
        columns = range(all_columns) if kind == "left" else [owner[1]]
        holders = {row * all_columns + column for row in rows for column in columns}
        yield (numbered([*digits, *((round_[d], again[d]) for d in order)]), lane), holders


@pytest.mark.parametrize("kind", ["result", "left", "right"])
@pytest.mark.parametrize("lanes", [16, 32])
@pytest.mark.parametrize("ops", [1, 2, 4])
def test_places_of_the_matrix_engine(kind: str, lanes: int, ops: int) -> None:
    for repeat, warps, cluster, again in SIZES:
        dpas = DpasEncoding(repeat, DEPTH, 16, ops, lanes, warps, cluster)
        tile = {"result": (repeat, 16), "left": (repeat, dpas.depth), "right": (dpas.depth, 16)}[kind]
        if math.prod(tile) < lanes * (2 if kind == "left" and ops == 4 else 1):
            continue  # lanes without an element of their own
        parts = [1 if kind == "right" else warps[0] * cluster[0], 1 if kind == "left" else warps[1] * cluster[1]]
        shape = (tile[0] * parts[0] * again[0], tile[1] * parts[1] * again[1])
        encoding = dpas if kind == "result" else DotOperandEncoding(int(kind == "right"), dpas)
        check(encoding, shape, of_engine(dpas, shape, kind, tile))


def of_blocks(encoding: Subgroup2DBlockEncoding, shape: tuple[int, int]) -> Iterator[tuple[Place, set[int]]]:
    """A block row by row in words of a lane, blocks of a load side by side, then loads, then warps."""
    (height, width), lanes = encoding.block, encoding.threads_per_warp
    tile, rows, columns = encoding.tile, *encoding.warps_per_cta
    packed, whole = max(1, width // lanes), encoding.order[0]
    size = encoding.size_per_warp
    down, across = (1, 1) if size is None else (size[0] // tile[0], size[1] // tile[1])
    counts = (1 if size is None and whole == 0 else rows, 1 if size is None and whole == 1 else columns)
    for row, column in np.ndindex(shape):
        register, lane = in_words(row % height, column % width, width, packed, lanes)
        load_row, load_column = row // tile[0], column // tile[1]
        warp_row, warp_column = load_row // down % counts[0], load_column // across % counts[1]
        digits = [
            (register, height * width // lanes), (column // width % encoding.blocks, encoding.blocks),
            (load_row % down, down), (load_column % across, across),
            (load_row // down // counts[0], shape[0] // (tile[0] * down * counts[0])),
            (load_column // across // counts[1], shape[1] // (tile[1] * across * counts[1])),
        ]  # fmt: skip
        holder_rows = range(rows) if counts[0] == 1 else [warp_row]
        holder_columns = range(columns) if counts[1] == 1 else [warp_column]
        yield (numbered(digits), lane), {r * columns + c for r in holder_rows for c in holder_columns}


@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
@pytest.mark.parametrize(
    ("block", "blocks", "element_bytes"),
    [
        ((8, 16), 2, 2),
        ((32, 16), 1, 2),
        ((8, 32), 1, 2),
        ((4, 64), 1, 1),
        ((16, 32), 2, 1),
        ((8, 8), 2, 4),
        ((2, 16), 1, 4),
    ],
)
def test_places_of_block_loads(block: tuple[int, int], blocks: int, element_bytes: int, order: tuple[int, int]) -> None:
    load = (block[0], block[1] * blocks)
    for warps, again in (((1, 1), (1, 1)), ((2, 4), (2, 1)), ((4, 1), (1, 2))):
        for loads in (None, (2, 2)):
            size = loads and (load[0] * loads[0], load[1] * loads[1])
            encoding = Subgroup2DBlockEncoding(warps, block, blocks, order, element_bytes, 16, size)
            part, counts = size or load, [warps[0], warps[1]]
            if size is None:
                counts[order[0]] = 1
            shape = (part[0] * counts[0] * again[0], part[1] * counts[1] * again[1])
            check(encoding, shape, of_blocks(encoding, shape))
