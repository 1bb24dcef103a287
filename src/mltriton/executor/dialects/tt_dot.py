"""`tt.dot`, reductions and scans on numpy.

Level: tt to intrinsic. Dots of floats are computed in float64 and rounded to the accumulator's type once; integers
exactly, wrapping. A combine region runs on whole slices of the block: halves of the axis at a time for a reduction
(any order is allowed), one step of the axis at a time for a scan; a region with control flow runs element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mltriton.dialects import tt
from mltriton.executor.code import Code, FlowTable, Frame, Handler, Run, Table
from mltriton.executor.dialects.ttg import access
from mltriton.executor.faults import InvalidOperation
from mltriton.executor.machine import Warp
from mltriton.executor.shared import SharedView
from mltriton.executor.values import Array, rounder, value_dtype
from mltriton.ir.operation import Block
from mltriton.ir.types import FloatType, Type, element_type

Combine = Callable[[Sequence[Array], Sequence[Array]], list[Array]]


def multiply_add(a: Array, b: Array, c: Array | None, type: Type) -> Array:
    """c + a b in `type` (c is 0 when None); leading dimensions are batches."""
    if isinstance(type, FloatType):
        total = a.astype(np.float64) @ b.astype(np.float64)
        return rounder(type)(total if c is None else total + c)
    product = _integer_product(a, b)
    return (product if c is None else product + c).astype(value_dtype(type))


def _integer_product(a: Array, b: Array) -> Array:
    """The product modulo 2^64.

    Through float64 where that is exact, since numpy multiplies integer matrices without BLAS.
    """
    if a.dtype.itemsize == b.dtype.itemsize == 1 and a.shape[-1] < 1 << 38:
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return a.astype(np.int64) @ b.astype(np.int64)


def factor(values: Array, unsigned: bool) -> Array:
    """An operand of a product: bytes that are read as unsigned, or values as they are."""
    return values.view(np.uint8) if unsigned else values


def dot(op: tt.Dot) -> Handler:
    """c + a b."""
    type, a_unsigned, b_unsigned = element_type(op.result.type), op.a_unsigned, op.b_unsigned

    def call(warp: Warp, left: Array | SharedView, right: Array | SharedView, c: Array) -> Array:
        a, b = (v.load(access(warp, op)) if isinstance(v, SharedView) else v for v in (left, right))
        if a.shape[-1] != b.shape[-2]:
            raise InvalidOperation(f"the inner sizes of a dot differ: {a.shape} and {b.shape}")
        return multiply_add(factor(a, a_unsigned), factor(b, b_unsigned), c, type)

    return call


def combiner(block: Block, code: Code, warp: Warp, frame: Frame) -> Combine:
    """The combine region as a function of two lists of equally shaped slices."""
    ready = code.block(block)
    whole = not any(type(op) in code.flow for op in block.ops)

    def on_slices(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        results = ready.finish(warp, frame, [*left, *right])
        pairs = zip(results, left, strict=True)
        return [result if result.shape == old.shape else np.broadcast_to(result, old.shape) for result, old in pairs]

    def on_elements(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        results = [np.empty_like(old) for old in left]
        for index in np.ndindex(left[0].shape):
            values = ready.finish(warp, frame, [part[index] for part in (*left, *right)])
            for result, value in zip(results, values, strict=True):
                result[index] = value
        return results

    return on_slices if whole else on_elements


def reduce(op: tt.Reduce, code: Code) -> Callable[[Warp, Frame], Run]:
    """Combine the first half of the axis with the second until one slice is left."""
    axis, block = op.axis, op.combine.block

    def run(warp: Warp, frame: Frame) -> Run:
        combine = combiner(block, code, warp, frame)
        return reduced([np.moveaxis(frame[name], axis, 0) for name in op.sources], combine)
        yield op  # never reached: makes this a generator, as all flow is

    return run


def reduced(parts: list[Array], combine: Combine) -> list[Array]:
    """Each of `parts` combined along its first dimension."""
    while (length := len(parts[0])) > 1:
        half = length // 2
        rest = [part[2 * half :] for part in parts]
        halves = combine([part[:half] for part in parts], [part[half : 2 * half] for part in parts])
        parts = [np.concatenate([a, b]) if len(b) else a for a, b in zip(halves, rest, strict=True)]
    return [part[0] for part in parts]


def scan(op: tt.Scan, code: Code) -> Callable[[Warp, Frame], Run]:
    """Combine each element with what came before it along the axis."""
    axis, block, reverse = op.axis, op.combine.block, op.reverse

    def run(warp: Warp, frame: Frame) -> Run:
        combine = combiner(block, code, warp, frame)
        parts = scanned([np.moveaxis(frame[name], axis, 0) for name in op.sources], combine, reverse=reverse)
        return [np.moveaxis(part, 0, axis) for part in parts]
        yield op  # never reached, as above

    return run


def scanned(parts: list[Array], combine: Combine, *, reverse: bool) -> list[Array]:
    """The running combination of each of `parts` along its first dimension."""
    parts = [part[::-1] if reverse else part for part in parts]
    running = [part[:1] for part in parts]
    slices = [running]
    for i in range(1, len(parts[0])):
        running = combine(running, [part[i : i + 1] for part in parts])
        slices.append(running)
    whole = [np.concatenate([entry[s] for entry in slices]) for s in range(len(parts))]
    return [part[::-1] if reverse else part for part in whole]


TABLE: Table = {tt.Dot: dot}
FLOW: FlowTable = {tt.Reduce: reduce, tt.Scan: scan}
