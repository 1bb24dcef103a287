"""`ttg`: operations that exist because a program is made of warps: layout changes, shared memory, asynchronous
copies, combinations across warps.

Level: ttg to intrinsic; in warp-level kernels shared memory and combinations across warps from tt on. Names are
upstream TritonGPU's, but for `cross_warp_*`, which it has not. A block in shared memory has type `!ttg.memdesc`;
`gpu.barrier` orders accesses of different warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import axis, memory, require, require_type, require_types, scalars, tensor, types_of
from mltriton.ir.constants import constant_of, reshaped
from mltriton.ir.definition import boolean, integer, integers, operand, optional, region, variadic
from mltriton.ir.operation import ALIKE, Block, Coordinates, Elements, Encodings, Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import (
    I1,
    I32,
    IntegerType,
    MemDescType,
    PointerType,
    TensorType,
    TokenType,
    Type,
    element_type,
    shape_of,
)
from mltriton.layouts.base import SharedEncoding

Attributes = dict[str, Attribute]


class ConvertLayout(Operation, name="ttg.convert_layout", pure=True):
    """`ttg.convert_layout %x`: the same elements owned by other warps, lanes or registers. The only operation that
    changes an encoding.
    """

    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    source = operand()

    def verify(self) -> None:
        source, result = tensor(self, "the source", self.source), tensor(self, "the result", self.result)
        same = source.with_encoding(None) is result.with_encoding(None)
        require(self, same, "only the encoding changes", source, result)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.source, at)]

    def fold(self) -> Value | Attribute | None:
        inner = self.source.defining_op
        if isinstance(inner, ConvertLayout):
            self.set_operand(0, inner.source)
        if self.source.type is self.result.type:
            return self.source
        return reshaped(constant_of(self.source), self.result.type)


ALLOCATION_OFFSET = "allocation.offset"  # attribute of an allocation: where it starts, in bytes


class LocalAlloc(Operation, name="ttg.local_alloc", writes=True):
    """`ttg.local_alloc [%init]`: a block in shared memory, for the program's lifetime."""

    syntax = "($init^)? attr-dict `:` functional-type(operands, results)"
    init = optional()

    def verify(self) -> None:
        result = memory(self, "the result", self.result)
        if isinstance(result.encoding, SharedEncoding):
            from mltriton.layouts.hardware import (
                linear_layout,  # Few blocks in shared memory have a layout of their own.
            )

            try:
                linear_layout(result.encoding, result.shape)
            except (LookupError, ValueError) as problem:
                reject(self, f"the block has no such layout: {problem}", found=str(result))
        if self.init is not None:
            require_contents(self, tensor(self, "the initial value", self.init), result)


class LocalLoad(Operation, name="ttg.local_load", reads=True):
    """`ttg.local_load %mem`: the whole block from shared memory. The result type says the encoding."""

    syntax = "$memory attr-dict `:` type($memory) `->` type(result)"
    memory = operand()

    def verify(self) -> None:
        require_contents(self, tensor(self, "the result", self.result), memory(self, "the source", self.memory))


class LocalStore(Operation, name="ttg.local_store", writes=True):
    """`ttg.local_store %x, %mem`: the whole block to shared memory."""

    syntax = "$value `,` $memory attr-dict `:` type($value) `->` type($memory)"
    value = operand()
    memory = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return []

    def verify(self) -> None:
        target = memory(self, "the target", self.memory)
        require(self, target.mutable, "the target cannot be written", "mutable", target)
        require_contents(self, tensor(self, "the value", self.value), target)


class LocalGather(Operation, name="ttg.local_gather", reads=True, encodings=Encodings(free=(0,))):
    """`ttg.local_gather %mem[%indices] {axis}`: element [.., i, ..] is mem[.., indices[.., i, ..], ..] along the axis.
    Indices and result have one encoding.
    """

    syntax = "$memory `[` $indices `]` attr-dict `:` type($memory) `,` type($indices) `->` type(result)"
    memory = operand()
    indices = operand()
    axis = integer()

    def verify(self) -> None:
        source, indices = memory(self, "the source", self.memory), tensor(self, "the indices", self.indices)
        at = axis(self, self.axis, len(source.shape))
        require(self, isinstance(indices.element, IntegerType), "the indices are integers", found=indices)
        same = [*source.shape[:at], *source.shape[at + 1 :]] == [*indices.shape[:at], *indices.shape[at + 1 :]]
        require(self, same, "the indices have other rows than the source", source, indices)
        wanted = TensorType(indices.shape, source.element, indices.encoding)
        require_type(self, "the result", self.result.type, wanted)


class MemDescSubview(Operation, name="ttg.memdesc_subview", pure=True):
    """`ttg.memdesc_subview %mem[%offsets]`: a window at i32 offsets (seed name: extract_slice); a rank lower than the
    source drops leading dimensions.
    """

    syntax = "$memory `[` $offsets `]` attr-dict `:` type($memory) `->` type(result)"
    memory = operand()
    offsets = variadic()

    def verify(self) -> None:
        source, result = memory(self, "the source", self.memory), memory(self, "the result", self.result)
        scalars(self, "the offsets", self.offsets, I32, len(source.shape))
        dropped = len(source.shape) - len(result.shape)
        fits = dropped >= 0 and all(
            size <= whole for size, whole in zip(result.shape, source.shape[dropped:], strict=True)
        )
        same = result.element is source.element and result.encoding is source.encoding
        require(self, fits and same, "the result is no window", source, result)


class MemDescTrans(Operation, name="ttg.memdesc_trans", pure=True):
    """`ttg.memdesc_trans %mem`: the transposed view of a rank-2 block."""

    syntax = "$memory attr-dict `:` type($memory) `->` type(result)"
    memory = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        source = cast(MemDescType, operands[0].type)
        encoding = source.encoding.turned() if isinstance(source.encoding, SharedEncoding) else source.encoding
        return [MemDescType((source.shape[1], source.shape[0]), source.element, encoding, source.mutable)]

    def verify(self) -> None:
        source, result = memory(self, "the source", self.memory), memory(self, "the result", self.result)
        fits = len(source.shape) == 2 and result is MemDescTrans.infer([self.memory], {})[0]
        require(self, fits, "the result is not the transposed source", source, result)


class AsyncCopyGlobalToLocal(Operation, name="ttg.async_copy_global_to_local", reads=True, writes=True):
    """`ttg.async_copy_global_to_local %ptr, %mem [mask %m] [other %o]`: starts a copy (seed name:
    insert_slice_async); done after the matching wait.
    """

    syntax = "$ptr `,` $memory (`mask` $mask^)? (`other` $other^)? attr-dict `:` type($ptr) `->` type($memory)"
    ptr = operand()
    memory = operand()
    mask = optional()
    other = optional()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [TokenType()]

    def verify(self) -> None:
        target = memory(self, "the target", self.memory)
        source = tensor(self, "the source", self.ptr)
        if not isinstance(source.element, PointerType):
            reject(self, "copies through pointers", expected="tensor<...x!tt.ptr<...>>", found=str(source))
        require_contents(self, source.with_element(source.element.pointee), target)
        if self.mask is not None:
            require_type(self, "the mask", self.mask.type, source.with_element(I1))
        if self.other is not None:
            require_type(self, "other", self.other.type, source.with_element(source.element.pointee))


class AsyncCommitGroup(Operation, name="ttg.async_commit_group", reads=True, writes=True):
    """`ttg.async_commit_group %tokens`: closes the group of copies started so far."""

    syntax = "$tokens attr-dict"
    tokens = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [TokenType()]


class AsyncWait(Operation, name="ttg.async_wait", reads=True, writes=True):
    """`ttg.async_wait %tokens {num, own}`: waits until at most `num` groups are under way. `own`: every lane reads only
    what it copied itself.
    """

    syntax = "$tokens attr-dict"
    tokens = variadic()
    num = integer(0)
    own = boolean()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [TokenType()]


class WarpSpecialize(Operation, name="ttg.warp_specialize"):
    """`ttg.warp_specialize default {...} partition num_warps(4) {...} {attributes}`: the program's warps run `default`
    while the first of `num_warps` further ones runs `partition`. The others of these have nothing to do, but a group of
    four has one share of the registers: `default_registers` and `partition_registers` of a lane (0: as at the start).

    It is the last operation of a function, all warps run what comes before it. A `gpu.barrier` in `default` is for the
    program's own warps; between both sides barriers in shared memory order what happens. There are no blocks in
    `partition`, so that a warp alone has all there is.
    """

    syntax = "custom<warp_specialize>"
    region_ends = ("ttg.warp_yield", "ttg.warp_return")
    default = region()
    partition = region()
    num_warps = integer(4)
    default_registers = integer(0)
    partition_registers = integer(0)

    def verify(self) -> None:
        block = self.block
        last = block is not None and len(block.ops) > 1 and block.ops[-2] is self
        parent = self.parent_op
        require(self, last and parent is not None and parent.name == "tt.func", "it is a function's last operation")
        for side in self.regions:
            require(self, len(side.blocks) == 1, "each side has one block", 1, len(side.blocks))
            require_types(self, "the block's arguments", types_of(side.block.arguments), [])
        require(self, self.num_warps > 0, "a partition has warps", "1 or more", self.num_warps)
        for inner in self.partition.block.ops:
            for op in inner.walk():
                held = [value for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)]
                require(self, not held and op.name != "gpu.barrier", "one warp runs the partition", found=op.name)


class WarpYield(Operation, name="ttg.warp_yield", terminator=True):
    """Ends the `default` side of a `ttg.warp_specialize`."""

    syntax = "attr-dict"

    def verify(self) -> None:
        require(self, isinstance(self.parent_op, WarpSpecialize), "ends a side of ttg.warp_specialize")


class WarpReturn(Operation, name="ttg.warp_return", terminator=True):
    """Ends the `partition` of a `ttg.warp_specialize`."""

    syntax = "attr-dict"

    def verify(self) -> None:
        require(self, isinstance(self.parent_op, WarpSpecialize), "ends a side of ttg.warp_specialize")


class CrossWarpReduce(Operation, name="ttg.cross_warp_reduce", reads=True, writes=True, encodings=ALIKE):
    """`"ttg.cross_warp_reduce"(%x, ...) ({combine}) {dst_warps}`: combines the values that the warps of a program have
    for each source, element by element; scalars or blocks of one shape. Level: tt to warp, in warp-level kernels.

    The warps `dst_warps` receive the result (all when absent), the others poison. All warps of the program meet here.
    The region is that of a `tt.reduce`.
    """

    region_ends = ("tt.reduce.return",)
    sources = variadic()
    dst_warps = integers()
    combine = region()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [value.type for value in operands]

    def verify(self) -> None:
        verify_cross_warp(self, self.sources, self.combine.block)
        fits = all(warp >= 0 for warp in self.dst_warps) and len(set(self.dst_warps)) == len(self.dst_warps)
        require(self, fits, "dst_warps lists ids of warps", "different ids from 0 on", list(self.dst_warps))


class CrossWarpScan(Operation, name="ttg.cross_warp_scan", reads=True, writes=True, encodings=ALIKE):
    """`"ttg.cross_warp_scan"(%x, ...) ({combine}) {reverse}`: warp w receives the combination of the values of warps 0
    to w, in this order (with `reverse` of the last warp down to w). Otherwise as `ttg.cross_warp_reduce`.
    """

    region_ends = ("tt.scan.return",)
    sources = variadic()
    reverse = boolean()
    combine = region()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: Attributes) -> Sequence[Type]:
        return [value.type for value in operands]

    def verify(self) -> None:
        verify_cross_warp(self, self.sources, self.combine.block)


def verify_cross_warp(op: Operation, sources: list[Value], combine: Block) -> None:
    """The sources have one shape, results their types; the region takes and gives elements of each."""
    require(op, len(sources) > 0, "there is nothing to combine")
    for value in sources:
        same = shape_of(value.type) == shape_of(sources[0].type)
        require(op, same, "the sources differ in shape", sources[0].type, value.type)
        number = not isinstance(element_type(value.type), PointerType | MemDescType)
        require(op, number, "only numbers cross warps", "integers or floats", value.type)
    require_types(op, "the results", types_of(op.results), types_of(sources))
    elements = [element_type(value.type) for value in sources]
    require_types(op, "the region's arguments", types_of(combine.arguments), [*elements, *elements])
    require_types(op, "the region's results", types_of(combine.terminator.operands), elements)


def memory_type(block: TensorType) -> MemDescType:
    """The shared-memory type that holds a block of type `block`."""
    return MemDescType(block.shape, block.element)


def require_contents(op: Operation, block: TensorType, there: MemDescType) -> None:
    """A block has the shape and the elements of a block in shared memory."""
    same = block.shape == there.shape and block.element is there.element
    require(op, same, "the block does not fit the memory", there, block)
