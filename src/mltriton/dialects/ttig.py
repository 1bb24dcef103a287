"""`ttig`: pieces of a warp's values on targets whose values live in registers, and prefetches.

Level: warp to intrinsic. `extract` and `glue` number the pieces in column-major order of the pieces (first down the
rows, then to the next column), the order in which a multi-block 2D load delivers registers, so that an extract is a
contiguous register slice.
"""

from __future__ import annotations

from mltriton.ir.checks import require, require_attributes, require_type
from mltriton.ir.definition import boolean, enum, integer, operand, optional, variadic
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import PointerType, TensorType


class Extract(Operation):
    """`ttig.extract %x[2] : tensor<32x32xf16> -> tensor<8x16xf16>`: piece number `index`."""

    name = "ttig.extract"
    syntax = "$source `[` $index `]` attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()
    index = integer()

    def verify(self) -> None:
        source, result = block_of(self.source), block_of(self.result)
        if source is None or result is None:
            reject(self, "takes pieces of blocks", found=f"{self.source.type} to {self.result.type}")
        count = piece_count(self, result, source)
        require_attributes(self, "index")
        require(self, 0 <= self.index < count, "no such piece", f"0 to {count - 1}", self.index)


class Glue(Operation):
    """`ttig.glue %p0, %p1 : ... -> tensor<32x64xf16>`: equal pieces put together."""

    name = "ttig.glue"
    syntax = "$pieces attr-dict `:` functional-type($pieces, results)"
    pure = True
    pieces = variadic()

    def verify(self) -> None:
        for piece in self.pieces:
            require_type(self, "a piece", piece.type, self.pieces[0].type)
        piece, result = block_of(self.pieces[0]) if self.pieces else None, block_of(self.result)
        if piece is None or result is None:
            reject(self, "glues blocks together", found=str(self.result.type))
        count = piece_count(self, piece, result)
        require(self, count == len(self.pieces), "another number of pieces", count, len(self.pieces))


class Prefetch(Operation):
    """`ttig.prefetch %ptr`: brings a block nearer, with `write` to be written; no result. Any address will do."""

    name = "ttig.prefetch"
    syntax = (
        "$ptr (`,` $mask^)? any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    reads = True
    writes = True
    ptr = operand()
    mask = optional()
    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")
    write = boolean()


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
