"""Changes of layout: what they fetch, and by which means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mltriton.layouts.conversions import Conversion, Means, conversion
from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, SliceEncoding
from mltriton.layouts.hardware import linear_layout
from mltriton.layouts.linear import LinearLayout
from mltriton.targets.xe.layouts.encodings import DpasEncoding, Subgroup2DBlockEncoding

F16 = DpasEncoding(8, 8, 16, 2, 16, (8, 4), (4, 2))
BYTES = DpasEncoding(8, 8, 16, 4, 16, (4, 8), (4, 4))


def between(source: Encoding, target: Encoding, shape: tuple[int, ...]) -> Conversion:
    return conversion(linear_layout(source, shape), linear_layout(target, shape))


def block(size: tuple[int, int], blocks: int, warps: tuple[int, int], order: tuple[int, int], width: int) -> Encoding:
    return Subgroup2DBlockEncoding(warps, size, blocks, order, width)


CASES: dict[str, tuple[Means, Encoding, Encoding, tuple[int, ...]]] = {
    "same": (Means.NOTHING, F16, F16, (256, 256)),
    "loaded left operand": (
        Means.NOTHING, block((32, 16), 2, (8, 4), (1, 0), 2), DotOperandEncoding(0, F16), (256, 32)
    ),
    "loaded right operand, as wide as a cluster": (
        Means.RENAMING, block((32, 16), 2, (8, 4), (0, 1), 2), DotOperandEncoding(1, F16), (32, 256)
    ),
    "wide left operand": (
        Means.SHUFFLE, block((32, 32), 1, (8, 4), (1, 0), 2), DotOperandEncoding(0, F16), (256, 32)
    ),
    "loaded bytes": (Means.NOTHING, block((32, 32), 1, (4, 8), (1, 0), 1), DotOperandEncoding(0, BYTES), (128, 32)),
    "result to left operand": (Means.SHARED, F16, DotOperandEncoding(0, F16), (64, 64)),
    "row of a result": (Means.NOTHING, SliceEncoding(0, F16), SliceEncoding(0, F16), (64,)),
    "row to column": (Means.SHARED, SliceEncoding(0, F16), SliceEncoding(1, F16), (64,)),
}  # fmt: skip


@pytest.mark.parametrize(("means", "source", "target", "shape"), CASES.values(), ids=CASES)
def test_means(means: Means, source: Encoding, target: Encoding, shape: tuple[int, ...]) -> None:
    assert between(source, target, shape).means is means


def test_attention_keeps_probabilities_in_their_lanes() -> None:
    """Scores [16, 64] of eight warps are the left operand of the second dot: no element leaves its lane."""
    scores = DpasEncoding(8, 8, 16, 2, 16, (8, 1), (2, 4))
    found = between(scores, DotOperandEncoding(0, scores), (128, 64))
    assert found.means <= Means.RENAMING
    assert found.cost(2) == 0


@pytest.mark.parametrize(("means", "source", "target", "shape"), CASES.values(), ids=CASES)
def test_what_is_fetched_is_what_is_needed(
    means: Means, source: Encoding, target: Encoding, shape: tuple[int, ...]
) -> None:
    """Through shared memory too, the fetched place has the element."""
    layout = linear_layout(source, shape)
    fetch = between(source, target, shape).fetch
    sizes = dict(zip(fetch.outputs, fetch.sizes, strict=True))
    missing = {dim: [(0,) * len(shape)] * (sizes[dim].bit_length() - 1) for dim in sizes}
    filled = {dim: [*layout.vectors(dim), *missing[dim][len(layout.vectors(dim)) :]] for dim in sizes}
    widened = LinearLayout.of(filled, dict(zip(layout.outputs, layout.sizes, strict=True)))
    assert (fetch.then(widened).table() == linear_layout(target, shape).table()).all()


def lanes_only(order: list[int]) -> LinearLayout:
    return LinearLayout.of({"register": [], "lane": [(1 << bit,) for bit in order], "warp": []}, {"dim0": 16})


@given(st.permutations(range(4)))
def test_permuted_lanes_are_shuffled(order: list[int]) -> None:
    found = conversion(lanes_only(sorted(order)), lanes_only(order))
    assert found.means is (Means.NOTHING if order == sorted(order) else Means.SHUFFLE)


def test_registers_that_depend_on_the_lane() -> None:
    """The low bit of the register is flipped in odd lanes."""
    plain = LinearLayout.of({"register": [(1, 0)], "lane": [(0, 1)], "warp": []}, {"dim0": 2, "dim1": 2})
    flipped = LinearLayout.of({"register": [(1, 0)], "lane": [(1, 1)], "warp": []}, {"dim0": 2, "dim1": 2})
    assert conversion(plain, flipped).means is Means.SELECTION


def test_costs_grow_with_the_distance() -> None:
    fetch = LinearLayout.identity(8, "register", "register")
    costs = [Conversion(fetch, fetch, means, fetch, 8).cost(2) for means in Means]
    assert costs[:2] == [0, 0]
    assert costs == sorted(costs)
    assert len(set(costs[1:])) == 4


def test_blocked_encodings() -> None:
    rows = BlockedEncoding((8, 16), (4, 1), (1, 0), (8, 1), (1, 16))
    columns = BlockedEncoding((8, 16), (1, 4), (1, 0), (8, 1), (1, 16))
    assert between(rows, columns, (32, 64)).means is Means.SHARED
    pairs = BlockedEncoding((8, 16), (4, 1), (1, 0), (4, 2), (2, 8))
    assert between(rows, pairs, (32, 16)).means is Means.SHUFFLE
