"""turn-in-shared-memory: an operand that a dot takes transposed from shared memory lies there as it is.

Level: ttg. Takes dots whose operands in shared memory are made of a transposed block. Where the instruction reads
either order of them, the block goes to shared memory untransposed, once for all that take it, and the operand is a
view (`ttg.memdesc_trans`). Guarantees: the same elements. Purpose: moving them between lanes is saved, and what loops
copy ahead (`pipeline-loads`), or the engine brings, is multiplied where it arrives, in both orders.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import tt, ttg
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import MemDescType, TensorType, byte_width
from mltriton.layouts.base import Encoding, MatrixEncoding
from mltriton.layouts.lanes import order_of
from mltriton.layouts.shared import NvmmaSharedEncoding, copied
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of

EXCHANGED = (1, 0)


class TurnInSharedMemory(Pass):
    """Transpose operands in shared memory by how they are read."""

    name = "turn-in-shared-memory"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        for op in list(module.walk()):
            if isinstance(op, ttg.LocalAlloc) and (source := _turned(op)) is not None and _is_read_either_way(op, spec):
                _turn(op, source)
        return module


def _turned(op: ttg.LocalAlloc) -> Value | None:
    """The block whose transpose is put into shared memory, whatever lanes have it on the way."""
    transpose = _without_conversions(op.init).defining_op if op.init is not None else None
    if not isinstance(transpose, tt.Trans) or tuple(transpose.order) != EXCHANGED:
        return None
    return _without_conversions(transpose.source)


def _without_conversions(value: Value) -> Value:
    while isinstance(op := value.defining_op, ttg.ConvertLayout):
        value = op.source
    return value


def _is_read_either_way(op: ttg.LocalAlloc, spec: TargetSpec) -> bool:
    """Whether only dots take it, whose instruction does not ask for one order."""
    memory = cast(MemDescType, op.result.type)
    size = spec.dot.get(memory.element)
    is_swizzled = isinstance(memory.encoding, NvmmaSharedEncoding)
    return is_swizzled and size is not None and not size.k_major and not any(_asks(x, op) for x in op.result.users)


def _asks(user: Operation, operand: ttg.LocalAlloc) -> bool:
    """Whether a user is no dot, or one whose instruction reads this operand along K only."""
    if not isinstance(user, tt.Dot):
        return True
    encoding = cast(TensorType, user.result.type).encoding
    index = int(user.operands[0] is not operand.result)
    return isinstance(encoding, MatrixEncoding) and encoding.takes_lines(index)


def _turn(op: ttg.LocalAlloc, source: Value) -> None:
    block = cast(TensorType, source.type)
    try:
        encoding = _lines_of(block)
    except ValueError:
        return
    if encoding is not None:
        type_, builder = MemDescType(block.shape, block.element, encoding), Builder().before(op)
        memory = _there(source, type_, op) or builder.emit(ttg.LocalAlloc, source, result_types=[type_])
        op.replace_by([builder.emit(ttg.MemDescTrans, memory)])


def _lines_of(block: TensorType) -> NvmmaSharedEncoding | None:
    """How a block lies with lines along the dimension in which lanes have neighbours, as it is loaded."""
    width = byte_width(block.element)
    if order_of(cast(Encoding, block.encoding), block.shape)[0] == 1:
        return copied(block.shape, width)
    lines = copied(block.shape[::-1], width)
    return lines.turned() if lines is not None else None


def _there(source: Value, type_: MemDescType, before: Operation) -> Value | None:
    """The shared memory where the block is put anyway, no later than `before`."""
    for user in source.users:
        if isinstance(user, ttg.LocalAlloc) and user.result.type == type_ and user.block is before.block:
            if before.is_before(user):
                user.detach()
                Builder().before(before).insert(user)
            return user.result
    return None
