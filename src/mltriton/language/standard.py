"""Functions made of other functions of the language.

Takes what those take. They run on values while a kernel is compiled, as every builtin does, so that an error points
at the user's line; nothing here creates an operation itself.
"""

from __future__ import annotations

from typing import Any

from mltriton import language
from mltriton.errors import TypeMismatchError
from mltriton.language import types
from mltriton.language.arithmetic import add, bitwise_and, floordiv, minimum, mod, mul, negative, sub, truediv
from mltriton.language.building import builtin
from mltriton.language.comparison import equal
from mltriton.language.creation import arange
from mltriton.language.math import exp, fdiv
from mltriton.language.reductions import max, sum
from mltriton.language.semantic import constexpr_int, to_tensor, wrapped_axis
from mltriton.language.shapes import broadcast_to, expand_dims
from mltriton.language.tensor import tensor

__all__ = ["histogram", "sigmoid", "softmax", "swizzle2d"]


@builtin
def sigmoid(x: object) -> tensor:
    """1 / (1 + exp(-x)) of fp32 or fp64."""
    return truediv(1, add(1, exp(negative(x))))


@builtin
def softmax(x: object, dim: int | None = None, keep_dims: object = None, ieee_rounding: bool = False) -> tensor:
    """exp(x - max) / sum along `dim` (default 0, as upstream), in the shape of `x`; `keep_dims` changes nothing."""
    value = to_tensor(x)
    axis = wrapped_axis(0 if dim is None else dim, len(value.type.shape), "tl.softmax")
    numerator = exp(sub(value, max(value, axis, keep_dims=True)))
    return fdiv(numerator, sum(numerator, axis, keep_dims=True), ieee_rounding)


@builtin
def swizzle2d(i: object, j: object, size_i: object, size_j: object, size_g: object) -> tuple[tensor, tensor]:
    """Row-major indices of a `size_i` x `size_j` grid turned into column-major order within groups of `size_g`
    rows; gives (row, column).
    """
    linear = add(mul(i, size_j), j)
    group_size = mul(size_g, size_j)
    first_row = mul(floordiv(linear, group_size), size_g)
    rows = minimum(sub(size_i, first_row), size_g)
    inside = mod(linear, group_size)
    return add(first_row, mod(inside, rows)), floordiv(inside, rows)


@builtin
def _log2(i: object) -> int:  # pyright: ignore[reportUnusedFunction]
    """The exponent of a power of two. Upstream's name, private, that kernels call which sort by themselves."""
    return constexpr_int(i, "the argument of tl.standard._log2").bit_length() - 1


@builtin
def histogram(input: object, num_bins: int, mask: object = None) -> tensor:
    """How often each of 0 to `num_bins` - 1 occurs in a 1D block of integers of any width, or of booleans (where `mask`
    is true), as int32; other values count nowhere.
    """
    value = to_tensor(input)
    if len(value.type.shape) != 1 or not value.dtype.is_int():
        raise TypeMismatchError(
            "tl.histogram needs a 1D block of integers", expected="a 1D block of integers", found=value.type.name
        )
    if value.dtype.bits < 32:  # Bins beyond the largest value would wrap.
        value = value.to(types.int32)
    bins = arange(0, num_bins)
    hits = equal(expand_dims(value, 1), expand_dims(bins.to(value.dtype), 0))
    if mask is not None:
        hits = bitwise_and(hits, expand_dims(broadcast_to(mask, value.type.shape), 1))
    return sum(hits.to(types.int32), 0)


def __getattr__(name: str) -> Any:
    """Upstream's module has reductions, scans and sorting besides: the names of `mltriton.language`."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(language, name)
