"""Where elements lie in registers, lanes and warps: the bases of published unit tests, and what holds for all."""

from __future__ import annotations

import numpy as np
import pytest

from mltriton.errors import IRSyntaxError
from mltriton.ir.parser import parse_attribute
from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, SliceEncoding
from mltriton.layouts.explicit import LinearEncoding
from mltriton.layouts.hardware import NoLanesError, linear_layout, warp_layout
from mltriton.layouts.text import encoding_text
from mltriton.targets.xe.layouts.encodings import DpasEncoding, Subgroup2DBlockEncoding

Vectors = list[list[int]]


def dpas(ops: int, threads: int, cluster: tuple[int, int] = (1, 1), warps: tuple[int, int] = (1, 1)) -> DpasEncoding:
    return DpasEncoding(8, 8, 16, ops, threads, warps, cluster)


def operand(index: int, parent: Encoding) -> Encoding:
    return DotOperandEncoding(index, parent)


COLUMNS = [[0, 1], [0, 2], [0, 4], [0, 8]]
COLUMNS_IN_PAIRS = [[0, 2], [0, 4], [0, 8], [0, 16]]
CLUSTERED = dpas(2, 32, (4, 2), (2, 2))

# encoding, shape, bases of register, lane, warp
DPAS: dict[str, tuple[Encoding, tuple[int, int], Vectors, Vectors, Vectors]] = {
    "result": (dpas(2, 32), (8, 16), [[2, 0], [4, 0]], [*COLUMNS, [1, 0]], []),
    "left of bytes": (
        operand(0, dpas(4, 32)), (8, 32), [[0, 1], [2, 0], [4, 0]], [*COLUMNS_IN_PAIRS, [1, 0]], []
    ),
    "left of tf32": (operand(0, dpas(1, 32)), (8, 8), [[4, 0]], [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], []),
    "right of bytes": (
        operand(1, dpas(4, 32)), (32, 16), [[1, 0], [2, 0], [8, 0], [16, 0]], [*COLUMNS, [4, 0]], []
    ),
    "right of halves": (operand(1, dpas(2, 32)), (16, 16), [[1, 0], [4, 0], [8, 0]], [*COLUMNS, [2, 0]], []),
    "cluster": (
        dpas(2, 16, (4, 2)), (32, 32), [[1, 0], [2, 0], [4, 0], [0, 16], [8, 0], [16, 0]], COLUMNS, []
    ),
    "warps": (
        dpas(2, 16, (1, 2), (4, 1)), (32, 32), [[1, 0], [2, 0], [4, 0], [0, 16]], COLUMNS, [[8, 0], [16, 0]]
    ),
    "warps and cluster": (
        dpas(1, 32, (4, 2), (2, 2)),
        (64, 64),
        [[2, 0], [4, 0], [0, 16], [8, 0], [16, 0]],
        [*COLUMNS, [1, 0]],
        [[0, 32], [32, 0]],
    ),
    "left of a cluster": (
        operand(0, CLUSTERED),
        (64, 64),
        [[2, 0], [4, 0], [8, 0], [16, 0], [0, 16], [0, 32]],
        [*COLUMNS, [1, 0]],
        [[0, 0], [32, 0]],
    ),
    "right of a cluster": (
        operand(1, CLUSTERED),
        (64, 64),
        [[1, 0], [4, 0], [8, 0], [0, 16], [16, 0], [32, 0]],
        [*COLUMNS, [2, 0]],
        [[0, 32], [0, 0]],
    ),
}  # fmt: skip
A, B = (1, 0), (0, 1)
M_WARPS: Vectors = [[0, 0], [0, 0], [32, 0], [64, 0], [128, 0]]
ROWS: Vectors = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]


def block(
    size: tuple[int, int], blocks: int, warps: tuple[int, int], order: tuple[int, int], width: int
) -> Subgroup2DBlockEncoding:
    return Subgroup2DBlockEncoding(warps, size, blocks, order, width)


BLOCKS: dict[str, tuple[Encoding, tuple[int, int], Vectors, Vectors, Vectors]] = {
    "floats, left": (
        block((32, 8), 2, (8, 4), A, 4),
        (256, 32),
        [[2, 0], [4, 0], [8, 0], [16, 0], [0, 8], [0, 16]],
        [[0, 1], [0, 2], [0, 4], [1, 0]],
        M_WARPS,
    ),
    "floats, right": (
        block((32, 16), 1, (8, 4), B, 4),
        (32, 128),
        [*ROWS, [0, 64]],
        COLUMNS,
        [[0, 16], [0, 32], [0, 0], [0, 0], [0, 0]],
    ),
    "halves, left, wide": (
        block((32, 32), 1, (8, 4), A, 2), (256, 32), [[0, 1], *ROWS], COLUMNS_IN_PAIRS, M_WARPS
    ),
    "halves, left": (block((32, 16), 2, (8, 4), A, 2), (256, 32), [*ROWS, [0, 16]], COLUMNS, M_WARPS),
    "halves, right": (
        block((32, 16), 2, (8, 4), B, 2),
        (32, 256),
        [*ROWS, [0, 16], [0, 128]],
        COLUMNS,
        [[0, 32], [0, 64], [0, 0], [0, 0], [0, 0]],
    ),
    "halves, right, low": (
        block((16, 16), 2, (8, 4), B, 2),
        (32, 256),
        [*ROWS[:4], [0, 16], [16, 0], [0, 128]],
        COLUMNS,
        [[0, 32], [0, 64], [0, 0], [0, 0], [0, 0]],
    ),
    "bytes, left": (
        block((16, 32), 1, (4, 8), A, 1),
        (64, 32),
        [[0, 1], *ROWS[:4]],
        COLUMNS_IN_PAIRS,
        [[0, 0], [0, 0], [0, 0], [16, 0], [32, 0]],
    ),
    "bytes, right": (
        block((32, 16), 1, (4, 8), B, 1),
        (32, 128),
        ROWS,
        COLUMNS,
        [[0, 16], [0, 32], [0, 64], [0, 0], [0, 0]],
    ),
}  # fmt: skip
LINEAR = LinearEncoding(2, ((0, 1), (16, 0)), ((0, 2), (0, 4), (0, 8), (1, 0)), ((2, 0), (4, 0), (8, 0)))
OTHERS: dict[str, tuple[Encoding, tuple[int, int], Vectors, Vectors, Vectors]] = {
    "listed": (
        LinearEncoding(2, ((0, 1),), ((0, 2), (0, 4), (0, 8), (1, 0)), ((0, 0), (2, 0), (4, 0))),
        (8, 32),
        [[0, 1], [0, 16]],
        [[0, 2], [0, 4], [0, 8], [1, 0]],
        [[0, 0], [2, 0], [4, 0]],
    ),
    "listed, wrapping": (
        LinearEncoding(2, ((0, 1), (1, 0)), ((0, 2), (0, 4), (0, 8), (0, 16)), ((2, 0), (4, 0))),
        (4, 8),
        [[0, 1], [1, 0]],
        [[0, 2], [0, 4], [0, 0], [0, 0]],
        [[2, 0], [0, 0]],
    ),
    "several loads for each warp": (
        Subgroup2DBlockEncoding((2, 2), (8, 16), 1, (1, 0), 4, 16, (16, 32)),
        (32, 64),
        [[1, 0], [2, 0], [4, 0], [8, 0], [0, 16]],
        COLUMNS,
        [[0, 32], [16, 0]],
    ),
    "several loads for each warp, right": (
        Subgroup2DBlockEncoding((8, 4), (32, 16), 2, (0, 1), 2, 16, (32, 64)),
        (32, 256),
        [*ROWS, [0, 16], [0, 32]],
        COLUMNS,
        [[0, 64], [0, 128], [0, 0], [0, 0], [0, 0]],
    ),
}
ALL = {**DPAS, **BLOCKS, **OTHERS}


@pytest.mark.parametrize(("encoding", "shape", "register", "lane", "warp"), ALL.values(), ids=ALL)
def test_published_bases(
    encoding: Encoding, shape: tuple[int, int], register: Vectors, lane: Vectors, warp: Vectors
) -> None:
    layout = linear_layout(encoding, shape)
    found = {name: [list(vector) for vector in layout.vectors(name)] for name in ("register", "lane", "warp")}
    assert found == {"register": register, "lane": lane, "warp": warp}


@pytest.mark.parametrize(("encoding", "shape"), [case[:2] for case in ALL.values()], ids=ALL)
def test_a_warp_has_what_the_cut_says(encoding: Encoding, shape: tuple[int, int]) -> None:
    """The elements of a warp are those of its part: the two definitions of a layout agree."""
    places = linear_layout(encoding, shape).table()
    for warp in range(places.shape[2]):
        for dim, (cut, extent) in enumerate(zip(encoding.cut(shape), shape, strict=True)):
            size, start = min(cut.size, extent), warp // cut.stride % cut.warps * cut.size
            found = np.unique(places[:, :, warp, dim])
            step = cut.size * cut.warps
            wanted = {(start + first + i) % extent for first in range(0, max(extent, 1), step) for i in range(size)}
            assert set(found) == wanted


@pytest.mark.parametrize("encoding", [case[0] for case in ALL.values()], ids=ALL)
def test_text_reads_back(encoding: Encoding) -> None:
    assert parse_attribute(encoding_text(encoding)) is encoding


BLOCKED = BlockedEncoding((4, 64), (2, 2), (1, 0), (1, 4), (4, 16))


def test_blocked() -> None:
    layout = linear_layout(BLOCKED, (16, 128))
    assert layout.vectors("register") == ((0, 1), (0, 2), (8, 0))
    assert layout.vectors("lane") == ((0, 4), (0, 8), (0, 16), (0, 32), (1, 0), (2, 0))
    assert layout.vectors("warp") == ((0, 64), (4, 0))


def test_a_small_tensor_is_in_several_places() -> None:
    layout = linear_layout(BLOCKED, (4, 32))
    assert layout.vectors("lane") == ((0, 4), (0, 8), (0, 16), (0, 0), (1, 0), (2, 0))
    assert layout.vectors("warp") == ((0, 0), (0, 0))
    assert layout.is_surjective
    assert not layout.is_injective


@pytest.mark.parametrize("parent", [BLOCKED, CLUSTERED, operand(0, CLUSTERED)])
@pytest.mark.parametrize("dim", [0, 1])
def test_a_slice_has_the_places_of_its_parent(parent: Encoding, dim: int) -> None:
    """Every lane and warp has the elements of the slice that it has of the parent."""
    sliced = linear_layout(SliceEncoding(dim, parent), (64,))
    whole = linear_layout(parent, (64, 64))
    assert sliced.is_surjective
    for lane in range(whole.count("lane")):
        for warp in range(whole.count("warp")):
            wanted = {whole.at(register=r, lane=lane, warp=warp)[1 - dim] for r in range(whole.count("register"))}
            found = {sliced.at(register=r, lane=lane, warp=warp)[0] for r in range(sliced.count("register"))}
            assert found == wanted


def test_a_listed_layout_whose_warps_have_no_boxes_has_no_cut() -> None:
    with pytest.raises(ValueError, match="along dimension 0 are no boxes"):
        LINEAR.cut((32, 16))


def test_one_warp_has_each_element_in_one_register() -> None:
    layout = warp_layout(dpas(2, 16, (4, 2), (4, 2)), (1, 32))
    assert layout.vectors("register") == ((0, 16),)
    assert layout.vectors("lane") == tuple(map(tuple, COLUMNS))
    with pytest.raises(ValueError, match="only a part of 64x64"):
        warp_layout(dpas(2, 16, (4, 2), (2, 2)), (64, 64))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("register = [1], lane = [[1]], warp = []", "register must be a list of bases"),
        ("register = [[0, 1]], lane = [[1]], warp = []", "one length"),
        ("register = [[3]], lane = [[1]], warp = []", "power of two"),
        ("register = [[2]], lane = [[1]], warp = [], block = [[4]]", "block must be"),
    ],
)
def test_listed_bases_that_are_none(fields: str, message: str) -> None:
    with pytest.raises(IRSyntaxError, match=message):
        parse_attribute(f"#ttg.linear<{{{fields}}}>")


def test_no_lanes() -> None:
    with pytest.raises(NoLanesError, match="without sizePerThread has no lanes"):
        linear_layout(BlockedEncoding((4, 4), (2, 2), (1, 0)), (16, 16))
    with pytest.raises(NoLanesError, match=r"that of a matrix instruction"):
        linear_layout(DotOperandEncoding(0, BLOCKED), (16, 16))
