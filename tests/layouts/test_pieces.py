"""Pieces of a warp's part of a tensor: their elements lie in the lanes that have them in the whole part."""

from __future__ import annotations

from itertools import product

import pytest

from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, SliceEncoding, same_cut
from mltriton.layouts.hardware import warp_layout
from mltriton.layouts.lanes import with_lanes
from mltriton.layouts.nvidia import NvidiaMmaEncoding
from mltriton.targets.xe.layouts.encodings import DpasEncoding, Subgroup2DBlockEncoding

Shape = tuple[int, ...]


def dpas(ops: int, warps: Shape, cluster: Shape, repeat: int = 8) -> DpasEncoding:
    return DpasEncoding(repeat, 8, 16, ops, 16, warps, cluster)


ROWS = with_lanes(BlockedEncoding((4, 256), (8, 1), (1, 0)), (32, 256), 16, 4)
COLUMNS = with_lanes(BlockedEncoding((64, 8), (2, 4), (1, 0)), (128, 32), 16, 8, (0, 1))
GEMM = dpas(2, (8, 4), (4, 4))
MMA = NvidiaMmaEncoding(2, (2, 2), (16, 8), (2, 8))
# encoding, whole block
SHARES: dict[str, tuple[Encoding, Shape]] = {
    "result": (GEMM, (256, 256)),
    "left": (DotOperandEncoding(0, GEMM), (256, 64)),
    "right": (DotOperandEncoding(1, GEMM), (64, 256)),
    "few rows": (dpas(2, (1, 8), (1, 2), 4), (4, 256)),
    "left of bytes": (DotOperandEncoding(0, dpas(4, (2, 2), (2, 4))), (32, 128)),
    "right of floats": (DotOperandEncoding(1, dpas(1, (2, 2), (2, 4))), (32, 128)),
    "batches": (dpas(2, (2, 2, 1), (2, 2, 2)), (4, 32, 32)),
    "right of batches": (DotOperandEncoding(1, dpas(2, (2, 2, 1), (2, 2, 2))), (4, 32, 32)),
    "blocks": (Subgroup2DBlockEncoding((8, 4), (32, 16), 2, (0, 1), 2, 16, (32, 64)), (32, 256)),
    "blocks of batches": (Subgroup2DBlockEncoding((2, 2, 1), (8, 16), 2, (1, 2, 0), 2, 16, (2, 16, 32)), (4, 32, 32)),
    "rows": (ROWS, (32, 256)),
    "columns": (COLUMNS, (128, 32)),
    "slice of a result": (SliceEncoding(1, GEMM), (256,)),
    "slice of rows": (SliceEncoding(0, ROWS), (256,)),
    "a column": (GEMM, (256, 1)),
    "result of mma": (MMA, (64, 128)),
    "left of mma": (DotOperandEncoding(0, MMA, 2), (64, 64)),
    "right of mma": (DotOperandEncoding(1, MMA, 2), (64, 128)),
    "left of mma with bytes": (DotOperandEncoding(0, MMA, 4), (64, 64)),
    "slice of mma": (SliceEncoding(1, MMA), (64,)),
    "result of wgmma": (NvidiaMmaEncoding(3, (4, 2), (16, 64, 16), (1, 2)), (64, 256)),
    "batches of mma": (NvidiaMmaEncoding(2, (2, 2, 1), (1, 16, 8), (2, 1, 4)), (4, 32, 32)),
    "a row of a block": (ROWS, (1, 256)),
}


@pytest.mark.parametrize(("encoding", "shape"), SHARES.values(), ids=SHARES)
def test_a_piece_is_a_choice_of_registers(encoding: Encoding, shape: Shape) -> None:
    per_warp = encoding.per_warp_shape(shape)
    whole = warp_layout(encoding, per_warp)
    tile = encoding.lane_tile(len(per_warp))
    piece, lanes = tuple(map(min, tile, per_warp)), whole.count("lane")
    part = warp_layout(encoding.piece(tile), piece)
    assert part.is_surjective
    held = [{whole.at(register=r, lane=lane) for r in range(whole.count("register"))} for lane in range(lanes)]
    for origin in product(*(range(0, extent, size) for extent, size in zip(per_warp, piece, strict=True))):
        for lane, register in product(range(lanes), range(part.count("register"))):
            element = part.at(register=register, lane=lane)
            assert tuple(x + first for x, first in zip(element, origin, strict=True)) in held[lane]


def test_registers_of_a_piece_follow_each_other_in_the_order_of_the_share() -> None:
    part = warp_layout(GEMM.piece((8, 16)), (8, 16))
    assert part.vectors("register") == warp_layout(GEMM, (32, 64)).vectors("register")[:3]


def test_blocks_of_different_shapes_agree() -> None:
    """A broadcast's operand has the encoding of the result."""
    assert GEMM.piece(GEMM.lane_tile(2)) is dpas(2, (1, 1), (1, 1))


@pytest.mark.parametrize(
    ("blocked", "shape"),
    [
        (BlockedEncoding((4, 64), (2, 2), (1, 0)), (8, 128)),
        (BlockedEncoding((4, 64), (2, 2), (0, 1)), (8, 128)),
        (BlockedEncoding((64,), (4,), (0,)), (64,)),
        (BlockedEncoding((1, 2), (8, 1), (1, 0)), (4, 2)),
        (BlockedEncoding((2, 4, 8), (1, 2, 4), (2, 1, 0)), (2, 8, 32)),
    ],
)
@pytest.mark.parametrize("run", [1, 4])
def test_lanes_keep_the_part_of_every_warp(blocked: BlockedEncoding, shape: Shape, run: int) -> None:
    made = with_lanes(blocked, shape, 16, run)
    assert same_cut(made, blocked, shape)
    assert made.per_warp_shape(shape) == blocked.per_warp_shape(shape)
    layout = warp_layout(made, made.per_warp_shape(shape))
    assert layout.is_surjective
    assert layout.count("lane") == 16


def test_neighbouring_lanes_hold_neighbouring_runs() -> None:
    assert ROWS.register[:2] == ((0, 1), (0, 2))
    assert ROWS.lane == ((0, 4), (0, 8), (0, 16), (0, 32))
    assert COLUMNS.register[:3] == ((1, 0), (2, 0), (4, 0))
    assert COLUMNS.lane == ((8, 0), (16, 0), (32, 0), (0, 1))
