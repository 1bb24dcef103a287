"""`tile` on numpy: scratch memory, contiguous chunk accesses and micro-kernels on memory.

Level: intrinsic. Dots are computed in float64 (integers exactly) and rounded to the accumulator's type once a call.
"""

from __future__ import annotations

import sys
from typing import cast

import numpy as np

from mltriton.dialects import tile
from mltriton.executor.code import Code, Flow, FlowTable, Handler, Table
from mltriton.executor.dialects.tt_blocks import printed
from mltriton.executor.dialects.tt_dot import factor, multiply_add
from mltriton.executor.dialects.ttig import prefetch
from mltriton.executor.faults import InvalidOperation, Misaligned
from mltriton.executor.machine import Warp, scratch_offset
from mltriton.executor.values import Array, decode, encode, memory_dtype
from mltriton.ir.types import TensorType, Type, byte_width, element_type, pointee


def nest(op: tile.Nest, code: Code) -> Flow:
    """One operation after the other: that they share loops changes nothing."""
    body = code.block(op.body.block)
    return lambda warp, frame: body.run(warp, frame)


def fill(op: tile.Fill) -> Handler:
    """Where a block is stored is not told yet: it stays what it is."""
    return lambda warp, block: None


def pack(op: tile.Pack) -> Handler:
    """The block: where it lies is not told yet."""
    return lambda warp, block: block


def scratch(op: tile.Scratch) -> Handler:
    """The address of a part of the thread's scratch memory."""
    offset = scratch_offset(op)
    end = offset + op.bytes

    def call(warp: Warp) -> np.int64:
        size = warp.scratch.size if warp.scratch is not None else 0
        if warp.scratch is None or end > size:
            raise InvalidOperation(f"scratch memory [{offset}, {end}) of {size} bytes")
        return np.int64(warp.scratch.start + offset)

    return call


def load(op: tile.Load) -> Handler:
    """Consecutive elements, those that the mask allows."""
    type = cast(TensorType, op.result.type)
    element, count, dtype, align = type.element, type.shape[0], memory_dtype(type.element), op.align
    lanes = np.arange(count, dtype=np.int64) * dtype.itemsize

    def call(warp: Warp, address: np.int64, mask: Array | None = None, other: Array | None = None) -> Array:
        _require_alignment(int(address), align)
        if mask is None or mask.all():
            return decode(warp.memory.span(int(address), count, dtype, write=False).copy(), element)
        return warp.memory.load(address + lanes, element, mask, other)

    return call


def store(op: tile.Store) -> Handler:
    """Consecutive elements, those that the mask allows."""
    type = cast(TensorType, op.value.type)
    element, count, dtype, align = type.element, type.shape[0], memory_dtype(type.element), op.align
    lanes = np.arange(count, dtype=np.int64) * dtype.itemsize

    def call(warp: Warp, address: np.int64, values: Array, mask: Array | None = None) -> None:
        _require_alignment(int(address), align)
        if mask is None or mask.all():
            warp.memory.span(int(address), count, dtype, write=True)[...] = encode(values, element)
        else:
            warp.memory.store(address + lanes, values, element, mask)

    return call


def _require_alignment(address: int, align: int | None) -> None:
    if align is not None and address % align:
        raise Misaligned(f"{hex(address)} is no multiple of the {align} bytes that the operation promises")


def transpose(op: tile.Transpose) -> Handler:
    """Neighbours j of result i are neighbours i of operand j."""

    def call(warp: Warp, *rows: Array) -> tuple[Array, ...] | Array:
        count = len(rows)
        columns = tuple(np.stack(rows).reshape(count, count, -1).swapaxes(0, 1).reshape(count, -1))
        return columns if len(rows) > 1 else columns[0]

    return call


def interleave(op: tile.Interleave) -> Handler:
    """a0 b0 a1 b1 ..."""

    def call(warp: Warp, *parts: Array) -> Array:
        return np.stack(parts, axis=-1).reshape(-1)

    return call


def lane(op: tile.Lane) -> Handler:
    """One lane."""

    def call(warp: Warp, chunk: Array, index: Array) -> Array:
        if not 0 <= index < len(chunk):
            raise InvalidOperation(f"there is no lane {index} in a chunk of {len(chunk)}")
        return chunk[index]

    return call


def dot(op: tile.Dot) -> Handler:
    """A micro-kernel: the operands are read through strided views of memory."""
    m, n, g = op.m, op.n, op.group
    width = op.panel or n
    panels, distance = n // width, op.panel_stride
    a_type, b_type, c_type = (pointee(value.type) for value in (op.a, op.b, op.c))
    is_column, a_unsigned, b_unsigned = op.a_layout == "column", op.a_unsigned, op.b_unsigned
    if n % width:
        raise InvalidOperation(f"{n} columns are not whole panels of {width}")
    if is_column and g != 1:
        raise InvalidOperation("a column-major left operand cannot be in groups")

    def call(
        warp: Warp,
        a: Array,
        a_stride: Array,
        b: Array,
        b_stride: Array,
        c: Array,
        c_stride: Array,
        k: Array,
        more: Array,
    ) -> None:
        steps = (1, int(a_stride), 1) if is_column else (int(a_stride), g, 1)
        left = read(warp, int(a), (m, int(k), g), steps, a_type)
        right = read(warp, int(b), (int(k), panels, width, g), (int(b_stride), distance, g, 1), b_type)
        old = read(warp, int(c), (m, n), (int(c_stride), 1), c_type) if more else None
        rows = factor(left.reshape(m, -1), a_unsigned)
        columns = factor(right.transpose(0, 3, 1, 2).reshape(-1, n), b_unsigned)
        product = encode(multiply_add(rows, columns, old, c_type), c_type)
        warp.memory.window(int(c), (m, n), (int(c_stride), 1), memory_dtype(c_type), write=True)[...] = product

    return call


def indirect_dot(op: tile.IndirectDot) -> Handler:
    """A dot whose right operand is read line by line."""
    m, n, k = op.m, op.n, op.k
    count, length = (n, k) if op.b_layout == "column" else (k, n)
    a_type, b_type, c_type = pointee(op.a.type), op.element, pointee(op.c.type)

    def call(
        warp: Warp, a: Array, a_stride: Array, a_batch: Array, lines: Array,
        c: Array, c_stride: Array, c_batch: Array, more: Array,
    ) -> None:  # fmt: skip
        pointers = warp.memory.span(int(lines), (count + op.ahead) * op.batch, np.dtype(np.int64), write=False)
        for number in range(op.batch):
            addresses = pointers[number : count * op.batch : op.batch]
            b = np.stack([read(warp, int(address), (length,), (1,), b_type) for address in addresses])
            a_here = int(a) + number * int(a_batch) * byte_width(a_type)
            c_here = int(c) + number * int(c_batch) * byte_width(c_type)
            left = read(warp, a_here, (m, k), (int(a_stride), 1), a_type)
            old = read(warp, c_here, (m, n), (int(c_stride), 1), c_type) if more else None
            product = encode(multiply_add(left, b.T if op.b_layout == "column" else b, old, c_type), c_type)
            warp.memory.window(c_here, (m, n), (int(c_stride), 1), memory_dtype(c_type), write=True)[...] = product

    return call


def read(warp: Warp, address: int, shape: tuple[int, ...], strides: tuple[int, ...], type: Type) -> Array:
    """A strided block of memory as values."""
    return decode(warp.memory.window(address, shape, strides, memory_dtype(type), write=False).copy(), type)


def print_elements(op: tile.Print) -> Handler:
    """One line for each lane, with its coordinate in the block."""
    element = element_type(op.value.type)

    def call(warp: Warp, value: Array, *coordinates: Array) -> None:
        stream = warp.options.output or sys.stdout
        *row, first = map(int, coordinates)
        for lane, number in enumerate(np.asarray(value).reshape(-1)):
            text = printed(number, element, op.hex)
            coordinate = ", ".join(
                f"{at:{width or 1}}" for at, width in zip((*row, first + lane), op.widths, strict=True)
            )
            stream.write(f"pid {warp.program} idx ({coordinate}){op.prefix}{text}\n")

    return call


TABLE: Table = {
    tile.Fill: fill,
    tile.Pack: pack,
    tile.Scratch: scratch,
    tile.Load: load,
    tile.Store: store,
    tile.Transpose: transpose,
    tile.Interleave: interleave,
    tile.Lane: lane,
    tile.Dot: dot,
    tile.IndirectDot: indirect_dot,
    tile.Prefetch: prefetch,
    tile.Print: print_elements,
}
FLOW: FlowTable = {tile.Nest: nest}
