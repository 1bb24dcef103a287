"""`ttig`: pieces of a warp's values on targets whose values live in registers, prefetches, and barriers in two halves.

Level: warp to intrinsic; prefetches from ttg on. `extract` and `glue` number the pieces in column-major order of the
pieces (first down the rows, then to the next column), the order in which a multi-block 2D load delivers registers, so
that an extract is a contiguous register slice.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.dialects import gpu, ttg
from mltriton.ir.checks import require, require_attributes, require_type
from mltriton.ir.definition import boolean, enum, integer, operand, optional, variadic
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import PointerType, TensorType

BLOCK_IO = "ttig.block_io"  # unit, of a block access: the run-time checks of its matrix hold (`guard-block-io`)
ADDRESS = "ttig.address"  # i32, of a block access: the number of its address (`allocate-addresses`)


class Extract(Operation, name="ttig.extract", pure=True):
    """`ttig.extract %x[2] : tensor<32x32xf16> -> tensor<8x16xf16>`: piece number `index`."""

    syntax = "$source `[` $index `]` attr-dict `:` type($source) `->` type(result)"
    source = operand()
    index = integer()

    def verify(self) -> None:
        source, result = block_of(self.source), block_of(self.result)
        if source is None or result is None:
            reject(self, "takes pieces of blocks", found=f"{self.source.type} to {self.result.type}")
        count = piece_count(self, result, source)
        require_attributes(self, "index")
        require(self, 0 <= self.index < count, "no such piece", f"0 to {count - 1}", self.index)

    def fold(self) -> Value | None:
        if self.source.type is self.result.type:
            return self.source
        whole = self.source.defining_op
        if isinstance(whole, Glue) and whole.pieces[0].type is self.result.type:
            return whole.pieces[self.index]
        return None


class Glue(Operation, name="ttig.glue", pure=True):
    """`ttig.glue %p0, %p1 : ... -> tensor<32x64xf16>`: equal pieces put together."""

    syntax = "$pieces attr-dict `:` functional-type($pieces, results)"
    pieces = variadic()

    def verify(self) -> None:
        for piece in self.pieces:
            require_type(self, "a piece", piece.type, self.pieces[0].type)
        piece, result = block_of(self.pieces[0]) if self.pieces else None, block_of(self.result)
        if piece is None or result is None:
            reject(self, "glues blocks together", found=str(self.result.type))
        count = piece_count(self, piece, result)
        require(self, count == len(self.pieces), "another number of pieces", count, len(self.pieces))


class Prefetch(Operation, name="ttig.prefetch", reads=True, writes=True):
    """`ttig.prefetch %ptr`: brings a block nearer, with `write` to be written; no result. Any address will do."""

    syntax = (
        "$ptr (`,` $mask^)? any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    ptr = operand()
    mask = optional()
    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")
    write = boolean()


class BarrierArrive(Operation, name="ttig.barrier_arrive", reads=True, writes=True, looks_around=True):
    """`ttig.barrier_arrive`: this warp has come to a meeting of all warps, and goes on. The `ttig.barrier_wait` that
    belongs to it is the next barrier of any kind, in the same block. Together they are a barrier that orders no memory
    accesses: warps stay together.
    """

    syntax = "attr-dict"

    def verify(self) -> None:
        following = next(filter(meets, _neighbours(self, 1)), None)
        if not isinstance(following, BarrierWait):
            found = following.name if following is not None else "the end of the block"
            reject(self, "the next barrier must be its wait", expected=BarrierWait.name, found=found)


class BarrierWait(Operation, name="ttig.barrier_wait", reads=True, writes=True, looks_around=True):
    """`ttig.barrier_wait`: waits until all warps of the program have come to the `ttig.barrier_arrive` before it."""

    syntax = "attr-dict"

    def verify(self) -> None:
        before = next(filter(meets, _neighbours(self, -1)), None)
        if not isinstance(before, BarrierArrive):
            found = before.name if before is not None else "the start of the block"
            reject(self, "waits for what has not arrived", expected=BarrierArrive.name, found=found)


def meets(op: Operation) -> bool:
    """Whether all warps meet at the operation, or at one inside."""
    return any(isinstance(inner, BARRIERS) for inner in op.walk())


BARRIERS = (gpu.Barrier, ttg.CrossWarpReduce, ttg.CrossWarpScan, BarrierArrive, BarrierWait)


def _neighbours(op: Operation, step: int) -> Iterator[Operation]:
    """What comes after an operation in its block (`step` 1), or before it, the nearest first."""
    assert op.block is not None
    position = op.block.position(op)
    return iter(op.block.ops[position + 1 :] if step > 0 else op.block.ops[:position][::-1])


def block_of(value: Value) -> TensorType | None:
    """The block that a value is or points to."""
    type = value.type.pointee if isinstance(value.type, PointerType) else value.type
    return type if isinstance(type, TensorType) else None


def piece_count(op: Operation, piece: TensorType, whole: TensorType) -> int:
    """How many pieces make the whole."""
    fits = piece.rank == whole.rank and piece.element is whole.element
    fits = fits and all(size % part == 0 for size, part in zip(whole.shape, piece.shape, strict=True))
    require(op, fits, "the piece does not divide the block", whole, piece)
    return whole.size // piece.size
