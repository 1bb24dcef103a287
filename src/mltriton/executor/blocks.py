"""Block pointers and tensor descriptors: which addresses a block has, and which of its elements lie inside the tensor.

Level: tt to intrinsic. Sizes, strides and offsets count elements; addresses are bytes. Element (i, j) is at base +
sum((offset_d + i_d) * stride_d).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mltriton.executor.values import Array


@dataclass(frozen=True)
class TensorView:
    """A strided tensor in global memory: what a descriptor holds, and a block pointer at `offsets`."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    pads_nan: bool = False

    def moved(self, by: Sequence[Array]) -> TensorView:
        """The same tensor with the offsets moved."""
        return replace(self, offsets=tuple(at + int(step) for at, step in zip(self.offsets, by, strict=True)))

    def addresses(self, block: tuple[int, ...], width: int) -> Array:
        """The addresses of a block of that shape at `offsets`; `width` is an element's size in bytes."""
        total: Array = np.int64(self.base)
        for axis, extent in enumerate(block):
            total = total + along(
                axis, len(block), (self.offsets[axis] + np.arange(extent)) * (self.strides[axis] * width)
            )
        return total

    def inside(self, block: tuple[int, ...], dimensions: Sequence[int]) -> Array | None:
        """Which elements of the block lie inside the tensor along `dimensions`; None when all do."""
        mask: Array | None = None
        for axis in dimensions:
            if self.offsets[axis] >= 0 and self.offsets[axis] + block[axis] <= self.shape[axis]:
                continue
            positions = self.offsets[axis] + np.arange(block[axis])
            part = along(axis, len(block), (positions >= 0) & (positions < self.shape[axis]))
            mask = part if mask is None else mask & part
        return mask if mask is None else np.broadcast_to(mask, block)


def along(axis: int, rank: int, values: Array) -> Array:
    """A vector laid along one axis of a block of that rank."""
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])
