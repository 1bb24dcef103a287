"""How numbers are held, rounded and laid in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mltriton.errors import ExecutionError
from mltriton.executor.values import (
    decode,
    encode,
    from_bfloat16,
    memory_dtype,
    round_bf16,
    round_to_zero,
    rounder,
    scalar,
    to_bfloat16,
    value_dtype,
)
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, I1, I8, I32, I64, IntegerType, PointerType


@given(st.floats(width=32))
def test_bf16_is_the_nearest_of_its_two_neighbours(value: float) -> None:
    rounded = float(round_bf16(np.float32(value)))
    if np.isnan(value):
        assert np.isnan(rounded)
        return
    bits = int(np.float32(value).view(np.uint32)) >> 16
    neighbours = [float(from_bfloat16(np.uint16(b))) for b in (bits, min(bits + 1, 0xFFFF))]
    distances = [abs(n - value) for n in neighbours if not np.isnan(n)]
    if np.isfinite(rounded):
        assert abs(rounded - value) == min(distances)
        assert abs(neighbours[0] - value) != abs(neighbours[1] - value) or int(to_bfloat16(rounded)) % 2 == 0


@given(st.integers(0, 0xFFFF))
def test_bf16_bits_round_trip(bits: int) -> None:
    value = from_bfloat16(np.uint16(bits))
    assert np.isnan(value) or int(to_bfloat16(value)) == bits


@pytest.mark.parametrize(("type", "name"), [(F8E4M3, "float8_e4m3fn"), (F8E5M2, "float8_e5m2")])
def test_fp8_matches_torch_within_its_range(type: object, name: str) -> None:
    torch = pytest.importorskip("torch")
    codes = torch.arange(256, dtype=torch.uint8)
    expected = codes.view(getattr(torch, name)).float().numpy()
    np.testing.assert_array_equal(decode(codes.numpy(), type), expected)
    largest = np.nanmax(expected[np.isfinite(expected)])
    numbers = np.random.default_rng(0).uniform(-largest, largest, 10000).astype(np.float32)
    numbers = np.concatenate([numbers, numbers * 2.0**-8, numbers * 2.0**-14]).astype(np.float32)
    np.testing.assert_array_equal(
        encode(rounder(type)(numbers), type),
        torch.from_numpy(numbers).to(getattr(torch, name)).view(torch.uint8).numpy(),
    )


@pytest.mark.parametrize(("type", "largest"), [(F8E4M3, 448.0), (F8E5M2, 57344.0)])
def test_fp8_saturates_and_keeps_nan(type: object, largest: float) -> None:
    rounded = rounder(type)(np.array([1e6, -1e6, np.nan], np.float32))
    assert rounded[:2].tolist() == [largest, -largest]
    assert np.isnan(rounded[2])


@pytest.mark.parametrize("type", [F16, BF16, F8E4M3, F8E5M2])
def test_rounding_to_zero_never_grows(type: object) -> None:
    numbers = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    toward = round_to_zero(numbers, type).astype(np.float64)
    nearest = rounder(type)(numbers).astype(np.float64)
    assert (np.abs(toward) <= np.abs(numbers)).all()
    below = np.abs(nearest) <= np.abs(numbers)
    np.testing.assert_array_equal(toward[below], nearest[below])
    assert (np.abs(toward[~below]) < np.abs(nearest[~below])).all()


def test_float64_rounds_once_to_bf16() -> None:
    # Through float32 this would first become the tie 1 + 2^-8 and then the even neighbour 1.
    assert float(round_bf16(np.float64(1 + 2.0**-8 + 2.0**-40))) == 1 + 2.0**-7


@pytest.mark.parametrize(
    ("type", "value", "memory"),
    [
        (I1, "bool", "u1"),
        (I8, "i1", "i1"),
        (I64, "i8", "i8"),
        (BF16, "f4", "u2"),
        (F8E4M3, "f4", "u1"),
        (F64, "f8", "f8"),
    ],
)
def test_dtypes(type: object, value: str, memory: str) -> None:
    assert value_dtype(type) == np.dtype(value)
    assert memory_dtype(type) == np.dtype(memory)


def test_pointers_are_integers() -> None:
    assert value_dtype(PointerType(F32)) == np.int64


def test_scalars_wrap_and_round() -> None:
    assert scalar(300, I8) == 44
    assert scalar(2**31, I32) == -(2**31)
    assert scalar(-1, I64) == -1
    assert scalar(True, I1) == np.True_
    assert scalar(257.0, BF16) == 256.0


def test_a_type_without_numpy_form_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="i128"):
        value_dtype(IntegerType(128))
