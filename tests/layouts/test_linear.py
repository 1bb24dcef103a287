"""Linear layouts: combined, inverted and divided, against tables of all indices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mltriton.layouts.linear import LinearLayout

SIZES = {"dim0": 8, "dim1": 4}
BASIS = st.tuples(st.integers(0, 7), st.integers(0, 3))
LAYOUTS = st.builds(
    lambda register, lane: LinearLayout.of({"register": register, "lane": lane}, SIZES),
    st.lists(BASIS, max_size=4),
    st.lists(BASIS, max_size=4),
)


@st.composite
def onto(draw: st.DrawFn) -> LinearLayout:
    """A layout that has every element: a shuffled identity with more bases between."""
    units = [(1, 0), (2, 0), (4, 0), (0, 1), (0, 2)]
    bases = draw(st.permutations([*units, *draw(st.lists(BASIS, max_size=3))]))
    cut = draw(st.integers(0, len(bases)))
    return LinearLayout.of({"register": bases[:cut], "lane": bases[cut:]}, SIZES)


def row_major(rows: int, columns: int) -> LinearLayout:
    """Registers along columns, lanes along rows."""
    return LinearLayout.identity(columns, "register", "dim1") * LinearLayout.identity(rows, "lane", "dim0")


@given(LAYOUTS)
def test_the_table_has_every_index(layout: LinearLayout) -> None:
    table = layout.table()
    for register in range(layout.count("register")):
        for lane in range(layout.count("lane")):
            assert tuple(table[register, lane]) == layout.at(register=register, lane=lane)


@given(LAYOUTS)
def test_what_is_onto_or_one_to_one(layout: LinearLayout) -> None:
    places = layout.table().reshape(-1, 2)
    different = len(np.unique(places, axis=0))
    assert layout.is_surjective == (different == 32)
    assert layout.is_injective == (different == len(places))


@given(onto())
def test_an_inverse_finds_every_element(layout: LinearLayout) -> None:
    back = layout.inverse().then(layout)
    assert (back.table() == np.moveaxis(np.indices((8, 4)), 0, -1)).all()


@given(onto(), onto())
def test_a_conversion_fetches_the_same_element(source: LinearLayout, target: LinearLayout) -> None:
    fetched = source.into(target).then(source)
    assert (fetched.table() == target.table()).all()


@given(LAYOUTS, LAYOUTS)
def test_a_quotient_undoes_a_product(tile: LinearLayout, rest: LinearLayout) -> None:
    assert (tile * rest).quotient(tile) == rest


@given(LAYOUTS, LAYOUTS)
def test_a_product_adds_what_its_parts_give(tile: LinearLayout, rest: LinearLayout) -> None:
    both = tile * rest
    low, high = tile.table(), rest.table() * np.array([8, 4])
    registers, lanes = np.ix_(range(both.count("register")), range(both.count("lane")))
    expected = low[registers % tile.count("register"), lanes % tile.count("lane")]
    expected = expected + high[registers // tile.count("register"), lanes // tile.count("lane")]
    assert (both.table() == expected).all()


def test_products_name_their_dimensions() -> None:
    layout = row_major(4, 8)
    assert (layout.inputs, layout.outputs, layout.sizes) == (("register", "lane"), ("dim1", "dim0"), (8, 4))
    assert layout.at(register=5, lane=3) == (5, 3)
    assert layout.count("warp") == 1


def test_no_quotient() -> None:
    layout = row_major(4, 8)
    assert layout.quotient(LinearLayout.identity(2, "lane", "dim1") * row_major(1, 1)) is None
    assert layout.quotient(row_major(8, 8)) is None


def test_broadcast_elements_are_found_in_the_first_place() -> None:
    layout = LinearLayout.identity(8, "lane", "dim0") * LinearLayout.zeros(4, "warp", "dim0")
    assert not layout.is_injective
    assert [layout.inverse().at(dim0=i) for i in range(8)] == [(i, 0) for i in range(8)]


def test_parts_and_names() -> None:
    layout = row_major(4, 8)
    assert layout.only(["lane"]).at(lane=2) == (0, 2)
    assert layout.without("dim1").at(register=5, lane=3) == (3,)
    assert layout.renamed({"dim0": "row"}).outputs == ("dim1", "row")


@pytest.mark.parametrize(
    ("bases", "sizes", "message"),
    [
        ({"lane": [(1,)]}, {"dim0": 6}, "the size of dim0 is no power of two: 6"),
        ({"lane": [(8,)]}, {"dim0": 8}, "a basis of lane does not fit"),
        ({"lane": [(1, 1)]}, {"dim0": 8}, "a basis of lane does not fit"),
    ],
)
def test_what_is_no_layout(bases: dict[str, list[tuple[int, ...]]], sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LinearLayout.of(bases, sizes)


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="cannot be followed"):
        row_major(4, 8).then(row_major(4, 8))
    with pytest.raises(ValueError, match="no index has dim0 = 4"):
        LinearLayout.of({"lane": [(1,), (2,)]}, {"dim0": 8}).inverse()
