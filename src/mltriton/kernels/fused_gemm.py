# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Matrix multiplication with a prologue and an epilogue: C = activation(prologue(A) B + bias + add).

Level: user. One program instance computes one [BM, BN] block of C, as in `gemm.py`, through block pointers and with
any strides. The epilogue works on the accumulator: what it computes never lies in memory before it is C.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.frontend.function import LanguageFunction
from mltriton.kernels.arrays import Array, dtype_name, empty, item_size, strides_of
from mltriton.kernels.epilogues import Epilogue, finish, gelu_tanh, transform
from mltriton.kernels.gemm_tiles import Tile, block_coordinates, choose_tile
from mltriton.kernels.launch import Example, Launch


@triton.jit
def accumulate(
    a_base, b_base, m, n, k_start, k_end, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    PROLOGUE: tl.constexpr, ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """prologue(A[m : m + BM, k_start : k_end]) B[k_start : k_end, n : n + BN] of one matrix; `k_end` is K or a multiple
    of BK behind `k_start`.
    """
    a_block = tl.make_block_ptr(a_base, (M, K), (stride_am, stride_ak), (m, k_start), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_base, (K, N), (stride_bk, stride_bn), (k_start, n), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(k_start, k_end, BK):
        a = transform(tl.load(a_block, boundary_check=(0, 1), padding_option="zero"), PROLOGUE, k_end - k)
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    return acc


@triton.jit
def fused_matmul_kernel(
    a_ptr, b_ptr, c_ptr, bias_ptr, add_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    stride_bias, stride_db, stride_dm, stride_dn,
    PROLOGUE: tl.constexpr, ACTIVATION: tl.constexpr, ACC: tl.constexpr, COMPUTE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """C [batch, M, N] = activation(prologue(A [batch, M, K]) B [batch, K, N] + bias [N] + add [batch, M, N]); program
    ids (block, batch).
    """
    row, column = block_coordinates(M, N, BM, BN, GROUP)
    batch = tl.program_id(1).to(tl.int64)
    m, n = row * BM, column * BN
    acc = accumulate(
        a_ptr + batch * stride_ab, b_ptr + batch * stride_bb, m, n, 0, K, M, N, K,
        stride_am, stride_ak, stride_bk, stride_bn, PROLOGUE, ACC, BM, BN, BK,
    )  # fmt: skip
    c = finish(
        acc, bias_ptr, add_ptr, batch * stride_db, m, n, M, N, stride_bias, stride_dm, stride_dn, ACTIVATION, COMPUTE
    )
    c_block = tl.make_block_ptr(c_ptr + batch * stride_cb, (M, N), (stride_cm, stride_cn), (m, n), (BM, BN), (1, 0))
    tl.store(c_block, c.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def transform_kernel(
    x_ptr, y_ptr, M, N, stride_xb, stride_xm, stride_xn, FUNCTION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Y [batch, M, N], contiguous, is the function of X; program ids (row block, column block, batch)."""
    m, n, batch = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2).to(tl.int64)
    x_block = tl.make_block_ptr(x_ptr + batch * stride_xb, (M, N), (stride_xm, stride_xn), (m, n), (BM, BN), (1, 0))
    y_block = tl.make_block_ptr(y_ptr + batch * M * N, (M, N), (N, 1), (m, n), (BM, BN), (1, 0))
    x = tl.load(x_block, boundary_check=(0, 1), padding_option="zero")
    tl.store(y_block, transform(x, FUNCTION, N - n), boundary_check=(0, 1))


def transform_launch(x: Array, function: LanguageFunction) -> Launch:
    """The launch that computes a function of [batch, rows, columns], into an array of its own (argument 1). Worth it
    where each row of blocks of A is read for several columns of blocks of C.
    """
    batch, m, n = x.shape
    rows, columns = min(16, triton.next_power_of_2(m)), min(1024, triton.next_power_of_2(n))
    arguments = (x, empty(x.shape, x), m, n, *strides_of(x))
    grid = (triton.cdiv(m, rows), triton.cdiv(n, columns), batch)
    return Launch(transform_kernel, grid, arguments, {"FUNCTION": function, "BM": rows, "BN": columns})


def fused_matmul_launch(
    a: Array,
    b: Array,
    c: Array,
    epilogue: Epilogue,
    prologue: LanguageFunction | None = None,
    tile: Tile | None = None,
) -> Launch:
    """The launch that computes c = epilogue(prologue(a) b) for [batch, rows, columns] arrays; `tile` is chosen when
    None.
    """
    _, m, k = a.shape
    n = b.shape[-1]
    tile = tile or choose_tile(m, n, k, item_size(a))
    grid = (triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n), c.shape[0])
    bias, add, *strides = epilogue.arguments()
    arguments = (a, b, c, bias, add, m, n, k, *strides_of(a), *strides_of(b), *strides_of(c), *strides)
    constants = {
        "PROLOGUE": prologue, **epilogue.constants(dtype_name(a)),
        "BM": tile.m, "BN": tile.n, "BK": tile.k, "GROUP": tile.group,
    }  # fmt: skip
    return Launch(fused_matmul_kernel, grid, arguments, constants)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: all that there is, in sizes that no block divides."""
    a, b = (rng.uniform(0.5, 1.5, shape).astype(np.float16) for shape in ((2, 70, 80), (2, 80, 90)))
    bias, add = (rng.standard_normal(shape, np.float32) for shape in ((90,), (2, 70, 90)))
    c = np.zeros((2, 70, 90), np.float32)
    epilogue = Epilogue("float32", bias, add, gelu_tanh)
    launches = (
        fused_matmul_launch(a, b, c, epilogue, gelu_tanh, Tile(32, 32, 32, 2)),
        transform_launch(a.swapaxes(1, 2), gelu_tanh),
    )
    return {launch.kernel.__name__: launch.example() for launch in launches}.get(name)
