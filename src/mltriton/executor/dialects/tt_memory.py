"""`tt` operations on global memory: loads and stores through pointers, block pointers and descriptors; atomics.

Level: tt to intrinsic. A masked-off element is never touched and loads as `other`, or 0. Atomics of one block run
element by element, in row-major order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from mltriton.dialects import tt
from mltriton.executor.blocks import TensorView
from mltriton.executor.code import Handler, Table
from mltriton.executor.dialects.arith import unsigned
from mltriton.executor.machine import Warp
from mltriton.executor.segments import Memory
from mltriton.executor.values import Array, choose, encode, is_block, rounder, scalar
from mltriton.ir.operation import Value
from mltriton.ir.types import (
    FloatType,
    PointerType,
    TensorDescType,
    TensorType,
    Type,
    byte_width,
    pointee,
)


def block_of(pointer: Value) -> TensorType | None:
    """The block that a block pointer points to; None for pointers to elements."""
    type = pointer.type
    return type.pointee if isinstance(type, PointerType) and isinstance(type.pointee, TensorType) else None


def load(op: tt.Load) -> Handler:
    """Through pointers to elements, or through a block pointer."""
    block = block_of(op.ptr)
    if block is not None:
        padding = np.nan if op.padding == "pad_nan" else None
        dimensions = op.boundary_check
        return lambda warp, view: load_block(warp, view, block.shape, block.element, dimensions, padding)
    element, has_mask = pointee(op.ptr.type), op.mask is not None

    def call(warp: Warp, pointers: Array, *rest: Array) -> Array:
        return warp.memory.load(pointers, element, rest[0] if has_mask else None, rest[1] if len(rest) > 1 else None)

    return call


def store(op: tt.Store) -> Handler:
    """Through pointers to elements, or through a block pointer."""
    block = block_of(op.ptr)
    if block is not None:
        dimensions = op.boundary_check
        return lambda warp, view, values: store_block(warp, view, values, block.element, dimensions)
    element = pointee(op.ptr.type)
    return lambda warp, pointers, values, mask=None: warp.memory.store(pointers, values, element, mask)


def load_block(
    warp: Warp,
    view: TensorView,
    shape: tuple[int, ...],
    element: Type,
    dimensions: tuple[int, ...],
    padding: float | None,
) -> Array:
    """A block of a tensor; outside the tensor, along the checked dimensions, the padding (None: 0)."""
    addresses, mask = view.addresses(shape, byte_width(element)), view.inside(shape, dimensions)
    is_nan = padding is not None and isinstance(element, FloatType)
    return warp.memory.load(addresses, element, mask, scalar(padding, element) if is_nan else None)


def store_block(warp: Warp, view: TensorView, values: Array, element: Type, dimensions: tuple[int, ...]) -> None:
    """A block of a tensor; what lies outside along the checked dimensions is dropped."""
    addresses = view.addresses(values.shape, byte_width(element))
    warp.memory.store(addresses, values, element, view.inside(values.shape, dimensions))


def make_tensor_ptr(op: tt.MakeTensorPtr) -> Handler:
    """A block pointer."""
    rank = len(op.shape)

    def call(warp: Warp, base: Array, *numbers: Array) -> TensorView:
        shape, strides, offsets = (tuple(map(int, numbers[i * rank : (i + 1) * rank])) for i in range(3))
        return TensorView(int(base), shape, strides, offsets)

    return call


def make_tensor_desc(op: tt.MakeTensorDesc) -> Handler:
    """A descriptor."""
    rank, pads_nan = len(op.shape), op.padding == "pad_nan"

    def call(warp: Warp, base: Array, *numbers: Array) -> TensorView:
        shape, strides = (tuple(map(int, numbers[i * rank : (i + 1) * rank])) for i in range(2))
        return TensorView(int(base), shape, strides, (0,) * rank, pads_nan)

    return call


def advance(op: tt.Advance) -> Handler:
    """A block pointer moved."""

    def call(warp: Warp, view: TensorView, *offsets: Array) -> TensorView:
        return view.moved(offsets)

    return call


def descriptor_load(op: tt.DescriptorLoad) -> Handler:
    """A block of the tensor; a result of lower rank drops dimensions of size 1."""
    result = cast(TensorType, op.result.type)
    shape, element = _described(op.desc, result), result.element
    dimensions = tuple(range(len(shape)))

    def call(warp: Warp, view: TensorView, *indices: Array) -> Array:
        padding = np.nan if view.pads_nan else None
        return load_block(warp, view.moved(indices), shape, element, dimensions, padding).reshape(result.shape)

    return call


def descriptor_store(op: tt.DescriptorStore) -> Handler:
    """A block of the tensor; a value of lower rank lacks dimensions of size 1."""
    value = cast(TensorType, op.value.type)
    shape, element = _described(op.desc, value), value.element
    dimensions = tuple(range(len(shape)))

    def call(warp: Warp, view: TensorView, values: Array, *indices: Array) -> None:
        store_block(warp, view.moved(indices), values.reshape(shape), element, dimensions)

    return call


def descriptor_reduce(op: tt.DescriptorReduce) -> Handler:
    """Each element inside the tensor is combined with the block's."""
    value = cast(TensorType, op.value.type)
    block = TensorType(_described(op.desc, value), value.element)
    update = updates_of(block, op.kind)

    def call(warp: Warp, view: TensorView, values: Array, *indices: Array) -> None:
        update(warp, view.moved(indices), values.reshape(block.shape))

    return call


def updates_of(block: TensorType, kind: str) -> Callable[[Warp, TensorView, Array], None]:
    """What combines the elements of a block, which stands where the view does, with others, inside the tensor."""
    shape, element, dimensions = block.shape, block.element, tuple(range(block.rank))
    update = _rounded(UPDATES[kind], element)

    def call(warp: Warp, view: TensorView, values: Array) -> None:
        places = view.addresses(shape, byte_width(element))
        in_order(warp, element, update, places, view.inside(shape, dimensions), values)

    return call


def _described(desc: Value, block: TensorType) -> tuple[int, ...]:
    """The block's shape with the descriptor's rank.

    Below `ttg` a load may take less than the descriptor's whole block.
    """
    whole = cast(TensorDescType, desc.type).block.shape
    return block.shape if len(whole) == block.rank else whole


Update = Callable[[Array, Array], Array]


def _exchange(old: Array, new: Array) -> Array:
    return new


def _unsigned(function: Update) -> Update:
    return lambda old, new: function(unsigned(old), unsigned(new)).view(old.dtype)


UPDATES: dict[str, Update] = {
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "add": lambda old, new: old + new,
    "fadd": lambda old, new: old + new,
    "max": np.maximum,
    "min": np.minimum,
    "umax": _unsigned(np.maximum),
    "umin": _unsigned(np.minimum),
    "exch": _exchange,
}


def atomic_rmw(op: tt.AtomicRMW) -> Handler:
    """Read, combine, write; gives the old values, 0 where masked off."""
    element, update = pointee(op.ptr.type), UPDATES[op.kind]
    combine = _rounded(update, element)

    def call(warp: Warp, pointers: Array, values: Array, mask: Array | None = None) -> Array:
        return in_order(warp, element, combine, pointers, mask, values)

    return call


def atomic_cas(op: tt.AtomicCAS) -> Handler:
    """Write where the old bits equal `cmp`; gives the old values."""
    element = pointee(op.ptr.type)

    def update(old: Array, expected: Array, new: Array) -> Array:
        return choose(encode(old, element) == encode(expected, element), new, old)

    def call(warp: Warp, pointers: Array, expected: Array, new: Array) -> Array:
        return in_order(warp, element, update, pointers, None, expected, new)

    return call


def _rounded(update: Update, element: Type) -> Update:
    if not isinstance(element, FloatType):
        return update
    to_type = rounder(element)

    def call(old: Array, new: Array) -> Array:
        return to_type(update(old, new))

    return call


def in_order(
    warp: Warp, element: Type, update: Callable[..., Array], pointers: Array, mask: Array | None, *values: Array
) -> Array:
    """Replace each element by `update(old, *values)` as if one after the other; gives the old values."""
    with warp.memory.atomically():
        return _in_order(warp.memory, element, update, pointers, mask, *values)


def _in_order(
    memory: Memory, element: Type, update: Callable[..., Array], pointers: Array, mask: Array | None, *values: Array
) -> Array:
    if not is_block(pointers) or len(np.unique(pointers)) == pointers.size:
        old = memory.load(pointers, element, mask)
        memory.store(pointers, update(old, *values), element, mask)
        return old
    # Some elements meet at one address: the later ones must see what the earlier ones wrote.
    old = np.zeros(pointers.shape, values[0].dtype)
    active = np.ones(pointers.shape, np.bool_) if mask is None else np.broadcast_to(mask, pointers.shape)
    for index in map(tuple, np.argwhere(active)):
        old[index] = memory.load(pointers[index], element)
        memory.store(pointers[index], update(old[index], *[value[index] for value in values]), element)
    return old


TABLE: Table = {
    tt.Load: load,
    tt.Store: store,
    tt.MakeTensorPtr: make_tensor_ptr,
    tt.Advance: advance,
    tt.MakeTensorDesc: make_tensor_desc,
    tt.DescriptorLoad: descriptor_load,
    tt.DescriptorStore: descriptor_store,
    tt.DescriptorReduce: descriptor_reduce,
    tt.AtomicRMW: atomic_rmw,
    tt.AtomicCAS: atomic_cas,
}
