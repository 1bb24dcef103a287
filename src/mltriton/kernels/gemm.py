# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Matrix multiplication, three ways to address memory.

Level: user. `matmul` picks a kernel: tensor descriptors where the last strides are 1, block pointers where they are
not; `matmul_pointer_kernel` is the same with tensors of pointers. All three accumulate one [BM, BN] block of C a
program instance; instances are ordered in groups of rows so that neighbours share operands in cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    dtype_name,
    item_size,
    require_count,
    requires_gradient,
    strides_of,
    with_apart_rows,
)
from mltriton.kernels.calls import again, key_of, remember
from mltriton.kernels.epilogues import Function
from mltriton.kernels.fused_gemm import fused_matmul_launch, transform_kernel, transform_launch
from mltriton.kernels.gemm_gpu import forms_of, is_large, lies_along_k, shares_on
from mltriton.kernels.gemm_persistent import lines_of, persistent_launch
from mltriton.kernels.gemm_resident import choose_share, resident_launch
from mltriton.kernels.gemm_tiles import (
    ACCUMULATORS,
    Tile,
    block_coordinates,
    choose_tile,
    multiplied_bytes,
)
from mltriton.kernels.launch import Example, Launch, family_of_warps, target_of
from mltriton.kernels.products import Product, product_of, recorded_product
from mltriton.kernels.split_k import REDUCED_BY_WARPS, REDUCING_WARPS, split_k_kernel, split_k_launches
from mltriton.kernels.stream_k import choose_shares, stream_k_kernel, stream_k_launches
from mltriton.runtime.native.launcher import num_threads

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


def matmul(
    a: Array,
    b: Array,
    form: Form = "auto",
    *,
    bias: Array | None = None,
    add: Array | None = None,
    activation: Function | None = None,
    prologue: Function | None = None,
    out_dtype: Any = None,
    split_k: int | None = None,
    target: str | None = None,
) -> Array:
    """a [..., M, K] times b [..., K, N], with any strides; batch dimensions broadcast. f16, bf16, f32, f64, int8
    or uint8, or torch's float8_e4m3fn or float8_e5m2 (one of each, too); accumulates in f32, f64 or i32.

    Returns a contiguous array [..., M, N] of the same kind; of the dtype of `a` (integers wrap around), or of
    `out_dtype`, a name or a dtype of numpy or torch. `form` chooses the kernel of a product with nothing around it.

    With the other arguments it is activation(prologue(a) b + bias + add), computed in f32 (f64 for f64, i32 where all
    is integers): `bias` is [N], `add` broadcasts to the result; `activation` and `prologue` are "relu", "silu",
    "gelu", "gelu_tanh", "exp", or a function of one block decorated with @triton.jit. What the prologue gives is
    rounded to the dtype of `a`.

    Where K is much larger than M and N, cores share the sum over K of a block of C (stream-K), and on NVIDIA's GPUs
    programs do where there are too few blocks (split-K); `split_k` demands so many parts instead, 1 none. The order of
    summation, and so the last bits, depend on it. `target` is what it runs on ("xe:pvc", say), None where the arrays
    lie.

    Raises `ArgumentError` for arrays that do not fit, and for `form="descriptor"` where a last stride is not 1.
    """
    arrays, dtype = (a, b, bias, add), None if out_dtype is None else str(out_dtype)
    is_usual = split_k is target is None and form == "auto"
    key = key_of(matmul, arrays, dtype, activation, prologue) if is_usual else None
    if (made := again(key, arrays)) is not None:
        return made[0]
    if requires_gradient(a, b, bias, add):
        return recorded_product(
            "matmul", a, b, bias=bias, add=add, activation=activation, prologue=prologue, out_dtype=out_dtype,
            form=form, split_k=split_k, target=target,
        )  # fmt: skip
    product = product_of(a, b, bias=bias, add=add, activation=activation, prologue=prologue, out_dtype=out_dtype)
    if not product.is_empty:
        launches = list(_launches(product, form, split_k, target))
        for launch in launches:
            launch.run()
        scratch = [launch.arguments[SCRATCH[launch.kernel]] for launch in launches if launch.kernel in SCRATCH]
        remember(key, arrays, (product.c,), scratch, launches)
    return product.c


# Elements of A a thread for which a prologue is computed again, rather than by a launch of its own: exponentials of so
# many take some 2 us.
REPEATED = 1 << 13
# Which argument of a launch is an array that the call makes for itself.
SCRATCH = {split_k_kernel: 2, stream_k_kernel: 5, transform_kernel: 1}


def _launches(product: Product, form: Form, split_k: int | None, target: str | None = None) -> Iterable[Launch]:
    if form != "auto" and not (product.is_plain and split_k is None):
        raise ArgumentError("matmul: only a plain product has forms", expected="form='auto'", found=repr(form))
    if split_k is not None:
        require_count("matmul: split_k", split_k)
    target = target_of(target, product.a)
    if family_of_warps(target):
        return _launches_of_warps(product, form, split_k if form == "auto" else 1, target)
    return [launch.on(target) for launch in _launches_of_threads(product, form, split_k)]


WARPS_OF_A_FUNCTION = 16  # that share 16 x 1024 elements: with 4, Intel's compiler spills what gelu needs of f32


def _launches_of_warps(product: Product, form: Form, splits: int | None, target: str | None) -> list[Launch]:
    """Where a program has many warps."""
    a, b, out = product.a, product.b, product.out
    first: list[Launch] = []
    prologue = product.prologue if a.shape[2] else None
    if prologue is not None:
        # Once for each element: within the product every warp would compute it again for its own columns.
        first = [transform_launch(a, prologue).on(target, WARPS_OF_A_FUNCTION)]
        a = first[0].arguments[1]
    is_plain = bool(a.shape[2]) and product.epilogue.is_trivial
    if b.shape[2] == 1 and is_plain and form == "auto" and splits in (None, 1):
        # One column is the row of the transposed product, and lies in memory as that does.
        a, b, out = (x.swapaxes(1, 2) for x in (b, a, out))
    a, b, out = (with_apart_rows(x) for x in (a, b, out))
    batch, m, k = a.shape
    forms = forms_of(a, b, out, in_turns=is_plain and form == "auto" and lines_of(a, b, out) is not None)
    shares = shares_on(target, m, b.shape[2], k, a, batch, splits, lies_along_k(a, b), forms)
    tile, warps, stages, splits, turned, produced = shares
    if turned:
        a, b, out = (x.swapaxes(1, 2) for x in (b, a, out))
    if splits > 1:
        sums, added = split_k_launches(a, b, out, product.epilogue, splits, None, tile, REDUCED_BY_WARPS)
        return [*first, sums.on(target, warps, stages), added.on(target, REDUCING_WARPS)]
    if is_plain:
        made = None
        if forms.in_turns and tile is not None and is_large(tile, warps):
            made = persistent_launch(a, b, out, tile)
        if made is None:
            made = matmul_launch(a, b, out, form, tile)
            asked = {"specialize_warps": "all"} if produced else {}
            made = made._replace(constants=made.constants | asked)
    else:
        made = fused_matmul_launch(a, b, out, product.epilogue, None, tile)
    return [*first, made.on(target, warps, stages)]


def _launches_of_threads(product: Product, form: Form, split_k: int | None) -> Iterable[Launch]:
    """Where a program is one thread."""
    batch, m, k = product.a.shape
    n, item = product.b.shape[2], item_size(product.a)
    if split_k is not None and split_k > 1:
        return split_k_launches(*product.operands, split_k, product.prologue)
    threads = num_threads()
    shares = choose_shares(batch, m, n, k, item, threads) if split_k is None and form == "auto" else None
    if shares is not None:
        return stream_k_launches(*product.operands, threads, product.prologue, shares)
    is_bare = k and product.is_plain and form == "auto"
    share = choose_share(m, n, k, multiplied_bytes(product.a), batch, threads) if is_bare else None
    if share is not None:
        return (resident_launch(product.a, product.b, product.out, share),)
    tile = choose_tile(m, n, k, item, batch, threads)
    if k and product.is_plain:
        return (matmul_launch(product.a, product.b, product.out, form, tile),)
    repeated = batch * m * k * (triton.cdiv(n, tile.n) - 1)
    if product.prologue is None or repeated <= REPEATED * threads:
        return (fused_matmul_launch(*product.operands, product.prologue, tile),)
    first = transform_launch(product.a, product.prologue)
    return (first, fused_matmul_launch(first.arguments[1], *product.operands[1:], None, tile))


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


_FORM_OF: dict[str, Form] = {
    "matmul_pointer_kernel": "pointer",
    "matmul_block_pointer_kernel": "block_pointer",
    "matmul_descriptor_kernel": "descriptor",
}


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: sizes that no block divides, so that every edge is masked."""
    if name not in _FORM_OF:
        return None
    a, b = (rng.uniform(0.5, 1.5, shape).astype(np.float16) for shape in ((2, 70, 80), (2, 80, 90)))
    c = np.zeros((2, 70, 90), np.float32)
    return matmul_launch(a, b, c, _FORM_OF[name], Tile(32, 32, 32, 2)).example()
