"""A matrix product as the user asks for it: checked, its operands as [batch, rows, columns], its result allocated.

Level: user. Everything that computes C = activation(prologue(A) B + bias + add) begins here, so that all take the same
arguments and give the same errors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mltriton.errors import ArgumentError
from mltriton.frontend.function import LanguageFunction
from mltriton.kernels.arrays import (
    Array,
    dtype_name,
    empty,
    expand,
    recorded,
    require_arrays,
    require_one_kind,
    strides_of,
)
from mltriton.kernels.epilogues import Epilogue, Function, function_of, is_integer, make_epilogue
from mltriton.kernels.gemm_tiles import ACCUMULATORS
from mltriton.records import NamedTuple

# Dtypes of which an operand may have one and the other another.
MIXED = ({"int8", "uint8"}, {"float8_e4m3fn", "float8_e5m2"})


class Product(NamedTuple):
    """`c`, [..., M, N], is what the user gets; `a`, `b` and `out` are [batch, rows, columns], `out` a view of `c`.
    Where all batches of `a` are multiplied by one matrix they are one, so that `b` is read once.
    """

    a: Array
    b: Array
    c: Array
    epilogue: Epilogue
    prologue: LanguageFunction | None

    @property
    def out(self) -> Array:
        """`c` as [batch, M, N]."""
        return self.c.reshape(*self.a.shape[:2], self.c.shape[-1])

    @property
    def operands(self) -> tuple[Array, Array, Array, Epilogue]:
        """What the launches take: a, b, out, epilogue."""
        return self.a, self.b, self.out, self.epilogue

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute."""
        return 0 in self.c.shape

    @property
    def is_plain(self) -> bool:
        """Whether this is C = A B and nothing else."""
        return self.epilogue.is_trivial and self.prologue is None


def product_of(
    a: Array,
    b: Array,
    *,
    bias: Array | None = None,
    add: Array | None = None,
    activation: Function | None = None,
    prologue: Function | None = None,
    out_dtype: Any = None,
) -> Product:
    """The product of a [..., M, K] and b [..., K, N]; batch dimensions broadcast. Raises `ArgumentError` for arrays
    that do not fit.
    """
    _require_factors(a, b)
    if dtype_name(a) not in ACCUMULATORS:
        raise ArgumentError("matmul: unsupported dtype", expected=", ".join(ACCUMULATORS), found=dtype_name(a))
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-2]:
        raise ArgumentError(
            "matmul: the shapes do not fit",
            expected="[..., M, K] and [..., K, N]",
            found=f"{tuple(a.shape)} and {tuple(b.shape)}",
        )
    batch = _broadcast(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    shape = (*batch, a.shape[-2], b.shape[-1])
    before = function_of(prologue, "prologue")
    if before is not None and is_integer(dtype_name(a)):
        raise ArgumentError("matmul: a prologue is for floats", expected="a float dtype of a", found=dtype_name(a))
    epilogue = make_epilogue(a, shape, bias, add, activation, out_dtype)
    c = empty(shape, a, epilogue.out_dtype)
    if math.prod(b.shape[:-2]) == 1 and epilogue.add is None and (rows := _as_rows(a)) is not None:
        return Product(rows, b.reshape(1, *b.shape[-2:]), c, epilogue, before)
    return Product(_as_batches(a, batch), _as_batches(b, batch), c, epilogue, before)


def _as_rows(a: Array) -> Array | None:
    """`a` as one matrix [1, rows, columns], its batches below each other; None where they do not lie so."""
    distances, size = strides_of(a)[:-1], a.shape[:-1]
    steps = zip(distances, distances[1:], size[1:], strict=False)
    if a.ndim == 2 or 0 in a.shape or any(outer != inner * count for outer, inner, count in steps):
        return None
    return a.reshape(1, -1, a.shape[-1])


def recorded_product(
    function: str, a: Array, b: Array, *, bias: Array | None = None, add: Array | None = None, **options: Any
) -> Array:
    """The product that the function of that name computes, for torch to differentiate."""
    return recorded(function, {"a": a, "b": b, "bias": bias, "add": add}, **options)


def _require_factors(a: Array, b: Array) -> None:
    """Arrays of one kind and dtype, or bytes of either sign, or floats of 8 bits of either kind."""
    mixed = {dtype_name(x) for x in (a, b) if hasattr(x, "dtype")} in MIXED
    (require_one_kind if mixed else require_arrays)(a=a, b=b)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ArgumentError(
            "matmul: the batch dimensions do not broadcast", expected="equal sizes, or 1", found=f"{a} and {b}"
        ) from None


def _as_batches(x: Array, batch: tuple[int, ...]) -> Array:
    """`x` as [batches, rows, columns]; copied only where batch dimensions cannot be merged."""
    count = math.prod(batch)
    return expand(x, (*batch, *x.shape[-2:])).reshape(count, *x.shape[-2:])
