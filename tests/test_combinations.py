"""Which combinations of parameters run each time."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from combinations import each_pair, each_value

ONE, TWO, THREE = [1, 2, 3, 4], ["a", "b", "c"], [True, False]


def quick(mark: pytest.MarkDecorator) -> tuple[list[str], set[tuple[Any, ...]], int]:
    """The names, what runs each time, and how many there are of all."""
    names, cases = mark.args
    return names, {case.values for case in cases if not case.marks}, len(cases)


def test_every_value_runs_each_time() -> None:
    names, chosen, count = quick(each_value(("x, y", [(1, 5), (2, 6), (3, 7)]), ("flag", THREE)))
    assert (names, count) == (["x", "y", "flag"], 6)
    assert chosen == {(1, 5, True), (2, 6, False), (3, 7, True)}


@pytest.mark.parametrize("axes", [(ONE, TWO, THREE), (THREE, ONE, TWO), (THREE, THREE, THREE), (ONE, TWO, [0])])
def test_every_pair_of_values_runs_each_time(axes: tuple[list[Any], ...]) -> None:
    _, chosen, count = quick(each_pair(*zip("xyz", axes, strict=True)))
    assert count == len(list(product(*axes)))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert {(case[one], case[other]) for case in chosen} == set(product(axes[one], axes[other]))
