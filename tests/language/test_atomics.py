"""Atomics: kinds for each dtype, values, masks, misuse."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import OptionError, PointerError, ShapeMismatchError, TypeMismatchError

from .tracing import Trace, execute

OPERATIONS = [
    (tl.atomic_add, np.add, "add", "add", "fadd"),
    (tl.atomic_max, np.maximum, "max", "umax", None),
    (tl.atomic_min, np.minimum, "min", "umin", None),
    (tl.atomic_and, np.bitwise_and, "and", "and", None),
    (tl.atomic_or, np.bitwise_or, "or", "or", None),
    (tl.atomic_xor, np.bitwise_xor, "xor", "xor", None),
    (tl.atomic_xchg, lambda old, new: new, "exch", "exch", "exch"),
]
MEMORY, VALUES = np.array([5, 2**31 - 1, 7, 0], np.int32), np.array([3, 9, -7, -1], np.int32)


@pytest.mark.parametrize(("function", "expected", "signed", "unsigned", "floating"), OPERATIONS)
def test_integers(kernel: Trace, function, expected, signed, unsigned, floating):
    for kind in ("int32", "uint32"):
        memory, values = MEMORY.astype(kind), VALUES.astype(kind)
        target, old = memory.copy(), np.zeros_like(memory)

        def body(pointer, values, out):
            i = tl.arange(0, 4)
            tl.store(out + i, function(pointer + i, tl.load(values + i), i < 3, sem="relaxed", scope="cta"))

        execute(body, target, values, old)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(target[:3], expected(memory, values)[:3])
        assert old[:3].tolist() == memory[:3].tolist() and target[3] == memory[3]
    for kind, name in [(tl.int64, signed), (tl.uint64, unsigned), (tl.float64, floating)]:
        if name is not None:
            function(kernel.parameter(tl.pointer_type(kind)), 1)
            assert kernel.ops[-1].kind == name and (kernel.ops[-1].sem, kernel.ops[-1].scope) == ("acq_rel", "gpu")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("function", "expected"), [(tl.atomic_max, np.maximum), (tl.atomic_min, np.minimum)])
def test_floats_are_ordered(function, expected, kind):
    memory = np.array([1.5, -1.5, -2, 3, 0, -np.inf, 2, 1e-40], kind)
    values = np.array([2.5, 1, -3, -4, -1, 5, np.inf, 2e-40], kind)
    target, old = memory.copy(), np.zeros_like(memory)

    def body(pointer, values, out):
        i = tl.arange(0, 8)
        tl.store(out + i, function(pointer + i, tl.load(values + i)))

    execute(body, target, values, old)
    np.testing.assert_array_equal(target, expected(memory, values))
    np.testing.assert_array_equal(old, memory)


def test_all_programs_add():
    total = np.zeros(1, np.float32)
    execute(lambda p: tl.atomic_add(p, tl.program_id(0) + 0.5), total, grid=(8,))
    assert total[0] == 28 + 4


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize(("start", "size"), [(0, 512), (8, 500), (1, 301)])
def test_programs_add_to_neighbours(kind, start, size):
    """Of whom nobody takes what was there before, in any order: at multiples of 16 bytes, and elsewhere."""
    memory = np.arange(600).astype(kind)
    values = np.random.default_rng(0).integers(-9, 9, 512).astype(kind)
    target = memory.copy()

    def body(pointer, values):
        i = tl.arange(0, 512)
        tl.atomic_add(pointer + start + i, tl.load(values + i), i < size, sem="relaxed")

    execute(body, target, values, grid=(3,))
    memory[start : start + size] += 3 * values[:size]
    np.testing.assert_array_equal(target, memory)


def test_compare_and_swap():
    memory, old = np.array([1, 2, 1, 4], np.int32), np.zeros(4, np.int32)

    def body(pointer, out):
        i = tl.arange(0, 4)
        tl.store(out + i, tl.atomic_cas(pointer + i, 1, i + 10, sem="acquire"))

    execute(body, memory, old)
    assert memory.tolist() == [10, 2, 12, 4] and old.tolist() == [1, 2, 1, 4]


@pytest.mark.parametrize("kind", [tl.float16, tl.bfloat16])
def test_halves_can_be_added(kernel: Trace, kind: tl.dtype):
    pointer = kernel.parameter(tl.pointer_type(kind))
    assert tl.atomic_add(pointer, 1.0).dtype == kind
    for function in (tl.atomic_max, tl.atomic_xchg):
        with pytest.raises(TypeMismatchError, match="32 or 64 bits"):
            function(pointer, 1.0)


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda f, i, b: tl.atomic_and(f, 1.0), TypeMismatchError, "tl.atomic_and is for integers"),
        (lambda f, i, b: tl.atomic_add(b, 1), TypeMismatchError, "does not work on int8"),
        (lambda f, i, b: tl.atomic_cas(b, 1, 2), TypeMismatchError, "16, 32 or 64 bits"),
        (lambda f, i, b: tl.atomic_add(3, 1), PointerError, "needs a pointer"),
        (lambda f, i, b: tl.atomic_add(i, tl.arange(0, 4)), ShapeMismatchError, "pointers of shape"),
        (lambda f, i, b: tl.atomic_cas(i, tl.arange(0, 4), 1), ShapeMismatchError, "do not fit the pointers"),
        (lambda f, i, b: tl.atomic_add(i, 1, mask=1), TypeMismatchError, "needs booleans"),
        (lambda f, i, b: tl.atomic_add(i, 1, sem="weak"), OptionError, "unknown sem of tl.atomic_add"),
        (lambda f, i, b: tl.atomic_cas(i, 1, 2, scope="warp"), OptionError, "unknown scope"),
    ],
)
def test_misuse(kernel: Trace, attempt, error, text: str):
    with pytest.raises(error, match=text):
        attempt(*[kernel.parameter(tl.pointer_type(kind)) for kind in (tl.float32, tl.int32, tl.int8)])
