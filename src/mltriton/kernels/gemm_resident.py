# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Matrix products in which columns of B stay packed while a program walks over rows.

Level: user, for one thread a program. A program computes [rows, BN] of C, BM rows at a time: it packs its columns of B
once, all of K long, so that sums stay in registers from the first product to the last and a block of sums is small
enough for the first-level caches. Worth it where packing and sums take much of the time, which are products of narrow
elements, and possible where K columns of B fit in a core's cache.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import Array, dtype_name, item_size, strides_of
from mltriton.kernels.gemm_tiles import ACCUMULATORS, balance, speeds_of
from mltriton.kernels.launch import Example, Launch
from mltriton.records import NamedTuple


class Share(NamedTuple):
    """What one program computes: rows and columns of C."""

    rows: int
    columns: int


WIDE = 4  # bytes of elements whose slack is that of shares, which take as long as theirs
STEP = 64  # rows of C at a time
LEAST_ROWS = 128  # fewer read B about once
MOST_ROWS = 1 << 14
PANEL_BYTES = 1 << 19  # of packed B: what the second-level cache has room for beside A and C
LONGEST = 2048  # of K
USUAL_STEP = 512  # of K, as other kernels round it up
PACKING = 48  # rows of C that take as long as packing B
# Below this the rows of a share are too few for what packing costs, or there are too few shares (measured on 16
# threads: products of 512 are at 0.58 and take 76 us, in blocks of `gemm_tiles` 65; of 1024 at 0.75, 557 and 682).
LEAST_USE = 0.6


@lru_cache(maxsize=4096)
def choose_share(m: int, n: int, k: int, item_bytes: int, batch: int, threads: int) -> Share | None:
    """What a program of `matmul_resident_kernel` computes, of elements with so many bytes as they are multiplied; None
    where another kernel is better.
    """
    depth = triton.next_power_of_2(k)
    if m < LEAST_ROWS or item_bytes > 2 or depth > LONGEST or depth > triton.cdiv(k, USUAL_STEP) * USUAL_STEP * 9 // 8:
        return None
    shares = [
        Share(rows, columns)
        for rows in sorted({triton.cdiv(m, parts * STEP) * STEP for parts in (1 << power for power in range(25))})
        for columns in (64, 128, 256)
        if rows <= MOST_ROWS and columns < 2 * n and columns * depth * item_bytes <= PANEL_BYTES
    ]

    def value(share: Share) -> float:
        filled = m * n / (triton.cdiv(m, share.rows) * share.rows * triton.cdiv(n, share.columns) * share.columns)
        return filled * speeds_of(threads).columns[share.columns] * use(share)

    def use(share: Share) -> float:
        """The part of the time that all threads multiply."""
        return share.rows / (share.rows + PACKING) * balance(m, n, share, batch, threads, WIDE)

    best = max(shares, key=value, default=None)
    return best if best is not None and use(best) >= LEAST_USE else None


@triton.jit
def matmul_resident_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    rows, ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C [batch, M, N] = A [batch, M, K] B [batch, K, N] with K <= BK; `rows`, a multiple of BM, a program."""
    columns = tl.cdiv(N, BN)
    first = tl.program_id(0) // columns * rows
    column = tl.program_id(0) % columns * BN
    batch = tl.program_id(1).to(tl.int64)
    b_block = tl.make_block_ptr(
        b_ptr + batch * stride_bb, (K, N), (stride_bk, stride_bn), (0, column), (BK, BN), (1, 0)
    )
    b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
    for row in tl.range(first, tl.minimum(first + rows, M), BM):
        a_block = tl.make_block_ptr(
            a_ptr + batch * stride_ab, (M, K), (stride_am, stride_ak), (row, 0), (BM, BK), (1, 0)
        )
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, input_precision="ieee", out_dtype=ACC)
        c_block = tl.make_block_ptr(
            c_ptr + batch * stride_cb, (M, N), (stride_cm, stride_cn), (row, column), (BM, BN), (1, 0)
        )
        tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


def resident_launch(a: Array, b: Array, c: Array, share: Share) -> Launch:
    """The launch that computes c = a b for [batch, rows, columns] arrays, in programs of such shares."""
    _, m, k = a.shape
    n = b.shape[-1]
    constants = {
        "ACC": ACCUMULATORS[dtype_name(a)],
        "BM": STEP,
        "BN": share.columns,
        "BK": max(triton.next_power_of_2(k), 16 // item_size(a)),
    }
    grid = (triton.cdiv(m, share.rows) * triton.cdiv(n, share.columns), c.shape[0])
    arguments = (a, b, c, m, n, k, *strides_of(a), *strides_of(b), *strides_of(c), share.rows)
    return Launch(matmul_resident_kernel, grid, arguments, constants)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: sizes that no block divides, and three blocks of rows for a program."""
    if name != "matmul_resident_kernel":
        return None
    a, b = (rng.uniform(0.5, 1.5, shape).astype(np.float16) for shape in ((2, 210, 60), (2, 60, 70)))
    return resident_launch(a, b, np.zeros((2, 210, 70), np.float32), Share(192, 64)).example()
