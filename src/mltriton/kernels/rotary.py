# pyright: basic
# The bodies of kernels are programs of the language: their parameters have no types in Python.
"""Rotary position embedding (Su et al., arXiv:2104.09864), of halves of a head's dimension.

Level: user. One program instance turns some heads of one position, whose angles it reads once.
"""

from __future__ import annotations

import numpy as np

import mltriton as triton
import mltriton.language as tl
from mltriton.errors import ArgumentError
from mltriton.kernels.arrays import (
    Array,
    as_rows,
    dtype_name,
    empty,
    is_torch,
    recorded,
    require_one_kind,
    requires_gradient,
    strides_of,
)
from mltriton.kernels.calls import again, key_of, remember
from mltriton.kernels.launch import Example, Launch, example_of, target_of
from mltriton.kernels.normalization import COMPUTED_IN, check_rows

MOST_HEADS = 16  # of one program


@triton.jit
def rope_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, batch_stride, position_stride, head_stride, cos_stride, sin_stride,
    heads, groups,
    INVERSE: tl.constexpr, FLOAT: tl.constexpr, HEADS: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A group of one position's heads [heads, 2 * HALF], turned by its angles, which the next group takes, too; program
    ids (position and group, batch). BLOCK >= HALF is a power of two.
    """
    position = (tl.program_id(0) // groups).to(tl.int64)
    batch = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) % groups * HEADS
    head = tl.arange(0, HEADS)[:, None]
    at = tl.arange(0, BLOCK)
    cos = tl.load(cos_ptr + position * cos_stride + at, mask=at < HALF).to(FLOAT)[None, :]
    sin = tl.load(sin_ptr + position * sin_stride + at, mask=at < HALF).to(FLOAT)[None, :]
    if INVERSE:
        sin = -sin
    inside = (head < heads - first) & (at < HALF)[None, :]
    x_row = x_ptr + batch * batch_stride + position * position_stride + first.to(tl.int64) * head_stride
    x_row += head.to(tl.int64) * head_stride + at[None, :]
    x = tl.load(x_row, mask=inside).to(FLOAT)
    y = tl.load(x_row + HALF, mask=inside).to(FLOAT)
    positions = tl.num_programs(0) // groups
    out_row = out_ptr + ((batch * positions + position) * heads + first) * (2 * HALF) + head * (2 * HALF) + at[None, :]
    tl.store(out_row, (x * cos - y * sin).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_row + HALF, (y * cos + x * sin).to(out_ptr.dtype.element_ty), mask=inside)


def rope(x: Array, cos: Array, sin: Array, *, inverse: bool = False, target: str | None = None) -> Array:
    """`x` [batch, positions, heads, dim] or [positions, heads, dim] with element i of each head's first half and of its
    second turned as a pair: (a cos - b sin, b cos + a sin), with `cos` and `sin` [positions, dim / 2]. `inverse` turns
    back, which is the gradient: of sum(dy * rope(x)) to x it is rope(dy, inverse=True).

    f16, bf16 and f32 are computed in f32, f64 in f64; cos and sin may have another of these dtypes than `x`. `target`
    is what it runs on ("xe:pvc", say), None where the arrays lie. Returns a contiguous array of the kind, shape and
    dtype of `x`. Raises `ArgumentError` for other dtypes, odd `dim`, and arrays that differ in kind or do not fit.
    """
    arrays = x, cos, sin
    key = key_of(rope, arrays, inverse, target)
    if (made := again(key, arrays)) is not None:
        return made[0]
    if requires_gradient(*arrays):
        return recorded("rope", {"x": x, "cos": cos, "sin": sin}, inverse=inverse, target=target)
    require_one_kind(x=x, cos=cos, sin=sin)
    for array in arrays:
        check_rows("rope", array)
    if x.ndim not in (3, 4) or x.shape[-1] % 2:
        raise ArgumentError(
            "rope: x is not heads of halves",
            expected="[positions, heads, dim] or [batch, positions, heads, dim], dim even",
            found=str(tuple(x.shape)),
        )
    wanted = (x.shape[-3], x.shape[-1] // 2)
    if tuple(cos.shape) != wanted or tuple(sin.shape) != wanted:
        raise ArgumentError(
            "rope: cos and sin do not fit x",
            expected=f"both of shape {wanted}",
            found=f"{tuple(cos.shape)} and {tuple(sin.shape)}",
        )
    out = empty(x.shape, x)
    if 0 in x.shape:
        return out
    launch = rope_launch(x, cos, sin, out, inverse).on(target_of(target, x))
    launch.run()
    remember(key, arrays, (out,), (), (launch,))
    return out


def rope_launch(x: Array, cos: Array, sin: Array, out: Array, inverse: bool = False) -> Launch:
    """The launch of `rope` into out, contiguous."""
    (cos, cos_stride), (sin, sin_stride) = as_rows(cos), as_rows(sin)
    x = x if x.ndim == 4 else x[None]
    if strides_of(x)[-1] != 1:
        x = x.contiguous() if is_torch(x) else np.ascontiguousarray(x)
    batch, positions, heads, dim = x.shape
    at_once = min(MOST_HEADS, triton.next_power_of_2(heads))
    groups = triton.cdiv(heads, at_once)
    constants = {"HEADS": at_once, "HALF": dim // 2, "BLOCK": triton.next_power_of_2(dim // 2)}
    return Launch(
        rope_kernel,
        (positions * groups, batch),
        (x, cos, sin, out, *strides_of(x)[:3], cos_stride, sin_stride, heads, groups),
        {"INVERSE": bool(inverse), "FLOAT": COMPUTED_IN[dtype_name(x)], **constants},
    )


def mltriton_verify(name: str, rng: np.random.Generator) -> Example | None:
    """A launch for `mltriton verify`: sizes that no block divides."""
    x, cos, sin = (rng.standard_normal(shape, np.float32) for shape in ((2, 3, 5, 24), (3, 12), (3, 12)))
    return example_of(name, rope_launch(x, cos, sin, np.zeros_like(x)))
