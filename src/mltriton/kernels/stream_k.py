# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Stream-K matrix multiplication (Osama et al., arXiv:2301.03598): equal shares of all K steps of all blocks of C.

Level: user. Blocks of C are laid end to end, each a row of K steps, and program p of P takes the steps from
p * total / P to (p + 1) * total / P: no core waits because the number of blocks does not divide by theirs. A program
stores the blocks that it computes whole, and the partial sums of the at most two that it shares; a second kernel adds
these in the order of programs (results do not depend on timing).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.frontend.function import LanguageFunction
from mltriton.kernels.arrays import (
    Array,
    dtype_name,
    empty,
    item_size,
    require_count,
    requires_gradient,
    strides_of,
)
from mltriton.kernels.epilogues import Epilogue, finish, relu
from mltriton.kernels.fused_gemm import accumulate
from mltriton.kernels.gemm_gpu import tile_on
from mltriton.kernels.gemm_tiles import (
    ACCUMULATORS,
    FULL,
    Tile,
    balance,
    blocks_of,
    choose_tile,
    speed,
    tile_of,
)
from mltriton.kernels.launch import Example, Launch
from mltriton.kernels.products import product_of, recorded_product
from mltriton.runtime.native.launcher import num_threads


@triton.jit
def first_step(program, programs, steps):
    """The first of all `steps` that a program takes."""
    return (program.to(tl.int64) * steps // programs).to(tl.int32)


@triton.jit
def tile_coordinates(tile, M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Batch, first row and first column of a block of C; rows of blocks vary fastest, so that neighbours share B."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    inside = tile % (rows * columns)
    batch = tl.maximum(tile // (rows * columns), 0)  # The greater number says that it is natural.
    return batch.to(tl.int64), inside % rows * BM, inside // rows * BN


@triton.jit
def store_finished(
    acc, c_ptr, bias_ptr, add_ptr, batch, m, n, M, N,
    stride_cb, stride_cm, stride_cn, stride_bias, stride_db, stride_dm, stride_dn,
    ACTIVATION: tl.constexpr, COMPUTE: tl.constexpr,
):  # fmt: skip
    """Store the block of C of which `acc` is the whole sum."""
    c = finish(
        acc, bias_ptr, add_ptr, batch * stride_db, m, n, M, N, stride_bias, stride_dm, stride_dn, ACTIVATION, COMPUTE
    )
    block = (acc.shape[0], acc.shape[1])
    c_block = tl.make_block_ptr(c_ptr + batch * stride_cb, (M, N), (stride_cm, stride_cn), (m, n), block, (1, 0))
    tl.store(c_block, c.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def stream_k_kernel(
    a_ptr, b_ptr, c_ptr, bias_ptr, add_ptr, partial_ptr, tiles, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    stride_bias, stride_db, stride_dm, stride_dn,
    PROLOGUE: tl.constexpr, ACTIVATION: tl.constexpr, ACC: tl.constexpr, COMPUTE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """This program's share of C [batch, M, N] = activation(prologue(A) B + bias + add), and its partial sums in
    partial [programs, 2, BM, BN]: those of its first block, and those of another one that it does not finish.
    """
    program, programs = tl.program_id(0), tl.num_programs(0)
    steps = tl.maximum(tl.cdiv(K, BK), 1)
    start, end = first_step(program, programs, tiles * steps), first_step(program + 1, programs, tiles * steps)
    first_tile = start // steps
    for tile in tl.range(first_tile, tl.cdiv(end, steps), warp_specialize=True):
        batch, m, n = tile_coordinates(tile, M, N, BM, BN)
        k_start = tl.maximum(start - tile * steps, 0)
        k_end = tl.minimum(end - tile * steps, steps)
        acc = accumulate(
            a_ptr + batch * stride_ab, b_ptr + batch * stride_bb, m, n, k_start * BK, tl.minimum(k_end * BK, K), M, N,
            K, stride_am, stride_ak, stride_bk, stride_bn, PROLOGUE, ACC, BM, BN, BK,
        )  # fmt: skip
        if k_end - k_start == steps:
            store_finished(
                acc, c_ptr, bias_ptr, add_ptr, batch, m, n, M, N,
                stride_cb, stride_cm, stride_cn, stride_bias, stride_db, stride_dm, stride_dn, ACTIVATION, COMPUTE,
            )  # fmt: skip
        else:
            slot = program.to(tl.int64) * 2 + (tile != first_tile).to(tl.int64)
            tl.store(tl.make_block_ptr(partial_ptr + slot * BM * BN, (BM, BN), (BN, 1), (0, 0), (BM, BN), (1, 0)), acc)


@triton.jit
def stream_k_fix_kernel(
    c_ptr, bias_ptr, add_ptr, partial_ptr, tiles, programs, M, N, steps,
    stride_cb, stride_cm, stride_cn, stride_bias, stride_db, stride_dm, stride_dn,
    ACTIVATION: tl.constexpr, ACC: tl.constexpr, COMPUTE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Finish the block of C, if there is one, in which program p + 1 of `stream_k_kernel` was the first to take over
    from another; program id p of programs - 1.
    """
    program, total = tl.program_id(0), tiles * steps
    start, before = first_step(program + 1, programs, total), first_step(program, programs, total)
    tile = start // steps
    if (start % steps != 0) & (before <= tile * steps):
        acc = tl.zeros((BM, BN), dtype=ACC)
        while before < tl.minimum((tile + 1) * steps, total):
            slot = program.to(tl.int64) * 2 + (before // steps != tile).to(tl.int64)
            block = tl.make_block_ptr(partial_ptr + slot * BM * BN, (BM, BN), (BN, 1), (0, 0), (BM, BN), (1, 0))
            acc += tl.load(block)
            program += 1
            before = first_step(program, programs, total)
        batch, m, n = tile_coordinates(tile, M, N, BM, BN)
        store_finished(
            acc, c_ptr, bias_ptr, add_ptr, batch, m, n, M, N,
            stride_cb, stride_cm, stride_cn, stride_bias, stride_db, stride_dm, stride_dn, ACTIVATION, COMPUTE,
        )  # fmt: skip


def stream_k_launches(
    a: Array,
    b: Array,
    c: Array,
    epilogue: Epilogue,
    programs: int,
    prologue: LanguageFunction | None = None,
    tile: Tile | None = None,
) -> tuple[Launch, ...]:
    """The launches that compute c = epilogue(prologue(a) b) for [batch, rows, columns] arrays with so many programs
    (fewer where there is less work); `tile` is chosen when None.
    """
    batch, m, k = a.shape
    n = b.shape[-1]
    tile = tile or choose_tile(m, n, k, item_size(a))
    steps = max(1, triton.cdiv(k, tile.k))
    tiles = batch * triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n)
    programs = min(programs, tiles * steps)
    constants = epilogue.constants(dtype_name(a)) | {"BM": tile.m, "BN": tile.n}
    bias, add, *strides = epilogue.arguments()
    partial = empty((programs, 2, tile.m, tile.n), a, ACCUMULATORS[dtype_name(a)].codegen_name())
    shares = Launch(
        stream_k_kernel,
        (programs,),
        (a, b, c, bias, add, partial, tiles, m, n, k, *strides_of(a), *strides_of(b), *strides_of(c), *strides),
        constants | {"PROLOGUE": prologue, "BK": tile.k},
    )
    if tiles % programs == 0:
        return (shares,)
    fix = Launch(
        stream_k_fix_kernel,
        (programs - 1,),
        (c, bias, add, partial, tiles, programs, m, n, steps, *strides_of(c), *strides),
        constants,
    )
    return shares, fix


# How much faster shares must be predicted than whole blocks: the prediction is rough, the partial sums cost something.
CLEARLY = 1.3


@lru_cache(maxsize=4096)
def choose_shares(batch: int, m: int, n: int, k: int, item_bytes: int, threads: int) -> Tile | None:
    """The tile with which a stream-K product by so many threads is clearly faster than one program for each block;
    None where it is not: where K is small, or there are enough blocks.
    """
    if threads == 1 or k < 8 * max(m, n):
        return None
    blocks = blocks_of(m, n, item_bytes)
    whole = max(speed(m, n, block, threads) * balance(m, n, block, batch, threads, item_bytes) for block in blocks)
    best = max(blocks, key=lambda block: speed(m, n, block, threads))
    even = balance(1, 1, (1, 1), threads, threads, item_bytes)
    return tile_of(best, k, item_bytes) if speed(m, n, best, threads) * even > CLEARLY * whole else None


def stream_k_matmul(
    a: Array, b: Array, programs: int | None = None, *, target: str | None = None, **around: Any
) -> Array:
    """`matmul(a, b, **around)` by so many programs with equal shares of the work; one for each thread when None, or as
    many as fill a GPU. `target` is what it runs on ("xe:pvc", say), None where the arrays lie.
    """
    if programs is not None:
        require_count("stream_k_matmul: programs", programs)
    if requires_gradient(a, b, *around.values()):
        return recorded_product("stream_k_matmul", a, b, programs=programs, target=target, **around)
    product = product_of(a, b, **around)
    if not product.is_empty:
        # All programs work on the same blocks: as large as if there were enough of them.
        tile, warps = tile_on(target, product.a.shape[1], product.b.shape[2], a, FULL)
        usual = num_threads() if tile is None else FULL
        for launch in stream_k_launches(*product.operands, programs or usual, product.prologue, tile):
            launch.on(target, warps).run()
    return product.c


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: 18 blocks of 3 steps for 5 programs, in sizes that no block divides."""
    a, b = (rng.uniform(0.5, 1.5, shape).astype(np.float16) for shape in ((2, 40, 70), (2, 70, 80)))
    bias, c = rng.standard_normal(80, np.float32), np.zeros((2, 40, 80), np.float32)
    launches = stream_k_launches(a, b, c, Epilogue("float32", bias, c + 1, relu), 5, relu, Tile(16, 32, 32, 2))
    launches[1].arguments[3][...] = rng.standard_normal((5, 2, 16, 32))
    return {launch.kernel.__name__: launch.example() for launch in launches}.get(name)
