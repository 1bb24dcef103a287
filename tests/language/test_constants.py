"""`constexpr`: arithmetic between constants, with tensors, and where it fails."""

from __future__ import annotations

import operator

import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError
from mltriton.language.constants import unwrap

from .tracing import Trace

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]


@pytest.mark.parametrize("function", BINARY)
def test_binary(function):
    expected = function(13, 3)
    for left, right in [(tl.constexpr(13), tl.constexpr(3)), (tl.constexpr(13), 3), (13, tl.constexpr(3))]:
        result = function(left, right)
        assert isinstance(result, tl.constexpr)
        assert result.value == expected and type(result.value) is type(expected)


def test_unary_and_conversions():
    x = tl.constexpr(6)
    assert ((-x).value, (+x).value, (~x).value) == (-6, 6, -7)
    assert (int(x), float(x), bool(x), f"{x:03d}", str(x), repr(x)) == (6, 6.0, True, "006", "6", "constexpr[6]")
    assert [1, 2, 3, 4, 5, 6, 7][x] == 7
    assert list(range(x)) == [0, 1, 2, 3, 4, 5]
    assert hash(x) == hash(6) and x in {6: "six"}


def test_containers_and_calls():
    x = tl.constexpr((1, 2, 3))
    assert len(x) == 3 and list(x) == [1, 2, 3] and x[tl.constexpr(1)] == 2 and 2 in x and x[1:] == (2, 3)
    assert tl.constexpr(max)(3, 4) == 4
    assert tl.constexpr(tl.constexpr(4)).value == 4
    assert tl.constexpr(0).logical_or(tl.constexpr(5)).value == 5 and tl.constexpr(0).logical_and(5).value == 0


def test_unwrap():
    one, two = tl.constexpr(1), tl.constexpr(2)
    assert unwrap([one, (two, 3), {"a": one}]) == [1, (2, 3), {"a": one}]
    assert unwrap(slice(one, None, two)) == slice(1, None, 2)


def test_with_tensors(kernel: Trace):
    x = tl.arange(0, 8)
    for result in (tl.constexpr(2) + x, x + tl.constexpr(2), tl.constexpr(2) < x):
        assert isinstance(result, tl.tensor)
    assert (tl.constexpr(2) * x).dtype == tl.int32


@pytest.mark.parametrize(
    "attempt", [lambda x: x / 0, lambda x: x + "a", lambda x: x << -1, lambda x: -tl.constexpr("a")]
)
def test_failures(attempt):
    with pytest.raises(ConstexprError, match="cannot compute"):
        attempt(tl.constexpr(1))
