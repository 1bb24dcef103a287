"""Accesses to blocks by 2D block accesses, where Xe has them; all others are those of every GPU.

Level: intrinsic -> llvm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import tt, ttig
from mltriton.ir.types import TensorType, block_of, byte_width
from mltriton.targets.llvm.types import I1, Value
from mltriton.targets.simt import global_memory
from mltriton.targets.simt.blocks import inside
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.lanes import BlockPointer, Emitted, Lanes
from mltriton.targets.xe.block_limits import Access
from mltriton.targets.xe.llvm import block_io
from mltriton.targets.xe.llvm.emit.context import XeEmitter
from mltriton.targets.xe.llvm.matrices import matrix_of


def load_block(
    e: XeEmitter, op: tt.Load | tt.DescriptorLoad, pointer: BlockPointer, checked: Sequence[int], padding: str
) -> Emitted:
    """A block by block accesses, or lane by lane."""
    block = cast(TensorType, op.result.type)
    message = block_io.message_of(e.device, block, pointer, Access.LOAD)
    outside = global_memory.padding_of(block.element, padding)
    if message is not None:
        matrix = matrix_of(e, op, pointer, byte_width(block.element), checked)
        loaded = block_io.load(e, block, matrix, message, fast=e.legality.of(op, message.transposed))
        return loaded if outside.literal == 0 else filled(e, loaded, inside(e, block, pointer, checked), outside)
    return global_memory.load_block(e, op, pointer, checked, padding)


def filled(e: XeEmitter, loaded: Lanes, masks: Sequence[Value] | None, outside: Value) -> Lanes:
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


def store_block(e: XeEmitter, op: tt.Store | tt.DescriptorStore, pointer: BlockPointer, checked: Sequence[int]) -> None:
    """A block by block accesses, or lane by lane."""
    block = cast(TensorType, op.value.type)
    message = block_io.message_of(e.device, block, pointer, Access.STORE)
    if message is not None:
        matrix = matrix_of(e, op, pointer, byte_width(block.element), checked)
        fast = e.legality.of(op, message.transposed)
        block_io.store(e, block, matrix, e.lanes(op.value), message, fast=fast)
        return
    global_memory.store_block(e, op, pointer, checked)


def _prefetch(e: XeEmitter, op: ttig.Prefetch) -> None:
    """A hint: what is no block access, or might not be one, is left out."""
    pointer = e.any(op.ptr)
    block = block_of(op.ptr.type)
    if not isinstance(pointer, BlockPointer) or block is None:
        return
    message = block_io.message_of(e.device, block, pointer, Access.PREFETCH)
    if message is not None and e.legality.of(op, message.transposed):
        matrix = matrix_of(e, op, pointer, byte_width(block.element), range(block.rank))
        block_io.prefetch(e, block, matrix, message)


RULES: Rules = {**global_memory.rules(load_block, store_block), ttig.Prefetch: _prefetch}
