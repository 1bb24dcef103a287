"""Loads and stores of a SIMD kernel: through pointers and block pointers, of scalars and of blocks.

Level: intrinsic -> llvm. Guarantees: those of a lane's program (`simt/global_memory.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import tt, ttig
from mltriton.ir.floats import float_to_bits
from mltriton.ir.operation import Value as IRValue
from mltriton.ir.types import FloatType, TensorDescType, TensorType, block_of, byte_width, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit.booleans import from_memory, in_memory, to_memory
from mltriton.targets.llvm.types import Value, constant, integers
from mltriton.targets.simt import global_memory
from mltriton.targets.simt.context import Rule, Rules
from mltriton.targets.simt.lanes import BlockPointer, Emitted, Lanes
from mltriton.targets.xe.block_limits import Access
from mltriton.targets.xe.llvm.block_io import message_of
from mltriton.targets.xe.llvm.emit.block_accesses import filled
from mltriton.targets.xe.llvm.matrices import matrix_of
from mltriton.targets.xe.llvm.simd import accesses, block_io
from mltriton.targets.xe.llvm.simd.blocks import addresses, inside
from mltriton.targets.xe.llvm.simd.context import WarpEmitter, held_element, value_type
from mltriton.targets.xe.llvm.simd.intrinsics import LANES, fence, read

FIRST = integers("i1", [1] + [0] * (LANES - 1))  # the lane that accesses what all lanes share


def _load(e: WarpEmitter, op: tt.Load) -> Emitted:
    loaded = _loaded_plainly(e, op)
    if op.volatile:
        fence(e.function, of_shared=False)  # Messages only read: without it they leave loops, and pass each other.
    return loaded


def _loaded_plainly(e: WarpEmitter, op: tt.Load) -> Emitted:
    block = op.result.type
    if isinstance(e.any(op.ptr), BlockPointer):
        return load_block(e, op, e.block_pointer(op.ptr), op.boundary_check, op.padding)
    pointers, masks = e.vector_of(op.ptr), _masks(e, op.ptr, op.mask)
    zero = constant(held_element(element_type(block)).with_lanes(LANES), 0)
    others = [zero] * len(pointers) if op.other is None else e.vector_of(op.other)
    if not isinstance(block, TensorType) and op.mask is not None:
        wanted = e.vector_of(op.mask)[0]
        loaded = _loaded(e, block, pointers, masks, others)
        assert isinstance(loaded, Value)
        return e.function.select(e.function.extract(wanted, 0), loaded, e.function.extract(others[0], 0))
    return _loaded(e, block, pointers, masks, others)


def _masks(e: WarpEmitter, pointer: IRValue, mask: IRValue | None) -> list[Value] | None:
    """Which lanes access memory: of a scalar the first one."""
    masks = None if mask is None else e.vector_of(mask)
    if isinstance(pointer.type, TensorType):
        return masks
    return [FIRST if masks is None else e.function.and_(masks[0], FIRST)]


def _loaded(
    e: WarpEmitter, block: IRType, pointers: Sequence[Value], masks: Sequence[Value] | None, others: Sequence[Value]
) -> Emitted:
    type_ = held_element(element_type(block)).with_lanes(LANES)
    kept = [to_memory(e, other) for other in others]
    loaded = accesses.load(e, in_memory(type_).scalar, pointers, masks, kept)
    return e.held([from_memory(e, register, type_) for register in loaded], block)


def _store(e: WarpEmitter, op: tt.Store) -> None:
    if isinstance(e.any(op.ptr), BlockPointer):
        store_block(e, op, e.block_pointer(op.ptr), op.boundary_check)
        return
    masks = _masks(e, op.ptr, op.mask)
    accesses.store(e, e.vector_of(op.ptr), masks, [to_memory(e, value) for value in e.vector_of(op.value)])


def load_block(
    e: WarpEmitter, op: tt.Load | tt.DescriptorLoad, pointer: BlockPointer, checked: Sequence[int], padding: str
) -> Emitted:
    """A block by block accesses, or lane by lane."""
    block = cast(TensorType, op.result.type)
    message = message_of(e.device, block, pointer, Access.LOAD)
    outside = _padding(block.element, padding)

    if message is None:
        pointers = addresses(e, block, pointer)
        return _loaded(e, block, pointers, inside(e, block, pointer, checked), [outside] * len(pointers))
    matrix = matrix_of(e, op, pointer, byte_width(block.element), checked)
    loaded = block_io.load(e, block, matrix, message, fast=e.legality.of(op, message.transposed))
    return loaded if outside.literal == 0 else _filled(e, loaded, inside(e, block, pointer, checked), outside)


def _filled(e: WarpEmitter, loaded: Lanes, masks: Sequence[Value] | None, outside: Value) -> Lanes:
    """A block with `outside` where masks do not hold. Its bits are 0 there: one mask of a whole value adds them."""
    if masks is None:
        return loaded
    form, f = loaded.form, e.function
    groups = [masks[start : start + form.width] for start in range(0, len(masks), form.width)]
    if outside.literal is None or any(len(set(group)) > 1 for group in groups):
        return filled(e, loaded, masks, outside)
    held = value_type(form)
    bits = held.with_element(f"i{held.bits}")
    whole = e.splat(outside.literal, form, form.width).values[0].literal
    word = e.bits_as(constant(held.with_lanes(LANES), whole or 0), bits.with_lanes(LANES))
    made: list[Value] = []
    for group, value in zip(groups, loaded.values, strict=True):
        added = f.select(group[0], constant(word.type, 0), word)
        rows = read(f, added, 0, LANES, rows=form.type.lanes)
        made.append(e.bits_as(f.or_(e.bits_as(value, bits), rows), held))
    return Lanes(form, made)


def store_block(
    e: WarpEmitter, op: tt.Store | tt.DescriptorStore, pointer: BlockPointer, checked: Sequence[int]
) -> None:
    """A block by block accesses, or lane by lane."""
    block, lanes = cast(TensorType, op.value.type), e.lanes(op.value)
    message = message_of(e.device, block, pointer, Access.STORE)

    if message is None:
        masks = inside(e, block, pointer, checked)
        accesses.store(e, addresses(e, block, pointer), masks, [to_memory(e, part) for part in e.scalars(lanes)])
        return
    matrix = matrix_of(e, op, pointer, byte_width(block.element), checked)
    block_io.store(e, block, matrix, lanes, message, fast=e.legality.of(op, message.transposed))


def _padding(element: IRType, padding: str) -> Value:
    type_ = held_element(element).with_lanes(LANES)
    if padding != "pad_nan" or not isinstance(element, FloatType):
        return constant(type_, 0)
    nan = float("nan")
    return constant(type_, nan if type_.is_float else float_to_bits(nan, element))


def _prefetch(e: WarpEmitter, op: ttig.Prefetch) -> None:
    """A hint: what is no block access, or might not be one, is left out."""
    pointer, block = e.any(op.ptr), block_of(op.ptr.type)
    if not isinstance(pointer, BlockPointer) or block is None:
        return
    message = message_of(e.device, block, pointer, Access.PREFETCH)
    if message is not None and e.legality.of(op, message.transposed):
        matrix = matrix_of(e, op, pointer, byte_width(block.element), range(block.rank))
        block_io.prefetch(e, block, matrix, message)


def _described(rule: Rule) -> Rule:
    """Describe a matrix to messages where it is made, before the loops that access it."""

    def make(e: WarpEmitter, op: tt.MakeTensorPtr | tt.MakeTensorDesc) -> BlockPointer:
        pointer: BlockPointer = rule(e, op)
        type_ = op.result.type
        block = type_.block if isinstance(type_, TensorDescType) else block_of(type_)
        if block is not None and block.rank == 2:
            row_major = pointer.strides[-1].literal == 1
            if row_major or pointer.strides[-2].literal == 1:
                block_io.describe(e, pointer, byte_width(block.element), (-2, -1) if row_major else (-1, -2))
        return pointer

    return make


_BLOCKS = global_memory.rules(load_block, store_block)
RULES: Rules = {
    **_BLOCKS,
    tt.MakeTensorPtr: _described(_BLOCKS[tt.MakeTensorPtr]),
    tt.MakeTensorDesc: _described(_BLOCKS[tt.MakeTensorDesc]),
    tt.Load: global_memory.hinted(_load),
    tt.Store: global_memory.hinted(_store),
    ttig.Prefetch: _prefetch,
}
