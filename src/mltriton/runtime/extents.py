"""Where arrays are in main memory.

Level: runtime. Takes arrays of numpy or torch, or what has the same attributes; gives spans of bytes, None of what does
not say how large it is.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from mltriton.records import NamedTuple


class Span(NamedTuple):
    """Bytes [start, stop) of main memory."""

    start: int
    stop: int


def covered_by(array: Any, address: int) -> Span | None:
    """From the first byte of an array's elements to the last, where the first element has that address."""
    if isinstance(array, np.ndarray):
        known = cast("np.ndarray[Any, Any]", array)
        return Span(*np.lib.array_utils.byte_bounds(known)) if known.size else Span(address, address)
    if not all(hasattr(array, name) for name in ("element_size", "shape", "stride")):
        return None
    last = sum((count - 1) * stride for count, stride in zip(array.shape, array.stride(), strict=True))
    return Span(address, address + (last + 1) * array.element_size() if math.prod(array.shape) else address)


def viewed_by(array: Any) -> Span | None:
    """The memory that an array is a view of: a storage of torch's, a buffer, or else the last one of numpy's arrays."""
    if hasattr(array, "untyped_storage"):
        storage = array.untyped_storage()
        return Span(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) if storage.nbytes() else None
    base = getattr(array, "base", None)
    found = None if base is None else viewed_by(base)
    if found is None and not isinstance(array, np.ndarray):
        try:
            array = np.frombuffer(array, np.uint8)
        except (TypeError, ValueError):  # no buffer, or one that is empty or closed
            return None
    return found or covered_by(array, array.ctypes.data)
