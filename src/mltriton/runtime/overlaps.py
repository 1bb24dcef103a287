"""Arguments of a launch that share elements at different places, where the kernel writes to one of them.

Level: runtime. Such arguments are a race unless a barrier stands between the accesses, or programs leave out what is
shared (docs/architecture.md, "Semantics"). Guarantees: elements are compared, not only spans, so columns of one array
are apart; the same array twice is none of this.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any, cast

import numpy as np

from mltriton.errors import calling_level
from mltriton.runtime.extents import covered_by
from mltriton.runtime.parts import unwrapped
from mltriton.runtime.slots import Slot


class OverlapWarning(UserWarning):
    """Arguments of a checked launch share elements at different places, and the kernel writes to one of them."""


def warn_of_overlaps(names: Sequence[str], slots: Sequence[Slot]) -> None:
    """An `OverlapWarning` for each two tensors of which one is written and that share elements at other places."""
    given = [(name, slot, _elements(slot)) for name, slot in zip(names, slots, strict=True)]
    for (first, a, x), (second, b, y) in combinations(given, 2):
        if (a.writes or b.writes) and x is not None and y is not None and _are_shifted(x, y):
            written = first if a.writes else second
            warnings.warn(
                f"{first} and {second} share elements at different places, and the kernel writes to {written}: what it "
                "loads may be from before or after. Pass a copy, or put tl.debug_barrier() between the accesses.",
                OverlapWarning,
                stacklevel=calling_level(),
            )


def _are_shifted(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    is_same = x.ctypes.data == y.ctypes.data and x.strides == y.strides
    return not is_same and np.shares_memory(x, y)


def _elements(slot: Slot) -> np.ndarray[Any, Any] | None:
    """The bytes of each element of an array, which are never read; None where it does not say how large it is."""
    array = unwrapped(slot.array)
    span = covered_by(array, slot.bits)
    if span is None or span.start == span.stop:
        return None
    strides: Sequence[int]
    if isinstance(array, np.ndarray):
        known = cast("np.ndarray[Any, Any]", array)
        shape, strides, size = known.shape, known.strides, known.itemsize
    else:
        size = array.element_size()
        shape, strides = tuple(array.shape), [step * size for step in array.stride()]
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * (span.stop - span.start)).from_address(span.start))
    first = memory[slot.bits - span.start :]
    return np.lib.stride_tricks.as_strided(first, (*shape, size), (*strides, 1))
