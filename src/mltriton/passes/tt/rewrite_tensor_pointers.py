"""rewrite-tensor-pointers: block pointers and descriptors become tensors of pointers with masks.

Level: tt. Takes any program and changes it in place; block pointers are normalised first. For targets that have no
block loads, and to hold both forms of addressing against each other. Guarantees: no block pointer is left, and no
descriptor but those that the launch makes. Raises `PassError` for a descriptor that is made elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from mltriton.dialects import arith, tt, ttng
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.errors import PassError
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import Patterns, apply_patterns
from mltriton.ir.types import I32, I64, TensorType, Type, like, pointee
from mltriton.passes.any.dce import DeadCode
from mltriton.passes.tt.normalize_block_pointers import NormalizeBlockPointers


class RewriteTensorPointers(Pass):
    """Address every element by a pointer of its own."""

    name = "rewrite-tensor-pointers"

    def run(self, module: Module) -> Module:
        module = NormalizeBlockPointers().run(module)
        apply_patterns(module, PATTERNS)
        return DeadCode().run(module)


@dataclass(frozen=True)
class _Access:
    """A block in memory: its type, base pointer, sizes and strides of the whole, first element, checked dimensions."""

    block: TensorType
    base: Value
    shape: Sequence[Value]
    strides: Sequence[Value]
    offsets: Sequence[Value]
    checked: Iterable[int]

    def pointers(self, builder: Builder, indices: Sequence[Value]) -> Value:
        """The tensor of pointers; `indices` are the coordinates of elements, one i64 block a dimension."""
        total: Value | None = None
        for index, stride in zip(indices, self.strides, strict=True):
            step = builder.emit(arith.MulI, index, _splat(builder, stride, self.block))
            total = step if total is None else builder.emit(arith.AddI, total, step)
        return builder.emit(tt.AddPtr, _splat(builder, self.base, self.block), total)

    def mask(self, builder: Builder, indices: Sequence[Value]) -> Value | None:
        """Which elements lie inside, along the checked dimensions; None where all are taken to."""
        mask: Value | None = None
        zero = arith.filled(builder, 0, like(self.block, I64))
        for dim in self.checked:
            size = _splat(builder, _as_i64(builder, self.shape[dim]), self.block)
            for inside in (
                builder.emit(arith.CmpI, indices[dim], zero, predicate="sge"),
                builder.emit(arith.CmpI, indices[dim], size, predicate="slt"),
            ):
                mask = inside if mask is None else builder.emit(arith.AndI, mask, inside)
        return mask

    def indices(self, builder: Builder) -> list[Value]:
        """The coordinates of every element in the whole tensor."""
        return [self._index(builder, dim) for dim in range(self.block.rank)]

    def _index(self, builder: Builder, dim: int) -> Value:
        line = builder.emit(tt.MakeRange, start=0, end=self.block.shape[dim])
        line = builder.emit(arith.ExtSI, line, result_types=[like(line.type, I64)])
        first = _splat(builder, _as_i64(builder, self.offsets[dim]), line.type)
        value = builder.emit(arith.AddI, line, first)
        for axis in range(self.block.rank):
            if axis != dim:
                value = builder.emit(tt.ExpandDims, value, axis=axis)
        return builder.emit(tt.Broadcast, value, result_types=[like(self.block, I64)])


def _as_i64(builder: Builder, value: Value) -> Value:
    return builder.emit(arith.ExtSI, value, result_types=[I64]) if value.type is I32 else value


def _splat(builder: Builder, value: Value, shape: Type) -> Value:
    return builder.emit(tt.Splat, value, result_types=[like(shape, value.type)])


def _at_pointer(pointer: Value, checked: Iterable[int]) -> _Access:
    maker = pointer.defining_op
    assert isinstance(maker, tt.MakeTensorPtr)
    block = cast(TensorType, pointee(pointer.type))
    return _Access(block, maker.base, maker.shape, maker.strides, maker.offsets, checked)


def _at_descriptor(desc: Value, indices: Sequence[Value], block: Type) -> tuple[_Access, tt.MakeTensorDesc]:
    maker = desc.defining_op
    if not isinstance(maker, tt.MakeTensorDesc):
        raise PassError("a descriptor that the kernel does not make right away cannot be taken apart")
    type = cast(TensorType, block)
    return _Access(type, maker.base, maker.shape, maker.strides, indices, range(type.rank)), maker


def load(builder: Builder, op: tt.Load) -> Sequence[Value] | None:
    """A load through a block pointer."""
    if not is_block_pointer(op.ptr.type):
        return None
    return [_load(builder, op, _at_pointer(op.ptr, op.boundary_check), op.padding == "pad_nan")]


def descriptor_load(builder: Builder, op: tt.DescriptorLoad) -> Sequence[Value] | None:
    """A load through a descriptor."""
    if isinstance(op.desc.defining_op, ttng.TensorMap):
        return None
    access, maker = _at_descriptor(op.desc, op.indices, op.result.type)
    return [_load(builder, op, access, maker.padding == "pad_nan")]


def _load(builder: Builder, op: tt.Load | tt.DescriptorLoad, access: _Access, with_nan: bool) -> Value:
    indices = access.indices(builder)
    mask = access.mask(builder, indices)
    other = arith.filled(builder, math.nan if with_nan else 0, access.block) if mask is not None else None
    pointers = access.pointers(builder, indices)
    volatile = isinstance(op, tt.Load) and op.volatile
    return builder.emit(tt.Load, pointers, mask, other, cache=op.cache, evict=op.evict, volatile=volatile or None)


def store(builder: Builder, op: tt.Store) -> Sequence[Value] | None:
    """A store through a block pointer."""
    if not is_block_pointer(op.ptr.type):
        return None
    return _store(builder, op, op.value, _at_pointer(op.ptr, op.boundary_check))


def descriptor_store(builder: Builder, op: tt.DescriptorStore) -> Sequence[Value] | None:
    """A store through a descriptor."""
    if isinstance(op.desc.defining_op, ttng.TensorMap):
        return None
    return _store(builder, op, op.value, _at_descriptor(op.desc, op.indices, op.value.type)[0])


def descriptor_reduce(builder: Builder, op: tt.DescriptorReduce) -> Sequence[Value] | None:
    """Atomic updates of a block through a descriptor."""
    if isinstance(op.desc.defining_op, ttng.TensorMap):
        return None
    access, _ = _at_descriptor(op.desc, op.indices, op.value.type)
    indices = access.indices(builder)
    mask, pointers = access.mask(builder, indices), access.pointers(builder, indices)
    builder.create(tt.AtomicRMW, pointers, op.value, mask, kind=op.update, sem="relaxed", scope="gpu")
    return []


def _store(builder: Builder, op: tt.Store | tt.DescriptorStore, value: Value, access: _Access) -> Sequence[Value]:
    indices = access.indices(builder)
    mask, pointers = access.mask(builder, indices), access.pointers(builder, indices)
    made = builder.create(tt.Store, pointers, value, mask)
    if isinstance(op, tt.Store):
        made.cache, made.evict = op.cache, op.evict
    return []


PATTERNS: Patterns = {
    tt.Load: load,
    tt.Store: store,
    tt.DescriptorLoad: descriptor_load,
    tt.DescriptorStore: descriptor_store,
    tt.DescriptorReduce: descriptor_reduce,
}
