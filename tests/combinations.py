"""Parametrisations of several axes of which some combinations run each time, and all of them in `make test-all`.

    @each_value(("queries, keys", [(1, 1), (70, 300)]), ("causal", [False, True]))
    @each_pair(("dtype", FLOATS), ("turned", [False, True]), ("stages", [1, 2, 3]))

For axes that the code under test treats apart from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest

Axis = tuple[str, Sequence[Any]]


def each_value(*axes: Axis) -> pytest.MarkDecorator:
    """Every value of each axis each time."""
    longest = max(len(values) for _, values in axes)
    chosen = {tuple(number % len(values) for _, values in axes) for number in range(longest)}
    return _marked(axes, chosen.__contains__)


def each_pair(*axes: Axis) -> pytest.MarkDecorator:
    """Every pair of values of any two of three axes each time."""
    first, second, third = sorted(range(3), key=lambda axis: -len(axes[axis][1]))
    count = len(axes[third][1])
    return _marked(axes, lambda numbers: numbers[third] == (numbers[first] + numbers[second]) % count)


def _marked(axes: Sequence[Axis], is_chosen: Callable[[tuple[int, ...]], bool]) -> pytest.MarkDecorator:
    names = [[name.strip() for name in own.split(",")] for own, _ in axes]
    rows = [[value if len(own) > 1 else (value,) for value in axis[1]] for own, axis in zip(names, axes, strict=True)]
    cases: list[Any] = []
    for numbers in product(*(range(len(row)) for row in rows)):
        values = [value for row, number in zip(rows, numbers, strict=True) for value in row[number]]
        places = [f"{name}{number}" for own, number in zip(names, numbers, strict=True) for name in own]
        ids = [_id(value, place) for value, place in zip(values, places, strict=True)]
        marks = [] if is_chosen(numbers) else [pytest.mark.slow]
        cases.append(pytest.param(*values, marks=marks, id="-".join(ids)))
    return pytest.mark.parametrize([name for own in names for name in own], cases)


def _id(value: Any, place: str) -> str:
    """As pytest writes it where axes have decorators of their own."""
    return str(value) if value is None or isinstance(value, str | int | float) else getattr(value, "__name__", place)
