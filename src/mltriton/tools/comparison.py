"""Comparing what two runs left in one buffer.

Level: runtime. Integers must be equal. Floats may differ by a relative error that depends on the type, measured
against the element's own size and the average size in the buffer (a sum of large terms may be small); NaN and
infinities must stand at the same places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mltriton.executor.values import choose, decode
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, FloatType, Type

# Reductions may combine in any order and dots accumulate in f32: a thousand times the unit in the last place for f32.
TOLERANCES: Mapping[Type, float] = {F64: 1e-11, F32: 1e-4, F16: 5e-3, BF16: 3e-2, F8E4M3: 0.13, F8E5M2: 0.26}


@dataclass(frozen=True)
class Difference:
    """How far one buffer is from the reference.

    `wrong` elements are outside the tolerance, `first` is the first of them.
    """

    buffer: str
    max_abs: float
    max_rel: float
    size: int
    wrong: int = 0
    first: tuple[int, ...] | None = None
    expected: float | int | None = None
    found: float | int | None = None

    @property
    def ok(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.wrong == 0

    def __str__(self) -> str:
        errors = f"{self.buffer}: max abs {self.max_abs:.3g}, max rel {self.max_rel:.3g}"
        if self.ok:
            return errors
        place = f"first at {self.first}: expected {self.expected}, found {self.found}"
        return f"{errors}, {self.wrong} of {self.size} elements differ, {place}"


def compare(buffer: str, type: Type, expected: Any, found: Any) -> Difference:
    """Compare two arrays of bit patterns of `type`."""
    wanted, got = (np.asarray(decode(array, type)) for array in (expected, found))
    if not isinstance(type, FloatType):
        wanted, got = wanted.astype(np.int64), got.astype(np.int64)
        return _difference(buffer, wanted, got, np.abs(wanted.astype(np.float64) - got), wanted != got)
    wide_wanted, wide_got = wanted.astype(np.float64), got.astype(np.float64)
    ordinary = np.isfinite(wide_wanted) & np.isfinite(wide_got)
    with np.errstate(invalid="ignore"):
        error = np.where(ordinary, np.abs(wide_wanted - wide_got), 0.0)
    size = np.abs(wide_wanted, where=ordinary, out=np.zeros_like(wide_wanted))
    average = size.sum() / max(1, int(ordinary.sum()))
    same = (wide_wanted == wide_got) | (np.isnan(wide_wanted) & np.isnan(wide_got))
    wrong = choose(ordinary, error > TOLERANCES[type] * (size + average), ~same)
    return _difference(buffer, wanted, got, error, wrong)


def _difference(buffer: str, wanted: Any, got: Any, error: Any, wrong: Any) -> Difference:
    size = np.abs(wanted.astype(np.float64))
    relative = np.divide(error, size, out=np.zeros_like(error), where=(size > 0) & np.isfinite(size))
    largest = (float(part.max()) if part.size else 0.0 for part in (error, relative))
    max_abs, max_rel = largest
    if not wrong.any():
        return Difference(buffer, max_abs, max_rel, wanted.size)
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = (wanted[first].item(), got[first].item())
    return Difference(buffer, max_abs, max_rel, wanted.size, int(wrong.sum()), first, *values)
