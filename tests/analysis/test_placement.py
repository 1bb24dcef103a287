"""Blocks of memory that share bytes: never two that are needed at the same time."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from mltriton.analysis.placement import Placement, place

BLOCKS = st.builds(
    lambda lines, first, length, alignment: Placement(lines * 32, first, first + length, alignment),
    st.integers(1, 8),
    st.integers(0, 6),
    st.integers(0, 4),
    st.sampled_from((32, 64, 128)),
)


@given(st.lists(BLOCKS, max_size=24))
def test_blocks_needed_at_once_do_not_overlap(blocks: list[Placement]) -> None:
    total = place(blocks)
    assert total == max((block.offset + block.bytes for block in blocks), default=0)
    assert all(block.offset % block.alignment == 0 for block in blocks)
    for a, b in combinations(blocks, 2):
        if a.first <= b.last and b.first <= a.last:
            assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset


@given(st.integers(1, 20))
def test_blocks_of_one_kind_stand_side_by_side(count: int) -> None:
    blocks = [Placement(64, 0, 1) for _ in range(count)]
    assert place(blocks) == 64 * count


def test_a_gap_is_filled() -> None:
    blocks = [Placement(64, 0, 9), Placement(64, 0, 1), Placement(64, 0, 9), Placement(64, 2, 3)]
    place(blocks)
    assert [block.offset for block in blocks] == [0, 64, 128, 64]
