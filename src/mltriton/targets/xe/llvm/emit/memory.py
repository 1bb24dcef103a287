"""Loads and stores through pointers and block pointers, of scalars and of blocks.

Level: intrinsic -> llvm. Guarantees: a masked-off element is never touched and loads as `other`, or 0; an element
outside a block pointer's checked sizes loads as its padding; i1 is a byte, 0 or 1, in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from mltriton.analysis.block_io import BlockOperation
from mltriton.dialects import tt, ttig
from mltriton.ir.floats import float_to_bits
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import FloatType, TensorType, block_of, byte_width, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit.memory import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import I1, Value, constant, vector
from mltriton.targets.xe.block_limits import Access
from mltriton.targets.xe.cache_hints import controls
from mltriton.targets.xe.llvm import accesses, block_io
from mltriton.targets.xe.llvm.emit.blocks import addresses, inside
from mltriton.targets.xe.llvm.emit.context import BlockPointer, Emitted, Emitter, Rule, Rules
from mltriton.targets.xe.llvm.lanes import Lanes, element_name
from mltriton.targets.xe.llvm.matrices import matrix_of
from mltriton.targets.xe.llvm.surfaces import KernelGuard


def _load(e: Emitter, op: tt.Load) -> Emitted:
    block = op.result.type
    if isinstance(e.any(op.ptr), BlockPointer):
        pointer = e.block_pointer(op.ptr)
        return load_block(e, op, pointer, op.boundary_check, op.padding)
    pointers = _registers(e, op.ptr)
    masks = None if op.mask is None else _registers(e, op.mask)
    type_ = vector(element_name(element_type(block)), 1)
    others = [constant(type_, 0)] * len(pointers) if op.other is None else _registers(e, op.other)
    return _loaded(e, block, pointers, masks, others)


def _loaded(
    e: Emitter, block: IRType, pointers: Sequence[Value], masks: accesses.Masks, others: Sequence[Value]
) -> Emitted:
    type_ = vector(element_name(element_type(block)), 1)
    kept = [to_memory(e, other) if other.type.element != "ptr" else other for other in others]
    loaded = accesses.load(e, in_memory(type_), pointers, masks, kept)
    return e.held([from_memory(e, register, type_) for register in loaded], block)


def _store(e: Emitter, op: tt.Store) -> None:
    if isinstance(e.any(op.ptr), BlockPointer):
        store_block(e, op, e.block_pointer(op.ptr), op.boundary_check)
        return
    masks = None if op.mask is None else _registers(e, op.mask)
    accesses.store(e, _registers(e, op.ptr), masks, [to_memory(e, value) for value in _registers(e, op.value)])


def _registers(e: Emitter, value: IRValue) -> list[Value]:
    return e.registers(value) if isinstance(value.type, TensorType) else [e.get(value)]


def load_block(
    e: Emitter, op: tt.Load | tt.DescriptorLoad, pointer: BlockPointer, checked: Sequence[int], padding: str
) -> Emitted:
    """A block by block accesses, or lane by lane."""
    block = cast(TensorType, op.result.type)
    message = block_io.message_of(e.device, block, pointer, Access.LOAD)
    outside = _padding(block.element, padding)
    if message is not None:
        matrix = matrix_of(e, pointer, byte_width(block.element), checked)
        loaded = _either(e, op, matrix, message, lambda fast: block_io.load(e, block, matrix, message, fast=fast))
        assert loaded is not None
        return loaded if outside.literal == 0 else filled(e, loaded, inside(e, block, pointer, checked), outside)
    pointers = addresses(e, block, pointer)
    return _loaded(e, block, pointers, inside(e, block, pointer, checked), [outside] * len(pointers))


def filled(e: Emitter, loaded: Lanes, masks: Sequence[Value] | None, outside: Value) -> Lanes:
    """A block with `outside` where masks do not hold: the hardware gives 0 there."""
    if masks is None or all(mask.literal for mask in masks):
        return loaded
    form, f = loaded.form, e.function
    groups = [masks[start : start + form.width] for start in range(0, len(masks), form.width)]
    if masks[0].type == I1 and all(len(set(group)) == 1 for group in groups):
        whole = e.packed([outside] * form.width, form).values[0]
        chosen = [f.select(group[0], value, whole) for group, value in zip(groups, loaded.values, strict=True)]
        return Lanes(form, chosen)
    kept = [f.select(mask, value, outside) for mask, value in zip(masks, e.scalars(loaded), strict=True)]
    return e.packed(kept, loaded.form)


def store_block(e: Emitter, op: tt.Store | tt.DescriptorStore, pointer: BlockPointer, checked: Sequence[int]) -> None:
    """A block by block accesses, or lane by lane."""
    block = cast(TensorType, op.value.type)
    message = block_io.message_of(e.device, block, pointer, Access.STORE)
    if message is not None:
        matrix = matrix_of(e, pointer, byte_width(block.element), checked)
        store = partial(block_io.store, e, block, matrix, e.lanes(op.value), message)
        _either(e, op, matrix, message, lambda fast: store(fast=fast))
        return
    masks = inside(e, block, pointer, checked)
    accesses.store(e, addresses(e, block, pointer), masks, [to_memory(e, part) for part in e.registers(op.value)])


def _either(
    e: Emitter,
    op: BlockOperation,
    pointer: BlockPointer,
    message: block_io.Message,
    do: Callable[[bool], Lanes | None],
) -> Lanes | None:
    """An access by the instruction where the hardware takes the matrix, else element by element."""
    answer = e.answers.of(op, message.transposed)
    if isinstance(answer, bool):
        return do(answer)
    guard = asked(e, pointer, answer)
    made: list[Lanes | None] = []

    def arm(fast: bool) -> Callable[[], Sequence[Value]]:
        def build() -> Sequence[Value]:
            made.append(do(fast))
            return made[-1].values if made[-1] is not None else []

        return build

    values = e.function.choose(guard, arm(fast=True), arm(fast=False), "block")
    return None if made[0] is None else made[0]._replace(values=values)


def asked(e: Emitter, pointer: BlockPointer, guards: Sequence[KernelGuard]) -> Value:
    """What could not be asked before the access: where a branch chose the matrix, say, or its column was loaded."""
    limits = dict.fromkeys(limit for guard in guards for limit in guard.all_limits)
    first = guards[0]
    return block_io.asked(e, pointer, first.size, list(limits), transposed=first.transposed)


def _padding(element: IRType, padding: str) -> Value:
    type_ = vector(element_name(element), 1)
    if padding != "pad_nan" or not isinstance(element, FloatType):
        return constant(type_, 0)
    nan = float("nan")
    return constant(type_, nan if type_.is_float else float_to_bits(nan, element))


def _make_block_pointer(e: Emitter, op: tt.MakeTensorPtr) -> BlockPointer:
    shape, strides, offsets = ([e.get(value) for value in values] for values in (op.shape, op.strides, op.offsets))
    stays = _staying(e, op.offsets) if {op.base, *op.shape, *op.strides} <= e.staying else None
    return BlockPointer(e.get(op.base), shape, strides, offsets, staying=stays)


def _staying(e: Emitter, offsets: Sequence[IRValue]) -> tuple[bool, ...]:
    return tuple(offset in e.staying for offset in offsets)


def _make_descriptor(e: Emitter, op: tt.MakeTensorDesc) -> BlockPointer:
    shape, strides = ([e.get(value) for value in values] for values in (op.shape, op.strides))
    return BlockPointer(e.get(op.base), shape, strides, (), op.padding)


def _prefetch(e: Emitter, op: ttig.Prefetch) -> None:
    """A hint: what is no block access, or might not be one, is left out."""
    pointer = e.any(op.ptr)
    block = block_of(op.ptr.type)
    if not isinstance(pointer, BlockPointer) or block is None:
        return
    message = block_io.message_of(e.device, block, pointer, Access.PREFETCH)
    if message is not None and e.answers.of(op, message.transposed) is True:
        matrix = matrix_of(e, pointer, byte_width(block.element), range(block.rank))
        block_io.prefetch(e, block, matrix, message)


def _advance(e: Emitter, op: tt.Advance) -> BlockPointer:
    pointer = e.block_pointer(op.ptr)
    steps = zip(pointer.offsets, op.offsets, strict=True)
    moved = [e.affine.add(offset, e.get(step)) for offset, step in steps]
    staying = pointer.staying
    if staying is not None:
        same = (old == new for old, new in zip(pointer.offsets, moved, strict=True))
        staying = tuple(stays and unmoved for stays, unmoved in zip(staying, same, strict=True))
    return pointer._replace(offsets=moved, staying=staying)


def _descriptor_load(e: Emitter, op: tt.DescriptorLoad) -> Emitted:
    pointer = described(e, op.desc, op.indices)
    return load_block(e, op, pointer, range(len(op.indices)), pointer.padding)


def _descriptor_store(e: Emitter, op: tt.DescriptorStore) -> None:
    store_block(e, op, described(e, op.desc, op.indices), range(len(op.indices)))


def described(e: Emitter, descriptor: IRValue, indices: Sequence[IRValue]) -> BlockPointer:
    """The block of a descriptor's tensor that starts at `indices`."""
    stays = _staying(e, indices) if descriptor in e.staying else None
    return e.block_pointer(descriptor)._replace(offsets=[e.get(index) for index in indices], staying=stays)


def hinted(rule: Callable[[Any, Any], Any]) -> Rule:
    """The rule of a load or store that says what it asks of the caches."""

    def emit(e: Emitter, op: tt.Load | tt.Store | tt.DescriptorLoad) -> Any:
        e.caching = controls(isinstance(op, tt.Store), op.cache, op.evict)
        made = rule(e, op)
        e.caching = None
        return made

    return emit


RULES: Rules = {
    tt.Load: hinted(_load),
    tt.Store: hinted(_store),
    tt.MakeTensorPtr: _make_block_pointer,
    tt.MakeTensorDesc: _make_descriptor,
    tt.Advance: _advance,
    ttig.Prefetch: _prefetch,
    tt.DescriptorLoad: hinted(_descriptor_load),
    tt.DescriptorStore: _descriptor_store,
}
