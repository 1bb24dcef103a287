"""What tests of the kernel library share: random arrays of any dtype, and bounds on errors against numpy in float64.

A bound has two parts. The result is rounded to its dtype: `ROUNDING` times its size, or `SMALLEST`. Before that, f32
or f64 sums carry errors of a few roundings of the terms' sizes: `SUMS` times `magnitude`, which each test states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

# Half a unit in the last place, relative; twice that is allowed, for results on a boundary.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
SUMS = {"float16": 2.0**-20, "bfloat16": 2.0**-20, "float32": 2.0**-20, "float64": 2.0**-49}
FLOATS = ["float32", "float64", "float16", "bfloat16"]


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float32", kind: str = "numpy") -> Any:
    """Normally distributed numbers, or any int8 or uint8; bfloat16 is always torch's. Skips the test without torch."""
    values = rng.standard_normal(shape)
    if dtype in ("int8", "uint8"):
        lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = rng.integers(lowest, highest + 1, shape)
    if kind == "numpy" and dtype != "bfloat16":
        return values.astype(dtype)
    torch = pytest.importorskip("torch")
    return torch.from_numpy(values).to(getattr(torch, dtype))


def wide(x: Any) -> np.ndarray:
    """A float64 copy of an array of either kind."""
    return np.asarray(x, np.float64) if isinstance(x, np.ndarray) else x.double().numpy()


def dtype_of(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def assert_accurate(result: Any, reference: np.ndarray, magnitude: Any) -> None:
    """Every element of `result` is within the bound of `reference`; not-a-numbers and infinities stand alike."""
    dtype, found = dtype_of(result), wide(result)
    assert found.shape == reference.shape
    ordinary = np.isfinite(reference)
    np.testing.assert_array_equal(found[~ordinary], reference[~ordinary])
    with np.errstate(invalid="ignore"):
        bound = 2 * ROUNDING[dtype] * np.abs(reference) + SUMS[dtype] * magnitude + SMALLEST[dtype]
        worst = np.where(ordinary, np.abs(found - reference) / bound, 0.0)
    assert np.isfinite(found[ordinary]).all()
    at = np.unravel_index(np.argmax(worst), worst.shape) if worst.size else ()
    assert worst.size == 0 or worst[at] <= 1.0, f"{worst[at]:.3g} times the bound at {at}: {found[at]}, {reference[at]}"
