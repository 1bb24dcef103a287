"""Which loads, stores and prefetches can be 2D block accesses of the hardware, or why not.

Level: tt to intrinsic. Takes a function; changes nothing. An access through a block pointer or a descriptor is one
where the block is a matrix, or several, whose rows (or columns) lie next to each other in memory. A pitch that is known
not to fit is a reason; what else the hardware requires of addresses and sizes, a target says
(`BlockIO.run_time_checks`). Which blocks a device takes says `targets/xe/layouts/block_loads.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.block_pointer_roots import origins
from mltriton.dialects import scf, tt, ttig
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.nesting import is_defined_inside
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import PointerType, TensorDescType, TensorType, block_of, byte_width
from mltriton.targets.base import BlockIO

BlockOperation = tt.Load | tt.Store | ttig.Prefetch | tt.DescriptorLoad | tt.DescriptorStore
Maker = tt.MakeTensorPtr | tt.MakeTensorDesc

OUTSIDE = -(1 << 20)  # a row or column so far before the first one that no block reaches it


def is_block_load(op: Operation | None) -> bool:
    """Whether an operation loads a block through a block pointer or a descriptor, whenever that is."""
    if isinstance(op, tt.Load):
        return is_block_pointer(op.ptr.type) and not op.volatile
    return isinstance(op, tt.DescriptorLoad)


@dataclass(frozen=True)
class BlockAccess:
    """One access. `contiguous` is the dimension that lies next to each other in memory where it can be a 2D block
    access; otherwise `reason` says why not and `hint` what to change; `fastest` is that dimension in all cases where it
    is known.
    """

    op: BlockOperation
    block: TensorType
    makers: tuple[Maker, ...] = ()
    contiguous: int | None = None
    reason: str | None = None
    hint: str | None = None
    fastest: int | None = None

    @property
    def transposes(self) -> bool:
        """Whether columns of the block are rows in memory."""
        return self.contiguous == self.block.rank - 2

    @property
    def stores(self) -> bool:
        """Whether it writes."""
        return isinstance(self.op, tt.Store | tt.DescriptorStore)

    @property
    def pads_with_nan(self) -> bool:
        """Whether elements outside of the tensor are NaN; what moves blocks makes them 0."""
        if isinstance(self.op, tt.DescriptorLoad):
            return any(isinstance(maker, tt.MakeTensorDesc) and maker.padding == "pad_nan" for maker in self.makers)
        return isinstance(self.op, tt.Load) and self.op.padding == "pad_nan"

    @property
    def pointer(self) -> Value:
        """The block pointer, the descriptor or the block of pointers."""
        return self.op.desc if isinstance(self.op, tt.DescriptorLoad | tt.DescriptorStore) else self.op.ptr


class BlockIOAnalysis:
    """The block accesses of one function, judged by a target's rules on pitch and base."""

    def __init__(self, function: tt.Func, limits: BlockIO) -> None:
        self.limits = limits
        self.axes = AxisInfoAnalysis(function)
        found = (op for op in function.walk() if isinstance(op, BlockOperation))
        self.accesses = {op: access for op in found if (access := self._judged(op)) is not None}

    def _judged(self, op: BlockOperation) -> BlockAccess | None:
        """What is known of an access; None of one to a single element."""
        if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
            block = cast(TensorDescType, op.desc.type).block
            value = op.result if isinstance(op, tt.DescriptorLoad) else op.value
            return self._of_makers(op, cast(TensorType, value.type), origins(op.desc, tt.MakeTensorDesc), block.rank)
        block = block_of(op.ptr.type)
        if block is None:
            return None
        if not is_block_pointer(op.ptr.type):
            pointee = cast(PointerType, block.element).pointee
            return BlockAccess(
                op,
                block.with_element(pointee),
                reason="each element has a pointer of its own",
                hint="Describe the tensor with tl.make_tensor_descriptor or tl.make_block_ptr.",
            )
        return self._of_makers(op, block, origins(op.ptr, tt.MakeTensorPtr), block.rank)

    def _of_makers(self, op: BlockOperation, block: TensorType, makers: Sequence[Maker], rank: int) -> BlockAccess:
        known = BlockAccess(op, block, tuple(makers))
        if rank < 2:
            return _refused(known, "the block has one dimension", "Load and store blocks of two dimensions.")
        if not makers:
            return _refused(known, "where the pointer comes from is not known", None)
        if byte_width(block.element) not in (1, 2, 4, 8):
            return _refused(known, f"elements of type {block.element} are no whole bytes", None)
        dims = {self._contiguous(maker) for maker in makers}
        if len(dims) != 1 or None in dims:
            hint = "Give the stride of the last dimension as 1 or as a tl.constexpr."
            return _refused(known, "no stride is known to be 1", hint)
        contiguous = cast(int, dims.pop())
        if contiguous < rank - 2:
            hint = "Permute the tensor's dimensions, and the block's by tl.permute."
            reason = "what lies next to each other in memory is a dimension before the last two"
            return _refused(known, reason, hint, contiguous)
        return self._of_surface(known, contiguous)

    def _contiguous(self, maker: Maker) -> int | None:
        """The dimension with stride 1; the fastest in a block pointer's order where both have it."""
        ones = [dim for dim, stride in enumerate(maker.strides) if self.axes.of(stride).number == 1]
        if isinstance(maker, tt.MakeTensorPtr) and len(ones) > 1:
            return maker.order[0] if maker.order[0] in ones else ones[-1]
        return ones[-1] if ones else None

    def _of_surface(self, access: BlockAccess, contiguous: int) -> BlockAccess:
        """Whether the pitch is known not to fit."""
        width, rank = byte_width(access.block.element), access.block.rank
        if access.stores and contiguous == rank - 2:
            return _refused(access, "block messages store rows, and columns lie in memory", None, contiguous)
        for maker in access.makers:
            pitch = self.axes.of(maker.strides[2 * rank - 3 - contiguous])
            multiple = self.limits.pitch_multiple
            if pitch.number is not None and pitch.number * width % multiple:
                found = f"rows are {pitch.number * width} bytes apart, no multiple of {multiple}"
                hint = f"Pad the rows to a multiple of {multiple // width or 1} elements."
                return _refused(access, found, hint, contiguous)
        return BlockAccess(access.op, access.block, access.makers, contiguous=contiguous, fastest=contiguous)


def _refused(access: BlockAccess, reason: str, hint: str | None, fastest: int | None = None) -> BlockAccess:
    return BlockAccess(access.op, access.block, access.makers, reason=reason, hint=hint, fastest=fastest)


def parts(op: BlockOperation) -> tuple[list[Value], list[Value]] | None:
    """What an access says of its tensor, and the offsets of its block; None where the pointer is made elsewhere."""
    if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore):
        return [op.desc], op.indices
    maker = op.ptr.defining_op
    return ([maker.base, *maker.shape, *maker.strides], maker.offsets) if isinstance(maker, tt.MakeTensorPtr) else None


def invariant_offsets(op: BlockOperation) -> tuple[bool, ...] | None:
    """Which offsets of an access its innermost loop does not change; None where it changes the tensor, or there is no
    loop that counts.
    """
    loop = op.parent_op
    while loop is not None and not isinstance(loop, scf.For | scf.While):
        loop = loop.parent_op
    found = parts(op)
    if not isinstance(loop, scf.For) or found is None or any(is_defined_inside(value, loop) for value in found[0]):
        return None
    return tuple(not is_defined_inside(offset, loop) for offset in found[1])
