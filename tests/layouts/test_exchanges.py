"""Layouts of shared memory between two layouts of a block: nobody meets in a bank."""

from __future__ import annotations

from itertools import product

import pytest

from mltriton.layouts.exchanges import BANK_BYTES, BANKS, between
from mltriton.layouts.hardware import linear_layout
from mltriton.layouts.lanes import with_lanes
from mltriton.layouts.linear import LinearLayout
from mltriton.layouts.tiling import outer_first, transposed

SHAPES = [(64, 64), (32, 128), (128, 16), (16, 16)]


def lines(shape: tuple[int, ...], width: int, *, turned: bool) -> LinearLayout:
    """A block whose lanes access lines of rows, or of columns, by 16 bytes."""
    if not turned:
        return linear_layout(with_lanes(outer_first(shape, 4), shape, 32, 16 // width), shape)
    cut = transposed(outer_first(shape[::-1], 4), (1, 0))
    return linear_layout(with_lanes(cut, shape, 32, 16 // width, (0, 1)), shape)


def conflicts(memory: LinearLayout, layout: LinearLayout, width: int) -> int:
    """How many words of a bank the lanes of a warp ask for at a time, at most."""
    place = memory.inverse()
    table = [
        [place.at(**dict(zip(place.inputs, layout.at(register=r, lane=lane), strict=True)))[0] for lane in range(32)]
        for r in range(layout.count("register"))
    ]
    worst = 0
    for row in table:
        words: dict[int, set[int]] = {}
        for number in row:
            word = number * width // BANK_BYTES
            words.setdefault(word % BANKS, set()).add(word)
        worst = max(worst, *(len(found) for found in words.values()))
    return worst


def side_by_side(memory: LinearLayout, layout: LinearLayout) -> int:
    """Elements that a lane has next to each other in shared memory."""
    own = {vector for vector in layout.vectors("register") if any(vector)}
    count = 0
    for vector in memory.vectors("offset"):
        if vector not in own:
            break
        count += 1
    return 1 << count


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("turned", list(product([False, True], repeat=2)), ids=str)
def test_lanes_access_different_banks(shape: tuple[int, ...], width: int, turned: tuple[bool, bool]) -> None:
    source, target = (lines(shape, width, turned=of) for of in turned)
    memory = between(source, target, width).linear_layout(shape)
    assert memory.is_injective and memory.is_surjective
    for layout in (source, target):
        # An access of several words takes as many turns, whose lanes are not told apart here.
        words = max(1, min(16, side_by_side(memory, layout) * width) // BANK_BYTES)
        assert conflicts(memory, layout, width) <= max(words, width // BANK_BYTES)


def test_what_stays_is_moved_by_16_bytes() -> None:
    layout = lines((64, 64), 2, turned=False)
    assert side_by_side(between(layout, layout, 2).linear_layout((64, 64)), layout) >= 8
