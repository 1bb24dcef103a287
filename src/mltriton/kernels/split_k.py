# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Split-K matrix multiplication: several program instances share the sum over K of one block of C.

Level: user. For products whose K is much larger than M and N, which have too few blocks of C for all cores. The first
kernel writes the partial sums of each split, the second adds them in a fixed order (results do not depend on timing)
and applies the epilogue.
"""

from __future__ import annotations

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
from mltriton.kernels.epilogues import Epilogue, finish, silu
from mltriton.kernels.fused_gemm import accumulate
from mltriton.kernels.gemm_gpu import tile_on
from mltriton.kernels.gemm_tiles import ACCUMULATORS, Tile, block_coordinates, choose_tile
from mltriton.kernels.launch import Example, Launch
from mltriton.kernels.products import product_of, recorded_product
from mltriton.runtime.specialization import device_kind


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, partial_ptr, M, N, K, k_per_split,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
    PROLOGUE: tl.constexpr, ACC: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """partial [splits, batch, M, N] = sums of prologue(A) B over k_per_split of K; ids (block, split, batch)."""
    row, column = block_coordinates(M, N, BM, BN, GROUP)
    split, batch = tl.program_id(1), tl.program_id(2).to(tl.int64)
    m, n, k = row * BM, column * BN, split * k_per_split
    acc = accumulate(
        a_ptr + batch * stride_ab, b_ptr + batch * stride_bb, m, n, k, tl.minimum(k + k_per_split, K), M, N, K,
        stride_am, stride_ak, stride_bk, stride_bn, PROLOGUE, ACC, BM, BN, BK,
    )  # fmt: skip
    tl.extra.cuda.gdc_launch_dependents()
    base = partial_ptr + (split * tl.num_programs(2).to(tl.int64) + batch) * M * N
    tl.store(tl.make_block_ptr(base, (M, N), (N, 1), (m, n), (BM, BN), (1, 0)), acc, boundary_check=(0, 1))


@triton.jit
def split_k_reduce_kernel(
    partial_ptr, c_ptr, bias_ptr, add_ptr, M, N,
    stride_cb, stride_cm, stride_cn, stride_bias, stride_db, stride_dm, stride_dn,
    ACTIVATION: tl.constexpr, ACC: tl.constexpr, COMPUTE: tl.constexpr,
    SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """C [batch, M, N] = activation(sum of partial [splits, batch, M, N] + bias + add); program ids (row block, column
    block, batch).
    """
    m, n, batch = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2).to(tl.int64)
    distance = tl.num_programs(2).to(tl.int64) * M * N
    acc = tl.zeros((BM, BN), dtype=ACC)
    tl.extra.cuda.gdc_wait()
    for split in tl.static_range(SPLITS):
        base = partial_ptr + split * distance + batch * M * N
        block = tl.make_block_ptr(base, (M, N), (N, 1), (m, n), (BM, BN), (1, 0))
        acc += tl.load(block, boundary_check=(0, 1), padding_option="zero")
    c = finish(
        acc, bias_ptr, add_ptr, batch * stride_db, m, n, M, N, stride_bias, stride_dm, stride_dn, ACTIVATION, COMPUTE
    )
    c_block = tl.make_block_ptr(c_ptr + batch * stride_cb, (M, N), (stride_cm, stride_cn), (m, n), (BM, BN), (1, 0))
    tl.store(c_block, c.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


REDUCED = Tile(16, 256, 0, 1)  # block of C of one program of the reduction
REDUCED_BY_WARPS, REDUCING_WARPS = Tile(4, 128, 0, 1), 4  # the same where many programs run at a time


def split_k_launches(
    a: Array,
    b: Array,
    c: Array,
    epilogue: Epilogue,
    splits: int,
    prologue: LanguageFunction | None = None,
    tile: Tile | None = None,
    reduced: Tile = REDUCED,
) -> tuple[Launch, Launch]:
    """The launches that compute c = epilogue(prologue(a) b) for [batch, rows, columns] arrays, with K in up to `splits`
    parts of whole steps; `tile` is chosen when None, `reduced` is the block of a program that adds them up.
    """
    batch, m, k = a.shape
    n = b.shape[-1]
    tile = tile or choose_tile(m, n, triton.cdiv(k, splits), item_size(a))
    k_per_split = max(1, triton.cdiv(triton.cdiv(k, tile.k), splits)) * tile.k
    splits = max(1, triton.cdiv(k, k_per_split))
    constants = epilogue.constants(dtype_name(a))
    partial = empty((splits, batch, m, n), a, ACCUMULATORS[dtype_name(a)].codegen_name())
    sums = Launch(
        split_k_kernel,
        (triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n), splits, batch),
        (a, b, partial, m, n, k, k_per_split, *strides_of(a), *strides_of(b)),
        {
            "PROLOGUE": prologue, "ACC": constants["ACC"],
            "BM": tile.m, "BN": tile.n, "BK": tile.k, "GROUP": tile.group,
        },
    )  # fmt: skip
    rows, columns = min(reduced.m, triton.next_power_of_2(m)), min(reduced.n, triton.next_power_of_2(n))
    bias, add, *strides = epilogue.arguments()
    ahead = {"launch_pdl": True} if device_kind(a) == "cuda" else {}  # It begins while the sums end.
    reduction = Launch(
        split_k_reduce_kernel,
        (triton.cdiv(m, rows), triton.cdiv(n, columns), batch),
        (partial, c, bias, add, m, n, *strides_of(c), *strides),
        {**constants, "SPLITS": splits, "BM": rows, "BN": columns, **ahead},
    )
    return sums, reduction


def split_k_matmul(a: Array, b: Array, splits: int = 4, *, target: str | None = None, **around: Any) -> Array:
    """`matmul(a, b, **around)` with the sum over K in `splits` parts (fewer where K has fewer steps). `target` is what
    it runs on ("xe:pvc", say), None where the arrays lie.
    """
    require_count("split_k_matmul: splits", splits)
    if requires_gradient(a, b, *around.values()):
        return recorded_product("split_k_matmul", a, b, splits=splits, target=target, **around)
    product = product_of(a, b, **around)
    if not product.is_empty:
        (batch, m, _), n = product.a.shape, product.b.shape[2]
        tile, warps = tile_on(target, m, n, a, batch * splits)
        for launch in split_k_launches(*product.operands, splits, product.prologue, tile):
            launch.on(target, warps).run()
    return product.c


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: three splits, the last one shorter, in sizes that no block divides."""
    a, b = (rng.uniform(0.5, 1.5, shape).astype(np.float16) for shape in ((2, 20, 170), (2, 170, 40)))
    bias, c = rng.standard_normal(40, np.float32), np.zeros((2, 20, 40), np.float32)
    launches = split_k_launches(a, b, c, Epilogue("float32", bias, c + 1, silu), 3, silu, Tile(16, 32, 32, 2))
    launches[1].arguments[0][...] = rng.standard_normal((3, 2, 20, 40))
    return {launch.kernel.__name__: launch.example() for launch in launches}.get(name)
