"""Which 2D blocks are chosen, on the real limits of a device."""

from __future__ import annotations

import pytest

from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, same_cut
from mltriton.layouts.lanes import with_lanes
from mltriton.targets.base import Choice, Wanted
from mltriton.targets.registry import spec
from mltriton.targets.xe.layouts.block_loads import cheapest_block
from mltriton.targets.xe.layouts.encodings import DpasEncoding

Shape = tuple[int, int]


def operand(index: int, ops: int, repeat: int = 8, cluster: Shape = (4, 4)) -> Encoding:
    return DotOperandEncoding(index, result(ops, repeat, cluster))


def result(ops: int = 2, repeat: int = 8, cluster: Shape = (4, 4)) -> DpasEncoding:
    return DpasEncoding(repeat, 8, 16, ops, 16, (8, 4), cluster)


def choice(encoding: Encoding, shape: Shape, width: int, contiguous: int = 1, stores: bool = False) -> Choice | None:
    limits = spec("xe:pvc").block_load
    assert limits is not None
    return cheapest_block(Wanted(encoding, shape, width, contiguous, stores), limits, 16)


# what is wanted, then the block, how many side by side, and how many messages
CASES: dict[str, tuple[Wanted, tuple[Shape, int, int]]] = {
    "f16, left": (Wanted(operand(0, 2), (256, 32), 2, 1, False), ((32, 16), 2, 1)),
    "f16, right": (Wanted(operand(1, 2), (32, 256), 2, 1, False), ((32, 16), 2, 2)),
    "f16, left, 8 rows": (Wanted(operand(0, 2, cluster=(1, 4)), (64, 32), 2, 1, False), ((8, 16), 2, 1)),
    "f16, right, transposed": (Wanted(operand(1, 2), (32, 256), 2, 0, False), ((16, 16), 1, 8)),
    "int8, left": (Wanted(operand(0, 4), (256, 32), 1, 1, False), ((32, 32), 1, 1)),
    "int8, left, long": (Wanted(operand(0, 4), (256, 64), 1, 1, False), ((32, 32), 2, 1)),
    "int8, right": (Wanted(operand(1, 4), (32, 256), 1, 1, False), ((32, 16), 4, 1)),
    "tf32, left": (Wanted(operand(0, 1), (256, 16), 4, 1, False), ((32, 8), 2, 1)),
    "tf32, right": (Wanted(operand(1, 1), (16, 256), 4, 1, False), ((16, 16), 1, 4)),
    "tf32, left, transposed": (Wanted(operand(0, 1), (256, 16), 4, 0, False), ((8, 8), 1, 8)),
    "tf32, right, transposed": (Wanted(operand(1, 1), (16, 256), 4, 0, False), ((8, 16), 1, 8)),
    "f32, stored": (Wanted(result(), (256, 256), 4, 1, True), ((8, 16), 1, 16)),
    "f16, stored": (Wanted(result(), (256, 256), 2, 1, True), ((8, 16), 1, 16)),
    "f32, loaded for a result": (Wanted(result(), (256, 256), 4, 1, False), ((32, 16), 1, 4)),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "expected"), CASES.values(), ids=CASES)
def test_the_choice_costs_no_conversion(wanted: Wanted, expected: tuple[Shape, int, int]) -> None:
    made = choice(*wanted)
    assert made is not None
    assert (made.encoding.block, made.encoding.blocks, made.messages) == expected
    assert made.change == 0
    assert same_cut(made.encoding, wanted.encoding, wanted.shape)


TRANSPOSED: dict[str, tuple[int, tuple[int, ...] | None, tuple[Shape, int], int]] = {
    "f16": (2, None, ((16, 32), 2), 64),
    "f16, rows 2 apart": (2, (2, 1, 4), ((16, 16), 4), 32),
    "int8": (4, None, ((32, 32), 1), 32),
}


@pytest.mark.parametrize(("ops", "rows", "expected", "change"), TRANSPOSED.values(), ids=TRANSPOSED)
def test_words_of_several_rows_are_taken_apart(
    ops: int, rows: tuple[int, ...] | None, expected: tuple[Shape, int], change: int
) -> None:
    """A left operand by transposing loads: a move for each run of neighbours, of a row or of two."""
    wanted = DotOperandEncoding(0, result(ops).replaced(row_bases=rows))
    made = choice(wanted, (256, 32), 4 // ops, contiguous=0)
    assert made is not None
    assert (made.encoding.block, made.messages) == expected
    assert (made.encoding.packed_rows, made.change) == (ops, change)


def test_what_no_block_fits() -> None:
    assert choice(operand(0, 2), (256, 32), 2, contiguous=0, stores=True) is None
    eight_lanes = with_lanes(BlockedEncoding((1, 8), (4, 1), (1, 0)), (4, 8), 16)
    assert choice(eight_lanes, (4, 8), 2) is None


def test_warps_that_are_numbered_down_the_columns_have_no_block() -> None:
    down = with_lanes(BlockedEncoding((16, 32), (2, 2), (0, 1)), (32, 64), 16)
    assert choice(down, (32, 64), 2) is None
