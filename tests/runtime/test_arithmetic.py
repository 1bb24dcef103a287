"""Integer arithmetic of launch code."""

from hypothesis import given
from hypothesis import strategies as st

from mltriton import cdiv, next_power_of_2


@given(st.integers(-(2**70), 2**70), st.integers(1, 2**40))
def test_cdiv_is_the_least_multiple_that_covers(x: int, y: int) -> None:
    assert (cdiv(x, y) - 1) * y < x <= cdiv(x, y) * y


@given(st.integers(1, 2**70))
def test_next_power_of_2_is_the_least(n: int) -> None:
    power = next_power_of_2(n)
    assert power & (power - 1) == 0
    assert power // 2 < n <= power


def test_next_power_of_2_of_nothing() -> None:
    assert next_power_of_2(0) == 0
