"""PTX's types in numpy: how bits are read as numbers and numbers become bits."""

from __future__ import annotations

import numpy as np

from mltriton.ir.floats import bits_to_float, float_to_bits
from mltriton.ir.types import F8E4M3, F8E5M2

SIZES = (1, 2, 4, 8)
DTYPES = {
    **{f"{k}{8 * size}": np.dtype(f"{name}{size}") for k, name in zip("sub", "iuu", strict=True) for size in SIZES},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "pred": np.dtype(bool),
}  # fmt: skip
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
FP8 = {"e4m3x2": F8E4M3, "e5m2x2": F8E5M2, "e4m3": F8E4M3, "e5m2": F8E5M2}
_TABLES = {name: np.array([bits_to_float(bits, kind) for bits in range(256)], np.float32) for name, kind in FP8.items()}


def from_fp8(bits: np.ndarray, name: str) -> np.ndarray:
    """f32 of floats of 8 bits."""
    return _TABLES[name][bits]


def to_fp8(numbers: np.ndarray, name: str) -> np.ndarray:
    """f32 rounded to floats of 8 bits."""
    made = [float_to_bits(float(np.clip(x, -1e30, 1e30)) if x == x else float("nan"), FP8[name]) for x in numbers]
    return np.array(made, np.uint8)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    """f32 of bf16."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bf16(numbers: np.ndarray) -> np.ndarray:
    """f32 rounded to bf16."""
    bits = numbers.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(numbers), 0x7FFF, rounded).astype(np.uint16)


def resized(bits: np.ndarray, size: int, *, signed: bool) -> np.ndarray:
    """Integers in so many bytes."""
    if bits.dtype.itemsize == size:
        return bits
    kind = np.dtype(f"i{bits.dtype.itemsize}") if signed else UNSIGNED[bits.dtype.itemsize]
    wide = np.dtype(f"i{size}") if signed else UNSIGNED[size]
    return bits.view(kind).astype(wide).view(UNSIGNED[size])
