# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Matrix multiplication, three ways to address memory.

Level: user. `matmul` picks a kernel: tensor descriptors where the last strides are 1, block pointers where they are
not; `matmul_pointer_kernel` is the same with tensors of pointers. All three accumulate one [BM, BN] block of C a
program instance; instances are ordered in groups of rows so that neighbours share operands in cache.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import Array, dtype_name, empty, expand, item_size, require_arrays, strides_of
from mltriton.kernels.gemm_tiles import ACCUMULATORS, Tile, block_coordinates, choose_tile
from mltriton.kernels.launch import Launch

Form = Literal["auto", "pointer", "block_pointer", "descriptor"]


@triton.jit
def matmul_pointer_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """C [batch, M, N] = A [batch, M, K] B [batch, K, N] with tensors of pointers; program ids (block, batch)."""
    row, column = block_coordinates(M, N, BM, BN, GROUP)
    batch = tl.program_id(1).to(tl.int64)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + batch * stride_ab + (m[:, None] * stride_am + k[None, :] * stride_ak)
    b_ptrs = b_ptr + batch * stride_bb + (k[:, None] * stride_bk + n[None, :] * stride_bn)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for start in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - start), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c_ptrs = c_ptr + batch * stride_cb + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_block_pointer_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The same with block pointers."""
    row, column = block_coordinates(M, N, BM, BN, GROUP)
    batch = tl.program_id(1).to(tl.int64)
    a_block = tl.make_block_ptr(
        a_ptr + batch * stride_ab, (M, K), (stride_am, stride_ak), (row * BM, 0), (BM, BK), (1, 0)
    )
    b_block = tl.make_block_ptr(
        b_ptr + batch * stride_bb, (K, N), (stride_bk, stride_bn), (0, column * BN), (BK, BN), (1, 0)
    )
    acc = tl.zeros((BM, BN), dtype=ACC)
    for _ in range(0, K, BK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    c_block = tl.make_block_ptr(
        c_ptr + batch * stride_cb, (M, N), (stride_cm, stride_cn), (row * BM, column * BN), (BM, BN), (1, 0)
    )
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def matmul_descriptor_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_bb, stride_bk, stride_cb, stride_cm,
    ACC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The same with tensor descriptors: the last dimension of A, B and C has stride 1."""
    row, column = block_coordinates(M, N, BM, BN, GROUP)
    batch = tl.program_id(1).to(tl.int64)
    a_desc = tl.make_tensor_descriptor(a_ptr + batch * stride_ab, [M, K], [stride_am, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr + batch * stride_bb, [K, N], [stride_bk, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr + batch * stride_cb, [M, N], [stride_cm, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        a = a_desc.load([row * BM, k])
        b = b_desc.load([k, column * BN])
        acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
    c_desc.store([row * BM, column * BN], acc.to(c_ptr.dtype.element_ty))


def matmul(a: Array, b: Array, form: Form = "auto") -> Array:
    """a [..., M, K] times b [..., K, N], with any strides; batch dimensions broadcast. f16, bf16, f32, f64 or int8;
    accumulates in f32, f64 or i32.

    Returns a contiguous array [..., M, N] of the same kind and dtype (int8 wraps around). `form` chooses the kernel.
    Raises `ArgumentError` for arrays that do not fit, and for `form="descriptor"` where a last stride is not 1.
    """
    require_arrays(a=a, b=b)
    if dtype_name(a) not in ACCUMULATORS:
        raise ArgumentError("matmul: unsupported dtype", expected=", ".join(ACCUMULATORS), found=dtype_name(a))
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ArgumentError(
            "matmul: the shapes do not fit",
            expected="[..., M, K] and [..., K, N]",
            found=f"{tuple(a.shape)} and {tuple(b.shape)}",
        )
    batch = _broadcast(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    c = empty((*batch, m, n), a)
    if 0 in c.shape:
        return c
    if k == 0:
        c[...] = 0
        return c
    matmul_launch(_as_batches(a, batch), _as_batches(b, batch), c.reshape(-1, m, n), form).run()
    return c


def matmul_launch(a: Array, b: Array, c: Array, form: Form = "auto", tile: Tile | None = None) -> Launch:
    """The launch that computes c = a b for [batch, rows, columns] arrays; `tile` is chosen when None."""
    _, m, k = a.shape
    n = b.shape[-1]
    tile = tile or choose_tile(m, n, k, item_size(a))
    grid = (triton.cdiv(m, tile.m) * triton.cdiv(n, tile.n), c.shape[0])
    constants = {
        "ACC": ACCUMULATORS[dtype_name(a)], "BM": tile.m, "BN": tile.n, "BK": tile.k, "GROUP": tile.group,
    }  # fmt: skip
    sa, sb, sc = strides_of(a), strides_of(b), strides_of(c)
    unit = (k == 1 or sa[2] == 1) and (n == 1 or sb[2] == 1)
    if form == "descriptor" and not unit:
        raise ArgumentError(
            "matmul: a descriptor needs last strides of 1", expected="1 and 1", found=f"{sa[2]} and {sb[2]}"
        )
    if form == "descriptor" or (form == "auto" and unit):
        arguments = (a, b, c, m, n, k, sa[0], sa[1], sb[0], sb[1], sc[0], sc[1])
        return Launch(matmul_descriptor_kernel, grid, arguments, constants)
    kernel = matmul_pointer_kernel if form == "pointer" else matmul_block_pointer_kernel
    return Launch(kernel, grid, (a, b, c, m, n, k, *sa, *sb, *sc), constants)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ArgumentError(
            "matmul: the batch dimensions do not broadcast", expected="equal sizes, or 1", found=f"{a} and {b}"
        ) from None


def _as_batches(x: Array, batch: tuple[int, ...]) -> Array:
    """`x` as [batches, rows, columns]; copied only where batch dimensions cannot be merged."""
    return expand(x, (*batch, *x.shape[-2:])).reshape(-1, *x.shape[-2:])


_FORM_OF: dict[str, Form] = {
    "matmul_pointer_kernel": "pointer",
    "matmul_block_pointer_kernel": "block_pointer",
    "matmul_descriptor_kernel": "descriptor",
}


def mltriton_verify(
    name: str, rng: np.random.Generator
) -> tuple[dict[str, Any], tuple[int, ...], dict[str, Any]] | None:
    """A launch for `mltriton verify`: sizes that no block divides, so that every edge is masked."""
    if name not in _FORM_OF:
        return None
    a, b = (rng.uniform(0.5, 1.5, shape).astype(np.float16) for shape in ((2, 70, 80), (2, 80, 90)))
    c = np.zeros((2, 70, 90), np.float32)
    return matmul_launch(a, b, c, _FORM_OF[name], Tile(32, 32, 32, 2)).example()
