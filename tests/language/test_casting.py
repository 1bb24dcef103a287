"""Conversions: every pair of dtypes against numpy, the operations chosen, rounding and bitcasts."""

from __future__ import annotations

import numpy as np
import pytest

import mltriton.language as tl
from mltriton.errors import OptionError, TypeMismatchError
from mltriton.executor.values import encode
from mltriton.language.types import FLOATS, SIGNED, UNSIGNED, dtype

from .tracing import Trace, compute

ALL = (tl.int1, *SIGNED, *UNSIGNED, *FLOATS)
NUMBERS = np.array([0.0, 1.0, 3.0, 1.5, 100.0, 2.25, 0.5, 7.0])
NUMPY = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}


def stored(kind: dtype) -> np.ndarray:
    """The numbers in memory, as `kind` holds them."""
    if kind == tl.int1:
        return (NUMBERS != 0).astype(np.uint8)
    if kind.is_int():
        return NUMBERS.astype(kind.name)
    return encode(NUMBERS.astype(NUMPY.get(kind.name, np.float32)), kind.to_ir())


def held(kind: dtype) -> np.ndarray:
    """The numbers that `stored` holds, in float64."""
    if kind.is_int() or kind.name in NUMPY:
        return stored(kind).astype(np.float64)
    return compute(lambda x: x.to(tl.float64), stored(kind), types=[kind])


@pytest.mark.parametrize("source", ALL, ids=str)
def test_every_pair(source: dtype):
    values = held(source)
    for target in ALL:
        found = compute(lambda x: x.to(target), stored(source), types=[source])  # noqa: B023
        if target == tl.int1:
            expected = values != 0
        elif target.is_int():
            expected = np.trunc(values).astype(target.name)
        elif target.name in NUMPY:
            expected = values.astype(NUMPY[target.name])
        else:  # Every one of the numbers is exact in bf16; fp8 may round 100 and 2.25.
            expected = values
            near = {"fp8e5": 0.125, "fp8e4nv": 0.0625}.get(target.name, 0.0)
            np.testing.assert_allclose(found, expected, rtol=near)
            continue
        np.testing.assert_array_equal(found, expected, err_msg=f"{source} to {target}")


@pytest.mark.parametrize(
    ("source", "target", "operations"),
    [
        (tl.float32, tl.float16, ["arith.truncf"]),
        (tl.float32, tl.bfloat16, ["arith.truncf"]),
        (tl.float64, tl.float32, ["arith.truncf"]),
        (tl.float16, tl.float32, ["arith.extf"]),
        (tl.float32, tl.float64, ["arith.extf"]),
        (tl.float16, tl.float64, ["arith.extf", "arith.extf"]),
        (tl.float16, tl.bfloat16, ["tt.fp_to_fp"]),
        (tl.bfloat16, tl.float16, ["tt.fp_to_fp"]),
        (tl.float8e5, tl.float16, ["tt.fp_to_fp"]),
        (tl.float32, tl.float8e4nv, ["tt.fp_to_fp"]),
        (tl.float16, tl.float8e5, ["tt.fp_to_fp"]),
        (tl.float8e5, tl.float8e4nv, ["tt.fp_to_fp", "tt.fp_to_fp"]),
        (tl.float8e5, tl.int32, ["tt.fp_to_fp", "arith.fptosi"]),
        (tl.int32, tl.float32, ["arith.sitofp"]),
        (tl.uint32, tl.float32, ["arith.uitofp"]),
        (tl.int1, tl.float32, ["arith.uitofp"]),
        (tl.float32, tl.int32, ["arith.fptosi"]),
        (tl.float32, tl.uint8, ["arith.fptoui"]),
        (tl.float16, tl.int32, ["arith.extf", "arith.fptosi"]),
        (tl.int8, tl.int32, ["arith.extsi"]),
        (tl.uint8, tl.int32, ["arith.extui"]),
        (tl.int1, tl.int32, ["arith.extui"]),
        (tl.int64, tl.int8, ["arith.trunci"]),
        (tl.int32, tl.uint32, []),
        (tl.int32, tl.int32, []),
        (tl.float32, tl.float32, []),
        (tl.int32, tl.int1, ["arith.constant", "arith.cmpi"]),
        (tl.float32, tl.int1, ["arith.constant", "arith.cmpf"]),
        (tl.pointer_type(tl.int8), tl.int64, ["tt.ptr_to_int"]),
        (tl.pointer_type(tl.int8), tl.uint64, ["tt.ptr_to_int"]),
        (tl.int64, tl.pointer_type(tl.int8), ["tt.int_to_ptr"]),
        (tl.int32, tl.pointer_type(tl.int8), ["arith.extsi", "tt.int_to_ptr"]),
        (tl.pointer_type(tl.int8), tl.pointer_type(tl.float32), ["tt.bitcast"]),
        (tl.pointer_type(tl.int8), tl.pointer_type(tl.uint8), []),
        (tl.pointer_type(tl.int8), tl.int1, ["tt.ptr_to_int", "arith.constant", "arith.cmpi"]),
    ],
)
def test_operations(kernel: Trace, source: dtype, target: dtype, operations: list[str]):
    result = kernel.parameter(source).to(target)
    assert kernel.names == operations
    assert result.type == target and result.handle.type is target.to_ir()


def test_blocks_keep_their_shape(kernel: Trace):
    block = tl.arange(0, 8)[None, :]
    assert block.to(tl.float16).type == tl.block_type(tl.float16, (1, 8))
    assert tl.cast(block, tl.constexpr(tl.int8)).type == tl.block_type(tl.int8, (1, 8))
    assert tl.cast(3, tl.float32).type == tl.float32


def test_rounding():
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 3 * 2.0**-11, 70000.0], np.float32)
    nearest = compute(lambda x: x.to(tl.float16), x)
    to_zero = compute(lambda x: x.to(tl.float16, fp_downcast_rounding="rtz"), x)
    assert nearest.tolist() == [1, 1 + 2.0**-9, -1 - 2.0**-9, np.inf]
    assert to_zero.tolist() == [1, 1 + 2.0**-10, -1 - 2.0**-10, 65504]


@pytest.mark.parametrize("source", ["int64", "uint64"])
def test_wide_integers_are_rounded_once(source: str):
    """Next to the middle of two neighbours in bf16, nearer than f64 and f32 tell from it."""
    middle = np.array([257 << shift for shift in (20, 45, 54)], source)
    x = np.concatenate([middle - 1, middle, middle + 1, middle + 2 * 2**20 - 1, middle // 257 * 255])
    if source == "int64":
        x = np.concatenate([x, -x, [-(2**63)]])
    x = np.resize(x, 32)
    found = compute(lambda x: x.to(tl.bfloat16).to(tl.float64), x)
    assert [int(value) for value in found] == [_rounded(int(value), 8) for value in x]


def _rounded(number: int, bits: int) -> int:
    """The nearest number of so many bits of precision, even ones of two."""
    step = 1 << max(abs(number).bit_length() - bits, 0)
    whole, rest = divmod(number, step)
    return step * (whole + (2 * rest > step or (2 * rest == step and whole % 2 == 1)))


def test_bool_of_nan_is_true():
    assert compute(lambda x: x.to(tl.int1), np.array([np.nan, 0, -0.0, 1e-30], np.float32)).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_bitcast():
    x = np.array([1.0, -0.0, np.inf, 3.5], np.float32)
    assert compute(lambda x: x.to(tl.uint32, bitcast=True), x).tolist() == x.view(np.uint32).tolist()
    assert compute(lambda x: x.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True), x).tolist() == x.tolist()
    half = np.array([0x3C00, -0x4000], np.int16)
    assert compute(lambda x: tl.cast(x, tl.float16, bitcast=True), half).tolist() == [1.0, -2.0]


@pytest.mark.parametrize(
    ("attempt", "error", "text"),
    [
        (lambda x: x.to(tl.float16, bitcast=True), TypeMismatchError, "same width"),
        (lambda x: x.to("fp16"), TypeMismatchError, "needs a dtype"),
        (lambda x: x.to(tl.float16, fp_downcast_rounding="up"), OptionError, "unknown fp_downcast_rounding"),
        (lambda x: x.to(tl.float64, fp_downcast_rounding="rtz"), TypeMismatchError, "becomes narrower"),
        (lambda x: x.to(tl.int32, fp_downcast_rounding="rtne"), TypeMismatchError, "becomes narrower"),
        (lambda x: x.to(tl.pointer_type(tl.int8)), TypeMismatchError, "no such conversion"),
        (lambda x: tl.cast("1", tl.int32), TypeMismatchError, "cannot be used in arithmetic"),
    ],
)
def test_misuse(kernel: Trace, attempt, error, text: str):
    with pytest.raises(error, match=text):
        attempt(kernel.parameter(tl.float32))


def test_pointer_to_narrow_integer(kernel: Trace):
    with pytest.raises(TypeMismatchError, match="a pointer converts to int64"):
        kernel.parameter(tl.pointer_type(tl.int8)).to(tl.int32)
