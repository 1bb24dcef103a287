"""Blocks of which nothing is inside, because a size is negative or a mask starts behind the block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from levels import check_levels


@triton.jit
def columns_from(x, out, n, R: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(out + i, tl.load(x + i) * 2, mask=tl.broadcast_to((tl.arange(0, C)[None, :] >= n), (R, C)))


@triton.jit
def rows_from(x, out, n, R: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    inside = tl.broadcast_to((tl.arange(0, R)[:, None] >= n), (R, C))
    tl.store(out + i, tl.load(x + i, mask=inside, other=3) * 2, mask=inside)


@triton.jit
def a_product(x, out, n, R: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    y = tl.dot(tl.load(x + i), tl.trans(tl.load(x + i)))
    tl.store(out + i, y, mask=tl.broadcast_to((tl.arange(0, C)[None, :] >= n), (R, C)))


@triton.jit
def rows_of_another_block(x, out, n, R: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    y = tl.dot(tl.load(x + i), tl.trans(tl.load(x + i)))
    tl.store(out + i, y, mask=(tl.arange(0, R)[:, None] > R) & (tl.arange(0, C)[None, :] < n))


@triton.jit
def block_pointers(x, out, n, R: tl.constexpr, C: tl.constexpr):
    p = tl.make_block_ptr(x, (16 - n, C), (C, 1), (0, 0), (R, C), (1, 0))
    q = tl.make_block_ptr(out, (R, 16 - n), (C, 1), (0, 0), (R, C), (1, 0))
    tl.store(q, tl.load(p, boundary_check=(0, 1)) + 1, boundary_check=(0, 1))


@triton.jit
def descriptors(x, out, n, R: tl.constexpr, C: tl.constexpr):
    p = tl.make_tensor_descriptor(x, (16 - n, C), (C, 1), (R, C))
    q = tl.make_tensor_descriptor(out, (R, 16 - n), (C, 1), (R, C))
    q.store([0, 0], p.load([0, 0]) + 1)


KERNELS = [columns_from, rows_from, a_product, rows_of_another_block, block_pointers, descriptors]


def _check(kernel: Any, target: str, codegen: str | None = None) -> None:
    for n in (58, 3):
        x = np.random.default_rng(0).random(1024).astype(np.float32)
        args = {"x": x, "out": np.full(1100, -2, np.float32), "n": n, "R": 32, "C": 32}
        check_levels(kernel, args, (1,), target=target, num_warps=4, codegen=codegen)


@pytest.mark.parametrize("target", ["generic", "cpu"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_levels_agree(kernel: Any, target: str) -> None:
    _check(kernel, target)


@pytest.mark.parametrize("codegen", ["simt", "simd"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_machine_code(kernel: Any, codegen: str) -> None:
    pytest.importorskip("dpctl")
    _check(kernel, "xe:pvc", codegen)
