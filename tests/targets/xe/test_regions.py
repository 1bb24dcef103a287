"""Moves of regions: what they read is what the layouts say, byte for byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mltriton.layouts.conversions import Words, conversion
from mltriton.layouts.encodings import DotOperandEncoding, Encoding
from mltriton.layouts.hardware import linear_layout, warp_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.xe.layouts.encodings import DpasEncoding, Subgroup2DBlockEncoding
from mltriton.targets.xe.layouts.region_moves import (
    RegionMoves,
    cheaper_moves,
    fewest_moves,
    region_moves,
    register_file,
)

Shape = tuple[int, ...]


def left(ops: int, rows: Shape | None = None) -> Encoding:
    return DotOperandEncoding(0, DpasEncoding(8, 8, 16, ops, 16, (1, 1), (4, 1), rows))


def transposed(block: Shape, element_bytes: int) -> Encoding:
    return Subgroup2DBlockEncoding((1, 1), block, 1, (1, 0), element_bytes, 16, (32, 32), 4 // element_bytes)


def moves_between(source: Encoding, target: Encoding, element_bytes: int) -> RegionMoves | None:
    files = (
        register_file(warp_layout(encoding, (32, 32)), element_bytes, encoding.word_bytes(element_bytes))
        for encoding in (source, target)
    )
    return region_moves(*files)


# source, target, bytes of an element; then the moves: their number, and each one's unit, elements and stride
CASES: dict[str, tuple[Encoding, Encoding, int, tuple[int, int, int, int]]] = {
    "halves": (transposed((16, 16), 2), left(2), 2, (64, 2, 16, 2)),
    "halves, rows 2 apart": (transposed((16, 16), 2), left(2, (2, 1, 4)), 2, (32, 2, 32, 2)),
    "halves, rows 2 apart first and last": (transposed((16, 16), 2), left(2, (2, 4, 1)), 2, (32, 2, 32, 2)),
    "bytes": (transposed((32, 32), 1), left(4), 1, (32, 1, 32, 4)),
    "bytes of narrow blocks": (transposed((32, 16), 1), left(4), 1, (64, 1, 16, 4)),
    "whole registers": (transposed((16, 16), 2), transposed((16, 32), 2), 2, (32, 4, 16, 1)),
}


@pytest.mark.parametrize(("source", "target", "element_bytes", "expected"), CASES.values(), ids=CASES)
def test_moves(source: Encoding, target: Encoding, element_bytes: int, expected: tuple[int, int, int, int]) -> None:
    found = moves_between(source, target, element_bytes)
    assert found is not None
    [stage] = found.stages
    assert (stage.moves, stage.unit, stage.length, stage.stride) == expected
    assert found.result_bytes == 32 * 32 * element_bytes
    held, wanted = (
        np.array(register_file(warp_layout(e, (32, 32)), element_bytes, e.word_bytes(element_bytes)).table())
        for e in (source, target)
    )
    assert (held[[found.source_of(byte) for byte in range(found.result_bytes)]] == wanted).all()
    assert found.source_bytes == found.result_bytes


@given(st.permutations(range(9)), st.sampled_from([1, 2, 4]), st.integers(0, 511))
def test_moves_of_any_order(order: list[int], element_bytes: int, origin: int) -> None:
    """Elements of 512 places in another order: the moves, where there are some, bring the right ones."""
    lanes = {"register": [(1 << bit,) for bit in range(4, 9)], "lane": [(1 << bit,) for bit in range(4)]}
    source = LinearLayout.of(lanes, {"dim0": 512})
    target = LinearLayout.of(
        {"register": [(1 << order[bit],) for bit in range(4, 9)], "lane": [(1 << order[bit],) for bit in range(4)]},
        {"dim0": 512},
    )
    files = [register_file(layout, element_bytes, element_bytes) for layout in (source, target)]
    found = region_moves(*files, (origin,))
    if order == sorted(order) and origin & 15 == 0:
        assert found is not None
    if found is None:
        return
    held, wanted = (np.array(file.table()) for file in files)
    read = held[[found.source_of(byte) for byte in range(found.result_bytes)]]
    assert (read[:, 0] == wanted[:, 0] ^ origin).all()
    assert (read[:, 1] == wanted[:, 1]).all()
    assert_within_two_registers(found)


def assert_within_two_registers(moves: RegionMoves) -> None:
    for stage in moves.stages:
        for number in range(stage.moves):
            first = stage.source(number)
            last = first + ((stage.length - 1) * stage.stride + 1) * stage.unit - 1
            assert last // 64 - first // 64 <= 1
            assert stage.run <= 128


# bytes of an element; stages and moves of a transposition of 16 registers
TRANSPOSED: dict[int, tuple[int, int]] = {1: (2, 16), 2: (4, 32), 4: (4, 64)}


@pytest.mark.parametrize(("element_bytes", "expected"), TRANSPOSED.items())
def test_lanes_and_registers_change_places_in_stages(element_bytes: int, expected: tuple[int, int]) -> None:
    """Each stage drops the lowest bits of the lane and takes in the next ones of the register."""
    inside = element_bytes.bit_length() - 1
    bits = [1 << bit for bit in range(inside + 8)]
    images = (*bits[:inside], *bits[inside + 4 :], *bits[inside : inside + 4])
    found = fewest_moves(images, 0)
    assert found is not None
    assert (len(found.stages), found.moves) == expected
    assert [found.source_of(byte) for byte in bits] == list(images)
    assert_within_two_registers(found)


@given(st.permutations(range(9)), st.sampled_from([0, 1, 2]), st.integers(7, 9), st.integers(0, 511))
def test_stages_bring_every_byte(order: list[int], inside: int, used: int, start: int) -> None:
    """Any order of the bits of an address, or of some of them: what is not in a result is the same in all of it."""
    images = (*(1 << bit for bit in range(inside)), *(1 << inside + bit for bit in order[:used]))
    start = sum(1 << inside + bit for bit in order[used:] if start >> bit & 1)
    found = fewest_moves(images, start)
    if found is None:
        return
    assert found.result_bytes == 1 << len(images)
    for byte in range(found.result_bytes):
        expected = start
        for bit, image in enumerate(images):
            expected ^= image if byte >> bit & 1 else 0
        assert found.source_of(byte) == expected
    assert_within_two_registers(found)


def test_moves_replace_what_costs_more() -> None:
    """Halves of words one by one, or two rows at a time; the rows of other registers have only other names."""
    layouts = [warp_layout(encoding, (32, 32)) for encoding in (transposed((16, 16), 2), left(2), left(2, (2, 1, 4)))]
    apart = Words(4, 2)
    assert conversion(layouts[0], layouts[1]).cost(2, apart) == 64
    assert cheaper_moves(conversion(layouts[0], layouts[1]), 2, apart) is None
    moves = cheaper_moves(conversion(layouts[0], layouts[2]), 2, apart)
    assert moves is not None and moves.moves == 32
    assert conversion(layouts[1], layouts[2]).cost(2, Words(2, 2)) == 0


RESULT = DpasEncoding(8, 8, 16, 2, 16, (2, 1), (2, 2))
ROWS: dict[str, tuple[Encoding, Encoding, Shape]] = {
    "result": (RESULT, RESULT.replaced(row_bases=(2, 4, 1)), (32, 32)),
    "left": (left(2), left(2, (2, 4, 1)), (32, 32)),
    "left of 32 bits, two rows in the lanes": (left(1), left(1, (2, 4, 1)), (32, 16)),
}  # fmt: skip


@pytest.mark.parametrize(("natural", "other", "shape"), ROWS.values(), ids=ROWS)
def test_rows_in_another_order(natural: Encoding, other: Encoding, shape: Shape) -> None:
    """What the natural order has in row r of an instruction, the other one has where r's bits are the bases'."""
    plain, ordered = linear_layout(natural, shape), linear_layout(other, shape)

    def moved(row: int) -> int:
        return row & ~7 | sum(base for bit, base in enumerate((2, 4, 1)) if row >> bit & 1)

    for name in plain.inputs:
        expected = [(moved(row), column) for row, column in plain.vectors(name)]
        assert list(ordered.vectors(name)) == expected
