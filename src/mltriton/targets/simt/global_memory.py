"""Loads and stores through pointers and block pointers, of scalars and of blocks.

Level: intrinsic -> llvm. Guarantees: a masked-off element is never touched and loads as `other`, or 0; an element
outside a block pointer's checked sizes loads as its padding; i1 is a byte, 0 or 1, in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from mltriton.dialects import tt, ttig
from mltriton.ir.floats import float_to_bits
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import FloatType, TensorType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit.booleans import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import Value, constant, vector
from mltriton.targets.simt import accesses
from mltriton.targets.simt.blocks import addresses, inside
from mltriton.targets.simt.context import Emitter, Rule, Rules
from mltriton.targets.simt.lanes import BlockPointer, Emitted, element_name

LoadBlock = Callable[[Any, tt.Load | tt.DescriptorLoad, BlockPointer, Sequence[int], str], Emitted]
StoreBlock = Callable[[Any, tt.Store | tt.DescriptorStore, BlockPointer, Sequence[int]], None]


def _load(load_block: LoadBlock) -> Rule:
    def rule(e: Emitter, op: tt.Load) -> Emitted:
        block = op.result.type
        if isinstance(e.any(op.ptr), BlockPointer):
            pointer = e.block_pointer(op.ptr)
            return load_block(e, op, pointer, op.boundary_check, op.padding)
        pointers = _registers(e, op.ptr)
        masks = None if op.mask is None else _registers(e, op.mask)
        type_ = vector(element_name(element_type(block)), 1)
        others = [constant(type_, 0)] * len(pointers) if op.other is None else _registers(e, op.other)
        return _loaded(e, block, pointers, masks, others)

    return rule


def _loaded(
    e: Emitter, block: IRType, pointers: Sequence[Value], masks: accesses.Masks, others: Sequence[Value]
) -> Emitted:
    type_ = vector(element_name(element_type(block)), 1)
    kept = [to_memory(e, other) if other.type.element != "ptr" else other for other in others]
    loaded = accesses.load(e, in_memory(type_), pointers, masks, kept)
    return e.held([from_memory(e, register, type_) for register in loaded], block)


def _store(store_block: StoreBlock) -> Rule:
    def rule(e: Emitter, op: tt.Store) -> None:
        if isinstance(e.any(op.ptr), BlockPointer):
            store_block(e, op, e.block_pointer(op.ptr), op.boundary_check)
            return
        masks = None if op.mask is None else _registers(e, op.mask)
        accesses.store(e, _registers(e, op.ptr), masks, [to_memory(e, value) for value in _registers(e, op.value)])

    return rule


def _registers(e: Emitter, value: IRValue) -> list[Value]:
    return e.registers(value) if isinstance(value.type, TensorType) else [e.get(value)]


def load_block(
    e: Emitter, op: tt.Load | tt.DescriptorLoad, pointer: BlockPointer, checked: Sequence[int], padding: str
) -> Emitted:
    """A block, lane by lane."""
    block = cast(TensorType, op.result.type)
    pointers = addresses(e, block, pointer)
    outside = padding_of(block.element, padding)
    return _loaded(e, block, pointers, inside(e, block, pointer, checked), [outside] * len(pointers))


def store_block(e: Emitter, op: tt.Store | tt.DescriptorStore, pointer: BlockPointer, checked: Sequence[int]) -> None:
    """A block, lane by lane."""
    block = cast(TensorType, op.value.type)
    masks = inside(e, block, pointer, checked)
    accesses.store(e, addresses(e, block, pointer), masks, [to_memory(e, part) for part in e.registers(op.value)])


def padding_of(element: IRType, padding: str) -> Value:
    """What is loaded outside of a tensor."""
    type_ = vector(element_name(element), 1)
    if padding != "pad_nan" or not isinstance(element, FloatType):
        return constant(type_, 0)
    nan = float("nan")
    return constant(type_, nan if type_.is_float else float_to_bits(nan, element))


def _make_block_pointer(e: Emitter, op: tt.MakeTensorPtr) -> BlockPointer:
    shape, strides, offsets = ([e.get(value) for value in values] for values in (op.shape, op.strides, op.offsets))
    return BlockPointer(e.get(op.base), shape, strides, offsets)


def _make_descriptor(e: Emitter, op: tt.MakeTensorDesc) -> BlockPointer:
    shape, strides = ([e.get(value) for value in values] for values in (op.shape, op.strides))
    return BlockPointer(e.get(op.base), shape, strides, (), op.padding)


def _prefetch(e: Emitter, op: ttig.Prefetch) -> None:
    """A hint."""


def _descriptor_load(load_block: LoadBlock) -> Rule:
    def rule(e: Emitter, op: tt.DescriptorLoad) -> Emitted:
        pointer = described(e, op.desc, op.indices)
        return load_block(e, op, pointer, range(len(op.indices)), pointer.padding)

    return rule


def _descriptor_store(store_block: StoreBlock) -> Rule:
    def rule(e: Emitter, op: tt.DescriptorStore) -> None:
        store_block(e, op, described(e, op.desc, op.indices), range(len(op.indices)))

    return rule


def described(e: Emitter, descriptor: IRValue, indices: Sequence[IRValue]) -> BlockPointer:
    """The block of a descriptor's tensor that starts at `indices`."""
    return e.block_pointer(descriptor)._replace(offsets=[e.get(index) for index in indices])


def hinted(rule: Callable[[Any, Any], Any]) -> Rule:
    """The rule of a load or store that says what it asks of the caches."""

    def emit(e: Emitter, op: tt.Load | tt.Store | tt.DescriptorLoad) -> Any:
        e.caching = e.machine.caching(isinstance(op, tt.Store), op.cache, op.evict)
        e.volatile = isinstance(op, tt.Load) and op.volatile
        made = rule(e, op)
        e.caching, e.volatile = None, False
        return made

    return emit


def rules(load_block: LoadBlock, store_block: StoreBlock) -> Rules:
    """The table, with these for blocks of block pointers and descriptors."""
    return {
        tt.Load: hinted(_load(load_block)),
        tt.Store: hinted(_store(store_block)),
        tt.MakeTensorPtr: _make_block_pointer,
        tt.MakeTensorDesc: _make_descriptor,
        ttig.Prefetch: _prefetch,
        tt.DescriptorLoad: hinted(_descriptor_load(load_block)),
        tt.DescriptorStore: _descriptor_store(store_block),
    }


RULES = rules(load_block, store_block)
