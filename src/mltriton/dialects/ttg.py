"""`ttg`: operations that exist because a program is made of warps: layout changes, shared memory, asynchronous
copies.

Level: ttg to intrinsic. Names are upstream TritonGPU's. A block in shared memory has type `!ttg.memdesc`;
`gpu.barrier` orders accesses of different warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute
from mltriton.ir.definition import integer, operand, optional, variadic
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import MemDescType, TensorType, TokenType, Type

Attributes = dict[str, Attribute]


class ConvertLayout(Operation):
    """`ttg.convert_layout %x`: the same elements owned by other warps, lanes or registers. The only operation that
    changes an encoding.
    """

    name = "ttg.convert_layout"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()


class LocalAlloc(Operation):
    """`ttg.local_alloc [%init]`: a block in shared memory, for the program's lifetime."""

    name = "ttg.local_alloc"
    syntax = "($init^)? attr-dict `:` functional-type(operands, results)"
    writes = True
    init = optional()


class LocalLoad(Operation):
    """`ttg.local_load %mem`: the whole block from shared memory. The result type says the encoding."""

    name = "ttg.local_load"
    syntax = "$memory attr-dict `:` type($memory) `->` type(result)"
    reads = True
    memory = operand()


class LocalStore(Operation):
    """`ttg.local_store %x, %mem`: the whole block to shared memory."""

    name = "ttg.local_store"
    syntax = "$value `,` $memory attr-dict `:` type($value) `->` type($memory)"
    writes = True
    value = operand()
    memory = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return []


class MemDescSubview(Operation):
    """`ttg.memdesc_subview %mem[%offsets]`: a window at i32 offsets (seed name: extract_slice); a rank lower than the
    source drops leading dimensions.
    """

    name = "ttg.memdesc_subview"
    syntax = "$memory `[` $offsets `]` attr-dict `:` type($memory) `->` type(result)"
    pure = True
    memory = operand()
    offsets = variadic()


class MemDescTrans(Operation):
    """`ttg.memdesc_trans %mem`: the transposed view of a rank-2 block."""

    name = "ttg.memdesc_trans"
    syntax = "$memory attr-dict `:` type($memory) `->` type(result)"
    pure = True
    memory = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        source = cast(MemDescType, operands[0].type)
        return [MemDescType((source.shape[1], source.shape[0]), source.element, source.encoding, source.mutable)]


class AsyncCopyGlobalToLocal(Operation):
    """`ttg.async_copy_global_to_local %ptr, %mem [mask %m] [other %o]`: starts a copy (seed name:
    insert_slice_async); done after the matching wait.
    """

    name = "ttg.async_copy_global_to_local"
    syntax = (
        "$ptr `,` $memory (`mask` $mask^)? (`other` $other^)? attr-dict `:` "
        "type($ptr) `->` type($memory)"
    )
    reads = True
    writes = True
    ptr = operand()
    memory = operand()
    mask = optional()
    other = optional()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [TokenType()]


class AsyncCommitGroup(Operation):
    """`ttg.async_commit_group %tokens`: closes the group of copies started so far."""

    name = "ttg.async_commit_group"
    syntax = "$tokens attr-dict"
    reads = True
    writes = True
    tokens = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [TokenType()]


class AsyncWait(Operation):
    """`ttg.async_wait %tokens {num}`: waits until at most `num` groups are under way."""

    name = "ttg.async_wait"
    syntax = "$tokens attr-dict"
    reads = True
    writes = True
    tokens = variadic()
    num = integer(0)

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [TokenType()]


def memory_type(block: TensorType) -> MemDescType:
    """The shared-memory type that holds a block of type `block`."""
    return MemDescType(block.shape, block.element)
