# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Softmax, layer normalisation and normalisation by the root mean square, over the last axis.

Level: user. One program instance takes one row. Rows of up to `LONGEST_BLOCK` elements are one block; longer ones are
read twice in blocks, once for the statistics, which are merged block by block, and once for the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    as_rows,
    dtype_name,
    empty,
    item_size,
    number,
    recorded,
    require_arrays,
    requires_gradient,
)
from mltriton.kernels.calls import Key, again, key_of, remember
from mltriton.kernels.launch import Example, Launch, family_of_warps, target_of
from mltriton.records import NamedTuple

LONGEST_BLOCK = 65536  # a row of f32 is then a quarter of a second-level cache of 1 MB; measured against pieces
PIECE = 4096  # block of rows longer than that
WARP_BYTES = 1024  # of a row that a warp computes on: a quarter of 64 registers of Xe, so that 128 are enough
MOST_WARPS = 32
# Rows of so many times that are one block of as many warps as there may be: on NVIDIA 32 of 64 registers of a lane.
LONGER = {"xe": 1, "cuda": 4}

# What is computed in, by dtype of the arrays.
COMPUTED_IN = {"float16": tl.float32, "bfloat16": tl.float32, "float32": tl.float32, "float64": tl.float64}


@triton.jit
def softmax_kernel(x_ptr, y_ptr, x_stride, y_stride, n_columns, FLOAT: tl.constexpr, BLOCK: tl.constexpr):
    """One row of y = softmax(x), computed in FLOAT; BLOCK >= n_columns is a power of two."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=-float("inf")).to(FLOAT)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(y_ptr + row * y_stride + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def softmax_long_kernel(
    x_ptr, y_ptr, x_stride, y_stride, n_columns, LOWEST: tl.constexpr, FLOAT: tl.constexpr, BLOCK: tl.constexpr
):
    """One row of any length, with a running maximum and sum (Milakov and Gimelshein, arXiv:1805.02867).

    The maximum starts at LOWEST, a finite number, so that a block of -inf alone adds nothing.
    """
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * y_stride
    largest = tl.full((), LOWEST, FLOAT)
    total = tl.full((), 0.0, FLOAT)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + columns, mask=columns < n_columns, other=-float("inf")).to(FLOAT)
        new_largest = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new_largest) + tl.sum(tl.exp(x - new_largest), axis=0)
        largest = new_largest
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_row + columns, mask=inside, other=-float("inf")).to(FLOAT)
        y = tl.exp(x - largest) / total
        tl.store(y_row + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def softmax(x: Array, *, target: str | None = None) -> Array:
    """Softmax over the last axis of an array of any rank: f16, bf16 and f32 computed in f32, f64 in f64. `target` is
    what it runs on ("xe:pvc", say), None where the array lies.

    Returns a contiguous array of the same kind, shape and dtype. Raises `ArgumentError` for other dtypes and for an
    array without dimensions.
    """
    key = key_of(softmax, (x,), target)
    if (made := again(key, (x,))) is not None:
        return made[0]
    if requires_gradient(x):
        return recorded("softmax", {"x": x}, target=target)
    require_arrays(x=x)
    check_rows("softmax", x)
    y = empty(x.shape, x)
    if 0 in x.shape:
        return y
    target = target_of(target, x)
    blocks = choose_rows(x, target)
    launch = softmax_launch(x, y, blocks.longest, blocks.piece).on(target, blocks.warps)
    launch.run()
    remember(key, (x,), (y,), (), (launch,))
    return y


class Rows(NamedTuple):
    """The longest row that is one block, the blocks of longer ones, and the warps that share a block; None where a
    program is one thread.
    """

    longest: int
    piece: int
    warps: int | None = None


def choose_rows(x: Array, target: str | None) -> Rows:
    """Blocks for rows of `x`: where programs have many warps, what these keep in registers."""
    family = family_of_warps(target)
    if family is None:
        return Rows(LONGEST_BLOCK, PIECE)
    computed_bytes = max(4, item_size(x))
    piece = MOST_WARPS * WARP_BYTES // computed_bytes
    longest = LONGER[family] * piece
    block = min(triton.next_power_of_2(x.shape[-1]), longest)
    return Rows(longest, piece, max(1, min(MOST_WARPS, block * computed_bytes // WARP_BYTES)))


def softmax_launch(x: Array, y: Array, longest_block: int = LONGEST_BLOCK, piece: int = PIECE) -> Launch:
    """The launch that computes y = softmax(x), y contiguous; rows above `longest_block` go in blocks of `piece`."""
    rows, x_stride = as_rows(x)
    dtype, n_columns = COMPUTED_IN[dtype_name(x)], x.shape[-1]
    grid, arguments = (rows.shape[0],), (rows, y, x_stride, n_columns, n_columns)
    if n_columns <= longest_block:
        block = triton.next_power_of_2(n_columns)
        return Launch(softmax_kernel, grid, arguments, {"FLOAT": dtype, "BLOCK": block})
    constants = {"LOWEST": LOWEST[dtype], "FLOAT": dtype, "BLOCK": piece}
    return Launch(softmax_long_kernel, grid, arguments, constants)


@triton.jit
def layer_norm_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, x_stride, y_stride, n_columns,
    eps: tl.float64,  # pyright: ignore[reportInvalidTypeForm]
    CENTRED: tl.constexpr, FLOAT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row of y = (x - mean) / sqrt(variance + eps) * w + b in FLOAT, or of y = x / sqrt(mean of squares + eps) * w
    where it is not CENTRED; BLOCK >= n_columns is a power of two.
    """
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(FLOAT)
    if CENTRED:
        mean = tl.sum(x, axis=0) / n_columns
        x = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(x * x, axis=0) / n_columns
    scale = tl.rsqrt(variance + eps.to(FLOAT))
    w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(FLOAT)
    y = x * scale * w
    if CENTRED:
        y += tl.load(b_ptr + columns, mask=inside, other=0.0).to(FLOAT)
    tl.store(y_ptr + row * y_stride + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def row_statistics(x_row, n_columns, eps, CENTRED: tl.constexpr, FLOAT: tl.constexpr, BLOCK: tl.constexpr):
    """The mean of a row of any length and 1 / sqrt(variance + eps), of 0 where it is not CENTRED; mean and variance of
    blocks are merged (Chan, Golub and LeVeque, 1979).
    """
    mean = tl.full((), 0.0, FLOAT)
    squares = tl.full((), 0.0, FLOAT)  # of the distances from the mean
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_row + columns, mask=inside, other=0.0).to(FLOAT)
        if CENTRED:
            size = tl.minimum(BLOCK, n_columns - start)
            block_mean = tl.sum(x, axis=0) / size
            x = tl.where(inside, x - block_mean, 0.0)
            distance = block_mean - mean
            share = size.to(FLOAT) / (start + size)
            squares += distance * distance * share * start
            mean += distance * share
        squares += tl.sum(x * x, axis=0)
    return mean, tl.rsqrt(squares / n_columns + eps.to(FLOAT))


@triton.jit
def layer_norm_long_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, x_stride, y_stride, n_columns,
    eps: tl.float64,  # pyright: ignore[reportInvalidTypeForm]
    CENTRED: tl.constexpr, FLOAT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row of any length, as `layer_norm_kernel` computes it."""
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_stride
    y_row = y_ptr + row * y_stride
    mean, scale = row_statistics(x_row, n_columns, eps, CENTRED, FLOAT, BLOCK)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_row + columns, mask=inside, other=0.0).to(FLOAT)
        w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(FLOAT)
        y = (x - mean) * scale * w
        if CENTRED:
            y += tl.load(b_ptr + columns, mask=inside, other=0.0).to(FLOAT)
        tl.store(y_row + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def layer_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5, *, target: str | None = None) -> Array:
    """Layer normalisation over the last axis of `x` [..., columns] with `weight` and `bias` [columns]: f16, bf16 and
    f32 computed in f32, f64 in f64. `target` is what it runs on ("xe:pvc", say), None where the arrays lie.

    Returns a contiguous array of the kind, shape and dtype of `x`. Raises `ArgumentError` for other dtypes, and for
    arrays that differ in kind or dtype or do not fit.
    """
    key = key_of(layer_norm, (x, weight, bias), eps, target)
    if (made := again(key, (x, weight, bias))) is not None:
        return made[0]
    return _normalized(layer_norm, key, eps, target, x=x, weight=weight, bias=bias)


def rms_norm(x: Array, weight: Array, eps: float = 1e-6, *, target: str | None = None) -> Array:
    """`x` [..., columns] over the root of its mean square and `eps`, times `weight` [columns] (Zhang and Sennrich,
    arXiv:1910.07467); dtypes, result and errors are those of `layer_norm`.
    """
    key = key_of(rms_norm, (x, weight), eps, target)
    if (made := again(key, (x, weight))) is not None:
        return made[0]
    return _normalized(rms_norm, key, eps, target, x=x, weight=weight)


def _normalized(
    function: Callable[..., Array], key: Key | None, eps: float, target: str | None, **named: Array
) -> Array:
    arrays = tuple(named.values())
    if requires_gradient(*arrays):
        return recorded(function.__name__, named, eps=eps, target=target)
    x = check_norm(function.__name__, **named)
    y = empty(x.shape, x)
    if 0 in x.shape:
        return y
    target = target_of(target, x)
    blocks = choose_rows(x, target)
    launch = layer_norm_launch(x, arrays[1], named.get("bias"), y, eps, blocks.longest, blocks.piece)
    launch = launch.on(target, blocks.warps)
    launch.run()
    remember(key, arrays, (y,), (), (launch,))
    return y


def layer_norm_launch(
    x: Array,
    weight: Array,
    bias: Array | None,
    y: Array,
    eps: float,
    longest_block: int = LONGEST_BLOCK,
    piece: int = PIECE,
) -> Launch:
    """The launch of `layer_norm`, or without a bias of `rms_norm`, into y, contiguous; rows above `longest_block` go in
    blocks of `piece`.
    """
    rows, x_stride = as_rows(x)
    weight, bias = as_rows(weight)[0], None if bias is None else as_rows(bias)[0]
    n_columns = x.shape[-1]
    is_long = n_columns > longest_block
    block = piece if is_long else triton.next_power_of_2(n_columns)
    return Launch(
        layer_norm_long_kernel if is_long else layer_norm_kernel,
        (rows.shape[0],),
        (rows, weight, bias, y, x_stride, n_columns, n_columns, number("eps", eps)),
        {"CENTRED": bias is not None, "FLOAT": COMPUTED_IN[dtype_name(x)], "BLOCK": block},
    )


LOWEST = {tl.float32: -3.4028234663852886e38, tl.float64: -1.7976931348623157e308}


def check_norm(function: str, *, x: Array, **others: Array) -> Array:
    """`x`; `ArgumentError` unless `function` can normalise it with the others: vectors, and `dy`, which is as `x`."""
    require_arrays(x=x, **others)
    check_rows(function, x)
    wanted = {name: tuple(x.shape if name == "dy" else x.shape[-1:]) for name in others}
    if any(tuple(others[name].shape) != shape for name, shape in wanted.items()):
        raise ArgumentError(
            f"{function}: {' and '.join(others)} do{'es' * (len(others) == 1)} not fit x",
            expected=" and ".join(f"{name} of shape {shape}" for name, shape in wanted.items()),
            found=" and ".join(str(tuple(other.shape)) for other in others.values()),
        )
    return x


def check_rows(function: str, x: Array) -> None:
    """Raise `ArgumentError` unless `x` has rows of a dtype that is computed in."""
    found = f"{dtype_name(x)} {tuple(x.shape)}"
    if x.ndim == 0:
        raise ArgumentError(f"{function} needs an axis", expected="at least one dimension", found=found)
    if dtype_name(x) not in COMPUTED_IN:
        raise ArgumentError(f"{function}: unsupported dtype", expected=", ".join(COMPUTED_IN), found=found)


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: five rows, a length that no block divides."""
    x = rng.standard_normal((5, 700 if "long" in name else 200), np.float32)
    weight, bias, y = x[3], x[4], np.zeros_like(x)
    if name in ("softmax_kernel", "softmax_long_kernel"):
        return softmax_launch(x, y, longest_block=256, piece=256).example()
    if name in ("layer_norm_kernel", "layer_norm_long_kernel"):
        return layer_norm_launch(x, weight, bias, y, 1e-5, longest_block=256, piece=256).example()
    return None
