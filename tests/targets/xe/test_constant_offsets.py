"""What is known of sums with constants: values that a bound cannot tell apart are one."""

from __future__ import annotations

import pytest

from mltriton.targets.llvm.types import VOID, constant, vector
from mltriton.targets.llvm.writer import Module
from mltriton.targets.simt.constant_offsets import Affine

I8 = vector("i8", 1)
NUMBERS = range(-128, 128)


def wrapped(number: int) -> int:
    return (number + 128) % 256 - 128


@pytest.mark.parametrize("divisor", [1, 4, 64, 128, 1 << 10])
def test_what_a_bound_does_not_tell_apart(divisor: int) -> None:
    """In all of i8, where a power of two may be larger than the type's numbers: a sum and what stands for it lie on the
    same side of each multiple of the divisor.
    """
    f = Module().function("f", VOID, [("root", I8)])
    affine, [root] = Affine(f), f.parameters
    affine.promise(root, divisor)
    multiples = [number for number in NUMBERS if number % divisor == 0]
    for distance in (-1, 3, 70):
        floor = affine.term(affine.floor(affine.add(root, constant(I8, distance)), divisor)).constant
        for start in multiples:
            value, found = wrapped(start + distance), wrapped(start + floor)
            assert all((value < bound) == (found < bound) for bound in multiples)
            assert all((value % 256 < bound % 256) == (found % 256 < bound % 256) for bound in multiples)


def test_numbers() -> None:
    """They have a bound, too: 0 is a multiple of powers that no number of the type is."""
    affine = Affine(Module().function("f", VOID, []))
    for number, expected in ((-1, -128), (5, 0), (0, 0)):
        assert affine.floor(constant(I8, number), 1 << 30) == constant(I8, expected)
    assert affine.floor(constant(I8, 21), 16) == constant(I8, 16)


def test_constants_are_added_and_taken_away() -> None:
    f = Module().function("f", VOID, [("root", I8)])
    affine, [root] = Affine(f), f.parameters
    five, three = constant(I8, 5), constant(I8, 3)
    term = affine.term(affine.sub(affine.add(root, five), three))
    assert (term.root, term.constant) == (root, 2)
    assert affine.sub(five, three) == constant(I8, 2)
    assert affine.term(affine.mul(affine.sub(root, five), three)).constant == -15


@pytest.mark.parametrize("divisor", [1, 8, 64, 128, 1 << 10])
def test_widened_sums_keep_what_cannot_wrap_around(divisor: int) -> None:
    """In all of i8: the sign of a sum is that of the multiple below it, and the rest is added behind."""
    f = Module().function("f", VOID, [("root", I8)])
    affine, [root] = Affine(f), f.parameters
    affine.promise(root, divisor)
    for distance in (-1, 3, 7, 70):
        value = affine.add(root, constant(I8, distance))
        apart = affine.term(affine.widen(value, vector("i16", 1))).constant
        assert apart == distance % min(divisor, 128)
        for start in (number for number in NUMBERS if number % divisor == 0):
            assert wrapped(start + distance) == wrapped(start + distance - apart) + apart
    assert affine.widen(constant(I8, 5), vector("i16", 1)) == constant(vector("i16", 1), 5)
