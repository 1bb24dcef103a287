# pyright: basic
"""fold-batches: blocks of 1xMxN become MxN, whatever describes them in memory, and the results stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mltriton as triton
import mltriton.language as tl
from mltriton.ir.types import TensorType, block_of

from ..programs import Program, kernel


@triton.jit
def descriptors(a, b, c, B, M, N, K, BLOCK: tl.constexpr):
    z, m, n = tl.program_id(2), tl.program_id(1) * BLOCK, tl.program_id(0) * BLOCK
    a_desc = tl.make_tensor_descriptor(a, [B, M, K], [M * K, K, 1], [1, BLOCK, BLOCK])
    b_desc = tl.make_tensor_descriptor(b, [B, K, N], [K * N, N, 1], [1, BLOCK, BLOCK])
    c_desc = tl.make_tensor_descriptor(c, [B, M, N], [M * N, N, 1], [1, BLOCK, BLOCK])
    acc = tl.zeros((1, BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        acc = tl.dot(a_desc.load([z - 1, m, k]), b_desc.load([z - 1, k, n]), acc, input_precision="ieee")
    c_desc.store([z - 1, m, n], acc)


@triton.jit
def block_pointers(a, b, c, B, M, N, K, BLOCK: tl.constexpr):
    z, m, n = tl.program_id(2), tl.program_id(1) * BLOCK, tl.program_id(0) * BLOCK
    a_block = tl.make_block_ptr(a, (B, M, K), (M * K, K, 1), (z - 1, m, 0), (1, BLOCK, BLOCK), (2, 1, 0))
    b_block = tl.make_block_ptr(b, (B, K, N), (K * N, N, 1), (z - 1, 0, n), (1, BLOCK, BLOCK), (2, 1, 0))
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, K, BLOCK):
        a_tile = tl.load(a_block, boundary_check=(0, 1, 2), padding_option="zero").reshape(BLOCK, BLOCK)
        b_tile = tl.load(b_block, boundary_check=(0, 1, 2), padding_option="zero").reshape(BLOCK, BLOCK)
        acc = tl.dot(a_tile, b_tile, acc, input_precision="ieee")
        a_block, b_block = tl.advance(a_block, (0, 0, BLOCK)), tl.advance(b_block, (0, BLOCK, 0))
    c_block = tl.make_block_ptr(c, (B, M, N), (M * N, N, 1), (z - 1, m, n), (1, BLOCK, BLOCK), (2, 1, 0))
    tl.store(c_block, acc.reshape(1, BLOCK, BLOCK), boundary_check=(0, 1, 2))


@triton.jit
def rows(a, b, c, B, M, N, K, BLOCK: tl.constexpr):
    """Sums along each dimension, masks, transposes and new dimensions; all through tensors of pointers."""
    z = tl.program_id(0)
    m, k = tl.arange(0, BLOCK)[None, :, None], tl.arange(0, BLOCK)[None, None, :]
    if z < B:
        x = tl.load(a + z * M * K + m * K + k, mask=(m < M) & (k < K), other=0.0)
        y = x * 2 + tl.sum(x, 2)[:, :, None] + tl.max(x, 1)[:, None, :] - tl.sum(x, 0)[None, :, :]
        y += tl.trans(x, (0, 2, 1))
        tl.store(c + z * M * N + m * N + k, y, mask=(m < M) & (k < N))


@triton.jit
def two_dimensions(a, b, c, B, M, N, K, BLOCK: tl.constexpr):
    """Batches in two dimensions; another load whose leading dimension is none of size 1."""
    z = tl.program_id(0)
    source = tl.make_tensor_descriptor(a, [B, 1, M, K], [M * K, M * K, K, 1], [1, 1, BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(c, [1, B, M, N], [B * M * N, M * N, N, 1], [1, 1, BLOCK, BLOCK])
    target.store([0, z, 0, 0], source.load([z, 0, 0, 0]) + 1)


def program(fn: Any, grid: tuple[int, ...]) -> Program:
    def make(random: np.random.Generator) -> list[Any]:
        shapes = ((3, 20, 36), (3, 36, 28), (3, 20, 28))
        return [*(random.standard_normal(shape).astype(np.float32) for shape in shapes), 3, 20, 28, 36]

    return kernel(fn, "*fp32:16, *fp32:16, *fp32:16, i32, i32, i32, i32", make, grid, BLOCK=32)


def ranks(module: Any) -> set[int]:
    """The ranks of all blocks."""
    values = [value for op in module.walk() for value in op.results]
    return {block.rank for value in values if isinstance(block := block_of(value.type), TensorType)}


PROGRAMS = {
    "descriptors": program(descriptors, (1, 1, 5)),  # the first and last batch lie outside
    "block pointers": program(block_pointers, (1, 1, 5)),
    "rows": program(rows, (4,)),
    "two dimensions": program(two_dimensions, (3,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_matrices_are_left(name: str) -> None:
    module = PROGRAMS[name].check("inline,canonicalize,cse,fold-batches,canonicalize,cse,dce")
    assert max(ranks(module)) == 2


@pytest.mark.parametrize("target", ["generic", "xe:pvc"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_levels(name: str, target: str) -> None:
    tt = "inline,canonicalize,cse,fold-batches,combine,reorder-broadcast,"
    tt += "normalize-block-pointers,canonicalize,cse,licm,dce"
    ttg = "assign-layouts,cse,assign-lanes,prefetch{distance=1},cse"
    warp = "distribute-to-warps,assign-lanes,canonicalize,cse,licm,dce"
    PROGRAMS[name].with_warps(4, target).check(f"{tt},{ttg},{warp},match-target-size,canonicalize,cse,dce")


@triton.jit
def moves_along(a, b, c, B, M, N, K, BLOCK: tl.constexpr):
    """A block pointer that goes from batch to batch."""
    block = tl.make_block_ptr(a, (B, M, K), (M * K, K, 1), (0, 0, 0), (1, BLOCK, BLOCK), (2, 1, 0))
    out = tl.make_block_ptr(c, (B, M, N), (M * N, N, 1), (0, 0, 0), (1, BLOCK, BLOCK), (2, 1, 0))
    for _ in range(B):
        tl.store(out, tl.load(block, boundary_check=(0, 1, 2)) * 2, boundary_check=(0, 1, 2))
        block, out = tl.advance(block, (1, 0, 0)), tl.advance(out, (1, 0, 0))


def test_what_moves_along_batches_stays() -> None:
    module = program(moves_along, (1,)).check("inline,canonicalize,fold-batches")
    assert 3 in ranks(module)
