# pyright: basic
"""`triton.tools.ragged_tma`: rows of one array that belong to slices of different sizes, read and written by slice.

Level: user. `create_ragged_descriptor` describes the whole array on the host; in the kernel each function takes that
descriptor, where the slice begins along the ragged dimension and how long it is, and coordinates that count from the
slice's start. Guarantees: outside of the slice (and of the array) nothing is written and zero is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import DescriptorError, calling_location
from mltriton.tools.tensor_descriptor import TensorDescriptor

__all__ = ["atomic_add_ragged", "create_ragged_descriptor", "load_ragged", "store_ragged"]


def create_ragged_descriptor(T: Any, block_shape: Sequence[int], ragged_dim: int = 0) -> TensorDescriptor:
    """A descriptor of the array `T`, whose dimension `ragged_dim` consists of slices. Raises `DescriptorError`."""
    rank = len(T.shape)
    dim = ragged_dim + rank if ragged_dim < 0 else ragged_dim
    if not 0 <= dim < rank - 1:
        message, expected = "the last dimension cannot be ragged, and the others must be there", f"0 to {rank - 2}"
        raise DescriptorError(message, expected=expected, found=str(ragged_dim), location=calling_location())
    return TensorDescriptor.from_tensor(T, list(block_shape))


@triton.jit
def _slice(TMA, slice_off, slice_size, ragged_dim: tl.constexpr):
    """A descriptor of one slice."""
    rank: tl.constexpr = len(TMA.block_shape)  # pyright: ignore[reportAssignmentType]
    dim: tl.constexpr = ragged_dim + rank if ragged_dim < 0 else ragged_dim  # pyright: ignore[reportAssignmentType]
    base = TMA.base + slice_off.to(tl.int64) * TMA.strides[dim]
    rows = tl.maximum(tl.minimum(slice_size, TMA.shape[dim] - slice_off), 0)
    shape = (*TMA.shape[:dim], rows, *TMA.shape[dim + 1 :])
    return tl.make_tensor_descriptor(base, shape, (*TMA.strides[:-1], 1), TMA.block_shape)


@triton.jit
def load_ragged(TMA, slice_off, slice_size, coords, ragged_dim: tl.constexpr = 0):  # pyright: ignore[reportArgumentType]
    """The block at `coords` of a slice."""
    return _slice(TMA, tl.to_tensor(slice_off), tl.to_tensor(slice_size), ragged_dim).load(coords)


@triton.jit
def store_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: tl.constexpr = 0):  # pyright: ignore[reportArgumentType]
    """Write a block at `coords` of a slice."""
    _slice(TMA, tl.to_tensor(slice_off), tl.to_tensor(slice_size), ragged_dim).store(coords, data)


@triton.jit
def atomic_add_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: tl.constexpr = 0):  # pyright: ignore[reportArgumentType]
    """Add a block at `coords` of a slice."""
    _slice(TMA, tl.to_tensor(slice_off), tl.to_tensor(slice_size), ragged_dim).atomic_add(coords, data)
