"""Softmax and layer normalisation over the last axis.

Level: user. One program instance takes one row. Softmax of rows longer than `LONGEST_BLOCK` reads them in pieces,
with a running maximum and sum (Milakov and Gimelshein, arXiv:1805.02867).
"""

from __future__ import annotations

from typing import Any

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import Array, as_rows, empty, require_arrays

LONGEST_BLOCK = 16384


@triton.jit
def softmax_kernel(x_ptr, y_ptr, x_stride, y_stride, n_columns, BLOCK: tl.constexpr):
    """One row of y = softmax(x); BLOCK >= n_columns is a power of two."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(y_ptr + row * y_stride + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def softmax_long_kernel(x_ptr, y_ptr, x_stride, y_stride, n_columns, BLOCK: tl.constexpr):
    """One row of any length, in pieces of BLOCK."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * y_stride
    maximum = tl.full([BLOCK], -float("inf"), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + columns, mask=columns < n_columns, other=-float("inf")).to(tl.float32)
        maximum = tl.maximum(maximum, x)
    largest = tl.max(maximum, axis=0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + columns, mask=columns < n_columns, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - largest)
    scale = 1.0 / tl.sum(total, axis=0)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_row + columns, mask=inside, other=-float("inf")).to(tl.float32)
        tl.store(y_row + columns, (tl.exp(x - largest) * scale).to(y_ptr.dtype.element_ty), mask=inside)


def softmax(x: Array) -> Array:
    """Softmax over the last axis of a floating-point array of any rank; float32 inside.

    Returns an array of the same kind, shape and dtype. Raises `ArgumentError` for anything but an array with at least
    one dimension.
    """
    require_arrays(x=x)
    if x.ndim == 0:
        raise ArgumentError("softmax needs an axis", expected="at least one dimension", found="a scalar array")
    y = empty(x.shape, x)
    n_columns = x.shape[-1]
    if 0 in x.shape:
        return y
    rows, x_stride = as_rows(x)
    n_rows = rows.shape[0]
    if n_columns <= LONGEST_BLOCK:
        block = triton.next_power_of_2(n_columns)
        softmax_kernel[(n_rows,)](rows, y, x_stride, n_columns, n_columns, BLOCK=block)
    else:
        softmax_long_kernel[(n_rows,)](rows, y, x_stride, n_columns, n_columns, BLOCK=4096)
    return y


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, x_stride, y_stride, n_columns, eps, BLOCK: tl.constexpr):
    """One row of y = (x - mean) / sqrt(variance + eps) * w + b; BLOCK >= n_columns is a power of two."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_columns
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_columns
    scale = tl.rsqrt(variance + eps)
    w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * y_stride + columns, (centred * scale * w + b).to(y_ptr.dtype.element_ty), mask=inside)


def layer_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> Array:
    """Layer normalisation over the last axis of `x` [..., columns] with `weight` and `bias` [columns]; float32
    inside.

    Returns an array of the kind, shape and dtype of `x`. Raises `ArgumentError` for arrays that differ in kind or
    dtype or do not fit.
    """
    require_arrays(x=x, weight=weight, bias=bias)
    if x.ndim == 0 or weight.shape != x.shape[-1:] or bias.shape != x.shape[-1:]:
        raise ArgumentError(
            "layer_norm: weight and bias do not fit x",
            expected=f"weight and bias of shape {tuple(x.shape[-1:])}",
            found=f"{tuple(weight.shape)} and {tuple(bias.shape)}",
        )
    y = empty(x.shape, x)
    if 0 in x.shape:
        return y
    rows, x_stride = as_rows(x)
    n_columns = x.shape[-1]
    weight, _ = as_rows(weight.reshape(1, -1))
    bias, _ = as_rows(bias.reshape(1, -1))
    layer_norm_kernel[(rows.shape[0],)](
        rows, weight, bias, y, x_stride, n_columns, n_columns, eps, BLOCK=triton.next_power_of_2(n_columns)
    )
    return y


def mltriton_verify(name: str, rng: Any) -> tuple[dict[str, Any], tuple[int, ...], dict[str, Any]] | None:
    """A launch for `mltriton verify`: five rows, a length that no block divides."""
    columns = {"softmax_kernel": 200, "layer_norm_kernel": 200, "softmax_long_kernel": 700}.get(name)
    if columns is None:
        return None
    rows = f"5x{columns}:fp32"
    values: dict[str, Any] = {"x_ptr": rows, "y_ptr": rows, "x_stride": columns, "y_stride": columns, "BLOCK": 256}
    if name == "layer_norm_kernel":
        values |= {"w_ptr": f"{columns}:fp32", "b_ptr": f"{columns}:fp32", "eps": 1e-5}
    return values | {"n_columns": columns}, (5,), {}
