"""`tt` operations that make, reshape and compute blocks, print and check.

Level: tt to intrinsic. Blocks are never changed in place, so that reshapes and broadcasts may share memory with their
operands.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

from mltriton.dialects import tt
from mltriton.errors import DeviceAssertionError
from mltriton.executor.code import Handler, Maker, Table
from mltriton.executor.dialects.arith import Function, bitcast, floats, same, unsigned, without_warp
from mltriton.executor.dialects.math import exact
from mltriton.executor.dialects.python import call_python
from mltriton.executor.faults import BrokenAssumption, location_of
from mltriton.executor.machine import Warp
from mltriton.executor.values import Array, is_wide, round_to_zero, rounder, value_dtype
from mltriton.ir.operation import Operation
from mltriton.ir.types import FloatType, IntegerType, TensorType, byte_width, element_type, pointee

AXES = ("x", "y", "z")


def shape_of_result(op: Operation) -> tuple[int, ...]:
    """The shape of the block that the operation gives."""
    return cast(TensorType, op.results[0].type).shape


def program_id(op: tt.GetProgramId) -> Handler:
    """A coordinate of the program."""
    axis = AXES.index(op.axis)

    def call(warp: Warp) -> np.int32:
        return np.int32(warp.program[axis])

    return call


def num_programs(op: tt.GetNumPrograms) -> Handler:
    """A size of the grid."""
    axis = AXES.index(op.axis)

    def call(warp: Warp) -> np.int32:
        return np.int32(warp.instance.grid[axis])

    return call


def make_range(op: tt.MakeRange) -> Handler:
    """start, ..., end - 1."""
    values = np.arange(op.start, op.end, dtype=value_dtype(element_type(op.result.type)))

    def call(warp: Warp) -> Array:
        return values

    return call


def splat(op: tt.Splat) -> Handler:
    """A scalar as every element."""
    shape = shape_of_result(op)
    return lambda warp, value: np.full(shape, value)


def expand_dims(op: tt.ExpandDims) -> Handler:
    """A dimension of size 1."""
    axis = op.axis
    return lambda warp, values: np.expand_dims(values, axis)


def broadcast(op: tt.Broadcast) -> Handler:
    """Dimensions of size 1 repeated."""
    shape = shape_of_result(op)
    return lambda warp, values: np.broadcast_to(values, shape)


def reshape(op: tt.Reshape) -> Handler:
    """Row-major order in another shape."""
    shape = shape_of_result(op)
    return lambda warp, values: values.reshape(shape)


def trans(op: tt.Trans) -> Handler:
    """Dimensions permuted."""
    order = op.order
    return lambda warp, values: values.transpose(order)


def gather(op: tt.Gather) -> Handler:
    """Elements at indices along an axis."""
    axis = op.axis
    return lambda warp, source, indices: np.take_along_axis(source, indices, axis)


def addptr(op: tt.AddPtr) -> Handler:
    """Pointers moved by elements; the offset is widened before it is scaled."""
    width = np.int64(byte_width(pointee(op.ptr.type)))

    def blocks(warp: Warp, pointers: Array, offsets: Array) -> Array:
        return pointers + offsets.astype(np.int64) * width

    def scalars(warp: Warp, pointer: np.int64, offset: Array) -> np.int64:
        return pointer + np.int64(offset) * width

    return blocks if isinstance(op.ptr.type, TensorType) else scalars


def mulhi(op: tt.MulhiUI) -> Handler:
    """The upper half of the unsigned product."""
    dtype = value_dtype(element_type(op.result.type))
    half = np.uint64(dtype.itemsize * 8)

    def narrow(a: Array, b: Array) -> Array:
        return ((unsigned(a).astype(np.uint64) * unsigned(b).astype(np.uint64)) >> half).astype(dtype)

    return without_warp(_mulhi64 if dtype.itemsize == 8 else narrow)


def _mulhi64(a: Array, b: Array) -> Array:
    low_half, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b = unsigned(a), unsigned(b)
    (a_low, a_high), (b_low, b_high) = ((x & low_half, x >> half) for x in (a, b))
    middle = a_high * b_low + ((a_low * b_low) >> half)
    crossed = a_low * b_high + (middle & low_half)
    return (a_high * b_high + (middle >> half) + (crossed >> half)).view(np.int64)


def clamp(op: tt.ClampF) -> Handler:
    """min(max(x, low), high), with or without NaN."""
    maximum, minimum = (np.maximum, np.minimum) if op.propagate_nan else (np.fmax, np.fmin)
    return lambda warp, x, low, high: minimum(maximum(x, low), high)


def fp_to_fp(op: tt.FpToFp) -> Handler:
    """Float to float, rounding to nearest even or to zero."""
    type = element_type(op.result.type)
    if op.rounding == "rtz":
        return lambda warp, values: round_to_zero(values, type)
    return without_warp(rounder(type))


def print_values(op: tt.Print) -> Handler:
    """One line for each element, with the program's coordinates and the element's index."""
    types = [element_type(value.type) for value in op.arguments]

    def call(warp: Warp, *values: Array) -> None:
        stream = warp.options.output or sys.stdout
        place = f"pid {warp.program}"
        if not values:
            stream.write(f"{place}{op.prefix}\n")
        for number, (value, type) in enumerate(zip(values, types, strict=True)):
            operand = f"(operand {number}) " if len(values) > 1 else ""
            widths = [tt.index_width(size) for size in np.shape(value)]
            for index, element in np.ndenumerate(np.asarray(value)):
                where = ", ".join(f"{at:{width or 1}}" for at, width in zip(index, widths, strict=True))
                stream.write(f"{place} idx ({where}){op.prefix}{operand}{printed(element, type, op.hex)}\n")

    return call


def printed(element: Any, type: Any, as_hex: bool) -> str:
    """An element as `tt.print` shows it."""
    if as_hex and not isinstance(type, FloatType):
        width = type.width if isinstance(type, IntegerType) else 64
        return f"0x{int(element) & ((1 << width) - 1):0{width // 4}x}"
    return f"{float(element):f}" if isinstance(type, FloatType) else str(int(element))


def require(op: tt.Assert) -> Handler:
    """Stop with the message where an element is false."""
    message = op.message

    def call(warp: Warp, condition: Array, first: int = 0) -> None:
        if not np.all(condition):
            where = [tuple(int(i) for i in index) for index in np.argwhere(~np.asarray(condition))[:1]]
            place = f", element {where[0]}" if where and where[0] else ""
            raise DeviceAssertionError(f"{message} (program {warp.program}{place})", location=location_of(op.loc))

    return call


def assume(op: tt.Assume) -> Handler:
    """The condition must hold."""

    def call(warp: Warp, condition: Array) -> None:
        if warp.options.assumptions and not np.all(condition):
            raise BrokenAssumption("an assumption is false")

    return call


def split(op: tt.Split) -> Handler:
    """The halves of the last dimension."""
    return lambda warp, values: (values[..., 0], values[..., 1])


def plain(function: Function) -> Maker:
    """An operation that needs nothing but its operands."""

    def make(op: Operation) -> Handler:
        return without_warp(function)

    return make


def join(a: Array, b: Array) -> Array:
    """A new last dimension of size 2."""
    return np.stack([a, b], axis=-1)


def cat(a: Array, b: Array) -> Array:
    """One after the other."""
    return np.concatenate([a, b])


def unsplat(values: Array) -> Array:
    """The only element."""
    return values.reshape(-1)[0]


def precise(function: Function) -> Maker:
    """A correctly rounded float function: numpy's own for its types, through float64 for narrower ones."""

    def make(op: Operation) -> Handler:
        of_type = floats if is_wide(element_type(op.results[0].type)) else exact
        return of_type(function)(op)

    return make


TABLE: Table = {
    tt.GetProgramId: program_id,
    tt.GetNumPrograms: num_programs,
    tt.MakeRange: make_range,
    tt.Splat: splat,
    tt.Unsplat: plain(unsplat),
    tt.ExpandDims: expand_dims,
    tt.Broadcast: broadcast,
    tt.Reshape: reshape,
    tt.Trans: trans,
    tt.Join: plain(join),
    tt.Split: split,
    tt.Cat: plain(cat),
    tt.Gather: gather,
    tt.AddPtr: addptr,
    tt.Bitcast: bitcast,
    tt.IntToPtr: plain(same),
    tt.PtrToInt: plain(same),
    tt.FpToFp: fp_to_fp,
    tt.MulhiUI: mulhi,
    tt.PreciseSqrt: precise(np.sqrt),
    tt.PreciseDivF: precise(np.divide),
    tt.ClampF: clamp,
    tt.Print: print_values,
    tt.Python: call_python,
    tt.Assert: require,
    tt.Assume: assume,
}
