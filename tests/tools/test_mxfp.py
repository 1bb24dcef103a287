"""Microscaling formats on the host: codes, packing, and what `tl.dot_scaled` makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.tools.mxfp import MXFP4Tensor, MXScaleTensor, fp8e8m0_to_float32


@triton.jit
def product(a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K // 2)
    group = tl.arange(0, K // 32)[None, :]
    left, right = tl.load(a + m * (K // 2) + k[None, :]), tl.load(b + k[:, None] * N + n)
    scale = tl.load(sb + tl.arange(0, N)[:, None] * (K // 32) + group)
    c_block = tl.dot_scaled(left, tl.load(sa + m * (K // 32) + group), "e2m1", right, scale, "e2m1")
    tl.store(c + m * N + n, c_block)


def test_floats_become_the_nearest_code():
    floats = torch.tensor([0.0, -0.0, 0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -5.1, 100.0, -0.3])
    nearest = torch.tensor([0.0, -0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, -6.0, 6.0, -0.5])
    found = MXFP4Tensor(data=floats).to(torch.float32)
    assert torch.equal(found, nearest) and torch.equal(found.signbit(), nearest.signbit())
    codes = MXFP4Tensor(size=(16,))
    codes.data = torch.arange(16, dtype=torch.uint8)
    assert torch.equal(MXFP4Tensor(data=codes.to(torch.float64)).data, codes.data)


@pytest.mark.parametrize("shape", [(4, 6, 8), (3, 5)])
def test_packing(shape):
    torch.manual_seed(0)
    tensor = MXFP4Tensor(size=shape).random()
    for dim in range(-1, len(shape)):
        packed = tensor.to_packed_tensor(dim)
        assert packed.shape[dim] == (shape[dim] + 1) // 2
        assert torch.equal(tensor.unpack_packed_tensor(packed, dim, shape), tensor.data)


def test_scales():
    floats = torch.tensor([1.0, 0.25, 3.9, 2.0**-127, 2.0**127, float("nan"), 0.0, -1.0])
    found = MXScaleTensor(data=floats)
    assert found.data.tolist() == [127, 125, 128, 0, 254, 255, 255, 255]
    expected = torch.tensor([1.0, 0.25, 2.0, 2.0**-127, 2.0**127, *[float("nan")] * 3])
    torch.testing.assert_close(found.to(torch.float32), expected, equal_nan=True, rtol=0, atol=0)
    drawn = MXScaleTensor(size=1000).random(low=0.5, high=4.0).to(torch.float32)
    assert set(drawn.tolist()) == {0.5, 1.0, 2.0, 4.0}
    with pytest.raises(ArgumentError, match="MXScaleTensor needs floats or a size"):
        MXScaleTensor()


def test_a_product():
    torch.manual_seed(0)
    a, b = MXFP4Tensor(size=(32, 64)).random(), MXFP4Tensor(size=(64, 16)).random()
    sa, sb = (MXScaleTensor(size=(rows, 2)).random(low=2.0**-6, high=2.0**6) for rows in (32, 16))
    out = torch.zeros(32, 16)
    product[(1,)](a.to_packed_tensor(1), sa.data, b.to_packed_tensor(0), sb.data, out, 32, 16, 64)
    left = a.to(torch.float64) * sa.to(torch.float64).repeat_interleave(32, 1)
    right = b.to(torch.float64) * sb.to(torch.float64).repeat_interleave(32, 1).T
    np.testing.assert_allclose(out, left @ right, rtol=1e-6, atol=1e-3)


def test_all_scales_as_floats():
    codes = torch.arange(256, dtype=torch.uint8)
    found = fp8e8m0_to_float32(codes)
    assert found.dtype is torch.float32 and torch.isnan(found[255])
    assert torch.equal(found[:255].double(), 2.0 ** (torch.arange(255).double() - 127))
