"""Bounds and divisors of expressions, against all values that they may have."""

from __future__ import annotations

import random

import pytest

from mltriton.analysis.bounds import OPERATIONS, Expression, Known, evaluate, exactly

ARGUMENTS = (0, -8, 24, 7, 16)


def argument(number: int) -> Known:
    return exactly(ARGUMENTS[number])


def made(rng: random.Random, depth: int, bits: int) -> Expression:
    """A random expression on integers of so many bits."""
    if depth == 0:
        leaves: list[Expression] = [
            rng.choice([0, 1, 2, 3, 16, -4]),
            ("argument", rng.randrange(len(ARGUMENTS))),
            ("known", rng.choice([0, 4, -8]), rng.choice([8, 16]), rng.choice([1, 4])),
            ("opaque", rng.choice([1, 2])),
        ]
        return rng.choice(leaves)
    operation = rng.choice(list(OPERATIONS))
    return (operation, bits, made(rng, depth - 1, bits), made(rng, rng.randrange(depth), bits))


def value(rng: random.Random, expression: Expression) -> int | None:
    """One value that the expression may have; None where it may be anything."""
    if isinstance(expression, int):
        return expression
    kind, *rest = expression
    if kind == "argument":
        return ARGUMENTS[rest[0]]
    if kind == "known":
        return rng.choice(range(rest[0], rest[1] + 1, rest[2]))
    if kind == "opaque":
        return rest[0] * rng.randrange(-10, 10)
    bits, x, y = rest[0], value(rng, rest[1]), value(rng, rest[2])
    if x is None or y is None or (kind in ("div", "rem") and y == 0):
        return None
    if kind == "either":
        return rng.choice([x, y])
    if kind == "stepped":
        found = x + rng.randrange(4) * y
        return found if -(1 << bits - 1) <= found < 1 << bits - 1 else None
    compute = OPERATIONS[kind][0]
    assert compute is not None
    half = 1 << bits - 1
    return (compute(x, y) + half) % (2 * half) - half


@pytest.mark.parametrize("seed", range(20))
def test_what_is_said_holds_for_every_value(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        expression = made(rng, rng.randrange(1, 4), rng.choice([6, 32]))
        known = evaluate(expression, argument)
        for _ in range(10):
            found = value(rng, expression)
            if found is not None:
                assert known.least is None or known.least <= found, (expression, known)
                assert known.most is None or found <= known.most, (expression, known)
                assert found % known.divisor == 0, (expression, known)
                assert known.number is None or found == known.number


def test_what_is_known_of_places_and_steps() -> None:
    row = ("mul", 32, ("known", 0, 100, 1), 256)
    assert evaluate(("add", 32, row, 64), argument) == Known(64, 25664, 64)
    assert evaluate(("stepped", 32, 0, ("argument", 2)), argument) == Known(0, None, 8)
    assert evaluate(("add", 32, ("opaque", 1), 16), argument, Known(divisor=4)) == Known(divisor=4)
