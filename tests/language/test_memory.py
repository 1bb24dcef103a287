"""Loads and stores through pointers, blocks of pointers, block pointers and descriptors."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import (
    AxisError,
    DescriptorError,
    OptionError,
    PointerError,
    PowerOfTwoError,
    ShapeMismatchError,
    TypeMismatchError,
)

from .tracing import Trace, execute

FLOATS, HALVES = tl.pointer_type(tl.float32), tl.pointer_type(tl.float16)


def test_masked_copy():
    x, out = np.arange(16, dtype=np.float32), np.full(16, -1, np.float32)

    def body(x, out, n):
        i = tl.arange(0, 16)
        tl.store(out + i, tl.load(x + i, i < n, other=7), i < n + 2)

    execute(body, x, out, 10)
    assert out.tolist() == [*range(10), 7, 7, -1, -1, -1, -1]


def test_masked_off_elements_are_zero_and_pointers_broadcast():
    x, out = np.arange(4, dtype=np.int32), np.full((8, 4), -1, np.int32)

    def body(x, out):
        rows, columns = tl.arange(0, 8)[:, None], tl.arange(0, 4)[None, :]
        tl.store(out + rows * 4 + columns, tl.load(x + columns, rows < 3))

    execute(body, x, out.reshape(-1))
    np.testing.assert_array_equal(out, np.where(np.arange(8)[:, None] < 3, x, 0))


def test_scalars_and_conversion_on_store():
    x, out = np.array([2.75], np.float32), np.zeros(3, np.int32)

    def body(x, out):
        tl.store(out, tl.load(x))
        tl.store(out + 1, 9.9)
        tl.store(out + 2, tl.load(x, False, 5.0))

    execute(body, x, out)
    assert out.tolist() == [2, 9, 5]


def test_bools_are_bytes():
    x, out = np.array([0, 1, 1, 0], np.uint8), np.full(4, 9, np.uint8)
    pointer = tl.pointer_type(tl.int1)

    def body(x, out):
        i = tl.arange(0, 4)
        loaded = tl.load(x + i)
        assert loaded.dtype == tl.int1
        tl.store(out + i, ~loaded)

    execute(body, x, out, types=[pointer, pointer])
    assert out.tolist() == [1, 0, 0, 1]


def test_values_that_do_not_fit_convert_as_in_c():
    out = np.zeros(4, np.uint8)
    execute(lambda out: tl.store(out + tl.arange(0, 4), -1), out)
    assert out.tolist() == [255] * 4


def test_hints(kernel: Trace):
    pointer = kernel.parameter(FLOATS)
    value = tl.load(pointer, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    load = kernel.ops[-1]
    assert (load.cache, load.evict, load.volatile) == ("cg", "evict_last", True)
    tl.store(pointer, value, cache_modifier=".wt", eviction_policy="evict_first")
    assert (kernel.ops[-1].cache, kernel.ops[-1].evict) == ("wt", "evict_first")
    tl.load(pointer)
    assert not kernel.ops[-1].attributes


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda p, i: tl.load(3), PointerError, "needs a pointer"),
        (lambda p, i: tl.load(i), PointerError, "found <8xint32>"),
        (lambda p, i: tl.load(p + i, other=0), PointerError, "there is no mask"),
        (lambda p, i: tl.load(p, i < 3), PointerError, "a scalar pointer with a block"),
        (lambda p, i: tl.load(p + i, i), TypeMismatchError, "a mask needs booleans"),
        (
            lambda p, i: tl.load(p + i, (i < 3)[:, None] & (tl.arange(0, 4) < 2)[None, :]),
            ShapeMismatchError,
            "do not broadcast",
        ),
        (lambda p, i: tl.load(p + i, boundary_check=(0,)), PointerError, "are for block pointers"),
        (lambda p, i: tl.load(p, cache_modifier="ca"), OptionError, "unknown cache_modifier of tl.load"),
        (lambda p, i: tl.load(p, cache_modifier=".wb"), OptionError, "one of '', '.ca', '.cg', '.cs', '.cv'"),
        (lambda p, i: tl.store(p, 0.0, eviction_policy="last"), OptionError, "unknown eviction_policy"),
        (lambda p, i: tl.store(i, 0), PointerError, "needs a pointer"),
        (lambda p, i: tl.store(p, i), PointerError, "add a block of offsets"),
        (lambda p, i: tl.store(p + i, tl.zeros((4, 8), tl.float32)), ShapeMismatchError, "pointers of shape"),
        (lambda p, i: tl.store(p, "x"), TypeMismatchError, "cannot be used in arithmetic"),
        (lambda p, i: tl.store(p, p), TypeMismatchError, "no such conversion"),
    ],
)
def test_misuse_of_pointers(kernel: Trace, attempt, error, text: str):
    with pytest.raises(error, match=text):
        attempt(kernel.parameter(FLOATS), tl.arange(0, 8))


def test_const_pointers_are_not_written(kernel: Trace):
    pointer = kernel.parameter(tl.pointer_type(tl.float32, const=True))
    tl.load(pointer + 1)
    for attempt in (
        lambda: tl.store(pointer, 0),
        lambda: tl.store(pointer + tl.arange(0, 4), 0),
        lambda: tl.atomic_add(pointer, 1),
    ):
        with pytest.raises(PointerError, match="const"):
            attempt()


# Block pointers.


def block_pointer(base, shape=(8, 8), strides=(8, 1), offsets=(0, 0), block=(4, 4), order=(1, 0)):
    return tl.make_block_ptr(base, shape, strides, offsets, block, order)


def test_block_pointers_move_and_check_their_bounds():
    x, out = np.arange(42, dtype=np.float32).reshape(6, 7), np.full((8, 8), -1, np.float32)

    def body(x, out, rows, columns):
        source = block_pointer(x, (rows, columns), (columns, 1), (0, 4))
        source = tl.advance(source, (4, tl.constexpr(0)))
        target = tl.advance(block_pointer(out, (8, 7), (8, 1), (0, 4)), [4, 0])
        tl.store(target, tl.load(source, boundary_check=(0, 1)) + 1, boundary_check=(0, 1))

    execute(body, x.reshape(-1), out.reshape(-1), 6, 7)
    expected = np.full((8, 8), -1, np.float32)
    expected[4:, 4:7] = 1
    expected[4:6, 4:7] = x[4:, 4:] + 1
    np.testing.assert_array_equal(out, expected)


def test_padding_and_one_checked_dimension(kernel: Trace):
    pointer = block_pointer(kernel.parameter(HALVES))
    value = tl.load(pointer, boundary_check=(tl.constexpr(-1),), padding_option="nan")
    load = kernel.ops[-1]
    assert value.type == tl.block_type(tl.float16, (4, 4))
    assert (load.boundary_check, load.padding) == ((1,), "pad_nan")
    tl.store(pointer, 1.5, boundary_check=1)
    tl.store(pointer, value[:, :].to(tl.float32))
    assert pointer.is_block_pointer and str(pointer.handle.type) == "!tt.ptr<tensor<4x4xf16>>"


def test_numbers_stand_for_the_only_dimension():
    x, out = np.arange(9, dtype=np.float32), np.zeros(8, np.float32)

    def body(x, out, n):
        source = tl.advance(tl.make_block_ptr(x, n, 1, 2, 8, 0), 1)
        target = tl.make_block_ptr(out, 8, (1,), [0], (8,), 0)
        tl.store(target, tl.load(source, boundary_check=0))

    execute(body, x, out, 9)
    assert out.tolist() == [3, 4, 5, 6, 7, 8, 0, 0]


def test_a_block_pointer_to_bools_is_one_to_bytes(kernel: Trace):
    pointer = block_pointer(kernel.parameter(tl.pointer_type(tl.int1)))
    assert tl.load(pointer).dtype == tl.int8


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda p, b, n: block_pointer(b), PointerError, "needs a scalar pointer"),
        (lambda p, b, n: block_pointer(p + tl.arange(0, 4)), PointerError, "needs a scalar pointer"),
        (lambda p, b, n: block_pointer(p, block=(4, 6)), PowerOfTwoError, "power of two"),
        (lambda p, b, n: block_pointer(p, shape=(8,)), ShapeMismatchError, "`shape` of tl.make_block_ptr"),
        (
            lambda p, b, n: block_pointer(p, strides=8),
            ShapeMismatchError,
            "has another length than block_shape",
        ),
        (lambda p, b, n: block_pointer(p, order=(0, 0)), AxisError, "is no permutation"),
        (lambda p, b, n: block_pointer(p, offsets=(n.to(tl.int64), 0)), TypeMismatchError, r"add .to\(tl.int32\)"),
        (lambda p, b, n: block_pointer(p, offsets=(1.5, 0)), TypeMismatchError, "must be integer scalars"),
        (lambda p, b, n: block_pointer(p, shape=(tl.arange(0, 4), 8)), TypeMismatchError, "must be integer scalars"),
        (lambda p, b, n: tl.advance(p, (0, 0)), PointerError, "needs a block pointer"),
        (lambda p, b, n: tl.advance(b, (0,)), ShapeMismatchError, "one offset for each dimension"),
        (lambda p, b, n: tl.advance(b, 4), ShapeMismatchError, "one offset for each dimension"),
        (lambda p, b, n: b + 4, TypeMismatchError, "tl.advance"),
        (lambda p, b, n: tl.load(b, mask=n > 0), PointerError, "takes no mask"),
        (lambda p, b, n: tl.store(b, 0.0, mask=n > 0), PointerError, "boundary_check="),
        (lambda p, b, n: tl.load(b, boundary_check=(2,)), AxisError, "the axis of boundary_check"),
        (lambda p, b, n: tl.load(b, padding_option="one"), OptionError, "unknown padding_option"),
        (lambda p, b, n: tl.store(b, tl.zeros((8, 8), tl.float32)), ShapeMismatchError, "do not broadcast"),
        (
            lambda p, b, n: tl.store(b, tl.zeros((2, 4, 4), tl.float32)),
            ShapeMismatchError,
            "does not fit the block pointer",
        ),
        (lambda p, b, n: tl.atomic_add(b, 1.0), PointerError, "a pointer or a block of pointers"),
    ],
)
def test_misuse_of_block_pointers(kernel: Trace, attempt, error, text: str):
    pointer, number = kernel.parameter(FLOATS), kernel.parameter(tl.int32)
    with pytest.raises(error, match=text):
        attempt(pointer, block_pointer(pointer), number)


def test_nan_padding_of_integers(kernel: Trace):
    pointer = kernel.parameter(tl.pointer_type(tl.int32))
    with pytest.raises(PointerError, match="needs floats"):
        tl.load(block_pointer(pointer), padding_option="nan")
    with pytest.raises(DescriptorError, match="needs floats"):
        tl.make_tensor_descriptor(pointer, [8, 8], [8, 1], [4, 4], padding_option="nan")


# Descriptors.


def test_descriptors():
    x, out = np.arange(60, dtype=np.float32).reshape(6, 10), np.full((6, 10), -1, np.float32)

    def body(x, out, rows, columns):
        source = tl.make_tensor_descriptor(x, [rows, columns], [columns.to(tl.int64), 1], [4, 8])
        target = tl.make_tensor_descriptor(
            out, shape=[rows, columns], strides=[columns, tl.constexpr(1)], block_shape=[4, 8]
        )
        block = source.load([4, rows + 2 - 6])
        assert block.type == source.block_type and source.dtype == tl.float32 and source.block_shape == (4, 8)
        target.store([4, 2], block.to(tl.float64))
        tl.store_tensor_descriptor(target, (0, 4), 2)
        tl.load_tensor_descriptor(source, [0, 0])

    execute(body, x.reshape(-1), out.reshape(-1), 6, 10)
    expected = np.full((6, 10), -1, np.float32)
    expected[4:, 2:] = x[4:, 2:]
    expected[:4, 4:] = 2
    np.testing.assert_array_equal(out, expected)


def describe(pointer, shape=(8, 64), strides=(64, 1), block=(4, 8), **keywords):
    return tl.make_tensor_descriptor(pointer, shape, strides, block, **keywords)


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (
            lambda p, n: describe(p, strides=(64, 2)),
            DescriptorError,
            "last stride of a descriptor must be the constant 1",
        ),
        (lambda p, n: describe(p, strides=(64, n)), DescriptorError, "found a value known only when the kernel runs"),
        (lambda p, n: describe(p, block=(4, 4)), DescriptorError, "at least 8 elements of fp16"),
        (lambda p, n: describe(p, block=(4, 12)), PowerOfTwoError, "power of two"),
        (lambda p, n: describe(p, shape=(8, 8, 8)), DescriptorError, "`shape` and block_shape have different lengths"),
        (lambda p, n: describe(p, shape=8), TypeMismatchError, "is a tuple"),
        (lambda p, n: describe(p, (1,) * 6, (1,) * 6, (1, 1, 1, 1, 1, 8)), DescriptorError, "at most 5 dimensions"),
        (lambda p, n: describe(n), PointerError, "needs a scalar pointer"),
        (lambda p, n: describe(p, padding_option="inf"), OptionError, "unknown padding_option"),
        (lambda p, n: describe(p, shape=(1.5, 8)), TypeMismatchError, "the shape must be integer scalars"),
        (lambda p, n: describe(p).load([0]), DescriptorError, "one offset for each dimension"),
        (lambda p, n: describe(p).load(0), TypeMismatchError, "is a tuple"),
        (lambda p, n: describe(p).load([0, n.to(tl.int64)]), TypeMismatchError, r"\.to\(tl\.int32\)"),
        (
            lambda p, n: describe(p).store([0, 0], tl.zeros((4, 4), tl.float16)),
            ShapeMismatchError,
            "does not fit the descriptor",
        ),
        (lambda p, n: tl.load_tensor_descriptor(p, [0, 0]), DescriptorError, "needs a descriptor"),
        (lambda p, n: tl.load(describe(p)), PointerError, "a descriptor has methods"),
    ],
)
def test_misuse_of_descriptors(kernel: Trace, attempt, error, text: str):
    with pytest.raises(error, match=text):
        attempt(kernel.parameter(HALVES), kernel.parameter(tl.int32))
