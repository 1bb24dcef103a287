"""`triton.tools.mxfp`: blocks in microscaling formats on the host, operands of `tl.dot_scaled` and their references.

Level: user. Takes and gives torch tensors. Codes are bytes: of e2m1 the four low bits, of e8m0 the power of two plus
127, 255 for NaN. Guarantees: floats become the nearest code, of two the even one.
Source: OCP Microscaling Formats (MX) v1.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

from mltriton.errors import ArgumentError
from mltriton.runtime.driver import torch_module

VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # of e2m1's lower three bits
SIGN = 8
BIAS, NAN = 127, 255  # of e8m0

T = TypeVar("T", bound="_Codes")


class _Codes:
    """Bytes `data` of the shape `size` on a device; made of floats where `data` is given."""

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ArgumentError(f"{type(self).__name__} needs floats or a size", expected="data or size")
        self.device = device if device is not None else getattr(data, "device", "cpu")
        self.size = tuple(data.shape) if data is not None else _shape(size)
        self.data: Any = None if data is None else self._codes(data.to(torch_module().float32))

    def _codes(self, floats: Any) -> Any:
        raise NotImplementedError

    def _drawn(self: T, low: int, high: int) -> T:
        """The same with random codes from `low` to `high`."""
        torch = torch_module()
        self.data = torch.randint(low, high + 1, self.size, dtype=torch.uint8, device=self.device)
        return self


class MXFP4Tensor(_Codes):
    """Elements in e2m1."""

    def random(self) -> MXFP4Tensor:
        """Random codes."""
        return self._drawn(0, 15)

    def _codes(self, floats: Any) -> Any:
        torch = torch_module()
        size = floats.abs().nan_to_num(nan=VALUES[-1])
        limits = torch.tensor([(a + b) / 2 for a, b in pairwise(VALUES)], device=floats.device)
        below = torch.bucketize(size, limits)
        # Half-way: up from an odd code.
        is_tie = (below < len(limits)) & (size == limits[below.clamp(max=len(limits) - 1)])
        code = below + (is_tie & (below % 2 == 1))
        return (code + SIGN * torch.signbit(floats)).to(torch.uint8)

    def to(self, dtype: Any) -> Any:
        """The elements as floats."""
        torch = torch_module()
        values = torch.tensor(VALUES + tuple(-value for value in VALUES), device=self.data.device)
        return values[self.data.long()].to(dtype)

    def to_packed_tensor(self, dim: int) -> Any:
        """Two elements that follow each other along `dim` in a byte, the first in the low bits."""
        torch = torch_module()
        size = self.data.shape[dim]
        codes = self.data if size % 2 == 0 else _padded(self.data, dim)
        first, second = (codes.index_select(dim, _every(codes, dim, at)) for at in (0, 1))
        return (first | (second << 4)).to(torch.uint8)

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Sequence[int]) -> Any:
        """The opposite of `to_packed_tensor`: codes of the shape before."""
        torch = torch_module()
        axis = dim % packed_tensor.dim()
        pairs = torch.stack([packed_tensor & 15, packed_tensor >> 4], axis + 1)
        whole = pairs.flatten(axis, axis + 1)
        return whole.narrow(axis, 0, original_shape[axis]).reshape(tuple(original_shape))


class MXScaleTensor(_Codes):
    """Scales in e8m0."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Random powers of two from `low` to `high`."""
        first = 0 if low is None else max(0, math.ceil(math.log2(low)) + BIAS)
        last = NAN - 1 if high is None else min(NAN - 1, math.floor(math.log2(high)) + BIAS)
        return self._drawn(first, last)

    def _codes(self, floats: Any) -> Any:
        torch = torch_module()
        is_nan = ~(floats > 0) | floats.isinf()
        powers = torch.floor(torch.log2(torch.where(is_nan, torch.ones_like(floats), floats))) + BIAS
        codes = powers.clamp(0, NAN - 1).to(torch.uint8)
        return torch.where(is_nan, torch.full_like(codes, NAN), codes)

    def to(self, dtype: Any) -> Any:
        """The scales as floats."""
        return fp8e8m0_to_float32(self.data).to(dtype)


def fp8e8m0_to_float32(scale: Any) -> Any:
    """The powers of two that bytes of e8m0 are, as float32; NaN for 255."""
    torch = torch_module()
    codes = scale.view(torch.uint8)
    powers = torch.ldexp(torch.ones_like(codes, dtype=torch.float32), codes.to(torch.int32) - BIAS)
    return powers.masked_fill(codes == NAN, math.nan)


def _shape(size: Any) -> tuple[int, ...]:
    return tuple(cast("Sequence[int]", size)) if isinstance(size, Sequence) else (int(size),)


def _every(codes: Any, dim: int, at: int) -> Any:
    """The places `at`, `at` + 2, ..."""
    return torch_module().arange(at, codes.shape[dim], 2, device=codes.device)


def _padded(codes: Any, dim: int) -> Any:
    torch = torch_module()
    return torch.cat([codes, torch.zeros_like(codes.narrow(dim, 0, 1))], dim)
