# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Matrix multiplication by as many programs as a GPU runs at a time, each of which computes blocks of C in turn.

Level: user. For products of several rounds of programs: none waits for others to end, and begins anew, between two
blocks. Operands are read through descriptors, turned where their columns lie along memory; where the GPU can, a warp of
its own starts the copies of the next block while the others store one (1 to 2 % on an H100).
"""

from __future__ import annotations

from functools import cache

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.kernels.arrays import Array, dtype_name, strides_of
from mltriton.kernels.gemm_gpu import MULTIPROCESSORS
from mltriton.kernels.gemm_tiles import ACCUMULATORS, Tile, coordinates_of
from mltriton.kernels.launch import Example, Launch
from mltriton.runtime.grid import even_programs
from mltriton.runtime.specialization import device_kind


@triton.jit
def right_descriptor(base, N, K, stride, TURNED: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """B [K, N] by blocks [BK, BN], or its transpose by blocks [BN, BK]."""
    if TURNED:
        return tl.make_tensor_descriptor(base, [N, K], [stride, 1], [BN, BK])
    else:
        return tl.make_tensor_descriptor(base, [K, N], [stride, 1], [BK, BN])


@triton.jit
def right(desc, k, n, TURNED: tl.constexpr):
    """The block of B that begins at row k and column n."""
    if TURNED:
        return desc.load([n, k]).T
    else:
        return desc.load([k, n])


@triton.jit
def result_descriptor(base, M, N, stride, TURNED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """C [M, N] by blocks [BM, BN], or its transpose by blocks [BN, BM]."""
    if TURNED:
        return tl.make_tensor_descriptor(base, [N, M], [stride, 1], [BN, BM])
    else:
        return tl.make_tensor_descriptor(base, [M, N], [stride, 1], [BM, BN])


@triton.jit
def store(desc, m, n, block, TURNED: tl.constexpr):
    """The block of C that begins at row m and column n."""
    if TURNED:
        desc.store([n, m], block.T)
    else:
        desc.store([m, n], block)


@triton.jit
def matmul_persistent_kernel(
    a_ptr, b_ptr, c_ptr, batches, M, N, K, stride_ab, stride_a, stride_bb, stride_b, stride_cb, stride_c,
    A_TURNED: tl.constexpr, B_TURNED: tl.constexpr, C_TURNED: tl.constexpr, BATCHED: tl.constexpr, ACC: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, MORE: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """C [batches, M, N] = A [batches, M, K] B [batches, K, N]; program id p computes blocks p, p + programs, ...
    `A_TURNED`: A is the transpose of rows of `stride_a`, and so the others. `BATCHED`: there is more than one product.
    `MORE`: columns of a block besides the first BN, which are a product of their own.
    """
    blocks = tl.cdiv(M, BM) * tl.cdiv(N, BN + MORE)
    for block in tl.range(tl.program_id(0), batches * blocks, tl.num_programs(0), warp_specialize=True):
        a_base, b_base, c_base, inside = a_ptr, b_ptr, c_ptr, block
        if BATCHED:
            batch = tl.maximum(block // blocks, 0).to(tl.int64)  # The greater number says that it is natural.
            a_base += batch * stride_ab
            b_base += batch * stride_bb
            c_base += batch * stride_cb
            inside = block % blocks
        if A_TURNED:
            a_desc = tl.make_tensor_descriptor(a_base, [K, M], [stride_a, 1], [BK, BM])
        else:
            a_desc = tl.make_tensor_descriptor(a_base, [M, K], [stride_a, 1], [BM, BK])
        b_desc = right_descriptor(b_base, N, K, stride_b, B_TURNED, BN, BK)
        c_desc = result_descriptor(c_base, M, N, stride_c, C_TURNED, BM, BN)
        row, column = coordinates_of(inside, M, N, BM, BN + MORE, GROUP)
        m, n = row * BM, column * (BN + MORE)
        acc = tl.zeros((BM, BN), dtype=ACC)
        if MORE:
            more_b_desc = right_descriptor(b_base, N, K, stride_b, B_TURNED, MORE, BK)
            more_c_desc = result_descriptor(c_base, M, N, stride_c, C_TURNED, BM, MORE)
            more = tl.zeros((BM, MORE), dtype=ACC)
        for k in range(0, K, BK):
            if A_TURNED:
                a = a_desc.load([k, m]).T
            else:
                a = a_desc.load([m, k])
            b = right(b_desc, k, n, B_TURNED)
            if MORE:
                more_b = right(more_b_desc, k, n + BN, B_TURNED)
            acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
            if MORE:
                more = tl.dot(a, more_b, more, input_precision="ieee", out_dtype=ACC)
        store(c_desc, m, n, acc.to(c_ptr.dtype.element_ty), C_TURNED)
        if MORE:
            store(more_c_desc, m, n + BN, more.to(c_ptr.dtype.element_ty), C_TURNED)


def persistent_launch(a: Array, b: Array, c: Array, tile: Tile, programs: int | None = None) -> Launch | None:
    """The launch that computes c = a b for [batch, rows, columns] arrays by so many programs, one for each
    multiprocessor when None; None where that takes one round of programs, or where neither rows nor columns of an array
    lie together. Blocks whose columns are no power of two are always computed so.
    """
    (batches, m, k), n = a.shape, b.shape[-1]
    lines = lines_of(a, b, c)
    blocks = batches * triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n)
    first = 1 << tile.n.bit_length() - 1
    programs = min(programs or even_programs(blocks, multiprocessors_of(a)), blocks)
    if lines is None or (blocks == programs and tile.n == first):
        return None
    strides = [number for x, (line, _) in zip((a, b, c), lines, strict=True) for number in (strides_of(x)[0], line)]
    constants = {
        "A_TURNED": lines[0][1], "B_TURNED": lines[1][1], "C_TURNED": lines[2][1], "BATCHED": batches > 1,
        "ACC": ACCUMULATORS[dtype_name(a)], "BM": tile.m, "BN": first, "MORE": tile.n - first, "BK": tile.k,
        "GROUP": tile.group,
    }  # fmt: skip
    return Launch(matmul_persistent_kernel, (programs,), (a, b, c, batches, m, n, k, *strides), constants)


def lines_of(a: Array, b: Array, c: Array) -> list[tuple[int, bool]] | None:
    """How far lines of each array lie apart in memory, and whether they are columns; None where one has none."""
    lines = [line for x in (a, b, c) if (line := _line_of(x)) is not None]
    return None if len(lines) < 3 else lines


def _line_of(x: Array) -> tuple[int, bool] | None:
    """How far lines of memory lie apart, and whether they are columns; None where there are no lines."""
    _, row, column = strides_of(x)
    return (row, False) if column == 1 else (column, True) if row == 1 else None


def multiprocessors_of(x: Array) -> int:
    """Those of the GPU on which an array lies, or as many as Hopper's have."""
    return _multiprocessors(x.device.index or 0) if device_kind(x) == "cuda" else MULTIPROCESSORS


@cache
def _multiprocessors(index: int) -> int:
    from mltriton.targets.nvidia import driver  # Only where there is a GPU.

    return driver.device(index).attribute(driver.Attribute.MULTIPROCESSORS)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: 18 blocks for 2 programs, in sizes that no block divides, B by columns."""
    a, b = (rng.uniform(0.5, 1.5, (2, size, 80)).astype(np.float16) for size in (70, 90))
    c = np.zeros((2, 70, 90), np.float32)
    launch = persistent_launch(a, b.swapaxes(1, 2), c, Tile(32, 32, 32, 2), 2)
    return launch.example() if launch is not None and name == launch.kernel.__name__ else None
