"""`ttig` on numpy: pieces of a warp's values, numbered down the first dimension first (column-major).

Level: ttg to intrinsic. A prefetch does nothing: it may name any address. A barrier in two halves stops warps at the
second.
"""

from __future__ import annotations

from itertools import product
from typing import cast

import numpy as np

from mltriton.dialects import ttig
from mltriton.executor.code import STOP, Handler, Stop, Table
from mltriton.executor.faults import InvalidOperation
from mltriton.executor.values import Array
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType

Slices = tuple[slice, ...]


def pieces(whole: tuple[int, ...], piece: tuple[int, ...]) -> list[Slices]:
    """Where each piece lies in the whole, in column-major order."""
    if len(whole) != len(piece) or any(size % part for size, part in zip(whole, piece, strict=True)):
        raise InvalidOperation(f"a block of {whole} has no pieces of {piece}")
    counts = [size // part for size, part in zip(whole, piece, strict=True)]
    # product varies its last factor fastest, so the dimensions go in backwards and come out again.
    positions = (index[::-1] for index in product(*(range(count) for count in reversed(counts))))
    return [tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, piece, strict=True)) for index in positions]


def extract(op: ttig.Extract) -> Handler:
    """Piece number `index`."""
    whole, piece = cast(TensorType, op.source.type).shape, cast(TensorType, op.result.type).shape
    windows = pieces(whole, piece)
    if not 0 <= op.index < len(windows):
        raise InvalidOperation(f"there is no piece {op.index} of {piece} in a block of {whole}")
    window = windows[op.index]
    return lambda warp, values: values[window]


def glue(op: ttig.Glue) -> Handler:
    """Equal pieces put together."""
    whole, piece = cast(TensorType, op.result.type).shape, cast(TensorType, op.pieces[0].type).shape
    windows = pieces(whole, piece)

    def call(warp: object, *parts: Array) -> Array:
        made = np.empty(whole, parts[0].dtype)
        for window, part in zip(windows, parts, strict=True):
            made[window] = part
        return made

    return call


def prefetch(op: Operation) -> Handler:
    """Nothing that a program can see."""

    def call(warp: object, *operands: Array) -> None:
        return None

    return call


def wait(op: Operation) -> Handler:
    """Stop until all warps have come here: later than they must, for what arrives never comes back."""

    def call(warp: object) -> Stop:
        return STOP

    return call


TABLE: Table = {
    ttig.Extract: extract,
    ttig.Glue: glue,
    ttig.Prefetch: prefetch,
    ttig.BarrierArrive: prefetch,
    ttig.BarrierWait: wait,
}
