"""Values that cross warps: through shared memory, between barriers.

Level: warp. Every exchange has a buffer of its own: wait until everybody is done with its last contents, store one's
part, wait, load.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import arith, gpu, tt, ttg
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Value
from mltriton.ir.types import MemDescType, TensorType, Type
from mltriton.layouts import tiling
from mltriton.layouts.base import SharedEncoding
from mltriton.layouts.encodings import Shape

Offsets = Sequence[Value | None]


class Exchange:
    """Emits exchanges at the builder's insertion point."""

    def __init__(self, builder: Builder, num_warps: int) -> None:
        self.builder = builder
        self.num_warps = num_warps

    def buffer(self, shape: Shape, element: Type, encoding: SharedEncoding | None = None) -> Value:
        """Shared memory for a whole block, free to be written by every warp."""
        memory = self.memory(shape, element, encoding)
        self.barrier()
        return memory

    def memory(self, shape: Shape, element: Type, encoding: SharedEncoding | None = None) -> Value:
        """Shared memory for a whole block; before a barrier others may still use it."""
        return self.builder.emit(ttg.LocalAlloc, None, result_types=[MemDescType(shape, element, encoding)])

    def barrier(self) -> None:
        """All warps meet."""
        self.builder.create(gpu.Barrier)

    def store(self, value: Value, memory: Value, offsets: Offsets) -> None:
        """Store a part into the buffer at `offsets` (None = 0)."""
        assert isinstance(value.type, TensorType)
        self.builder.create(ttg.LocalStore, value, self.window(memory, offsets, value.type.shape))

    def load(self, memory: Value, offsets: Offsets, type: TensorType) -> Value:
        """Load a part of the buffer; `type` is the part's."""
        return self.builder.emit(ttg.LocalLoad, self.window(memory, offsets, type.shape), result_types=[type])

    def window(self, memory: Value, offsets: Offsets, shape: Shape) -> Value:
        """The part of the buffer of `shape` at `offsets` (None = 0)."""
        whole = memory.type
        assert isinstance(whole, MemDescType)
        indices = [offset or arith.integer(self.builder, 0) for offset in offsets]
        window = MemDescType(shape, whole.element, whole.encoding, whole.mutable)
        return self.builder.emit(ttg.MemDescSubview, memory, indices, result_types=[window])

    def block_of_one(self, value: Value) -> Value:
        """A value as a block with a leading dimension of size 1; a scalar as a block of one element."""
        if not isinstance(value.type, TensorType):
            return self.builder.emit(tt.Splat, value, result_types=[self.local_type((1,), value.type)])
        shape = (1, *value.type.shape)
        return self.builder.emit(tt.Reshape, value, result_types=[self.local_type(shape, value.type.element)])

    def local_type(self, shape: Shape, element: Type) -> TensorType:
        """The type of a block that a warp holds whole."""
        return TensorType(shape, element, tiling.replicated(shape, self.num_warps))
