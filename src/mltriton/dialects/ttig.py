"""`ttig`: pieces of a warp's values on targets whose values live in registers, and prefetches.

Level: warp to intrinsic. `extract` and `glue` number the pieces in column-major order of the pieces (first down the
rows, then to the next column), the order in which a multi-block 2D load delivers registers, so that an extract is a
contiguous register slice.
"""

from __future__ import annotations

from mltriton.ir.definition import enum, integer, operand, optional, variadic
from mltriton.ir.operation import Operation


class Extract(Operation):
    """`ttig.extract %x[2] : tensor<32x32xf16> -> tensor<8x16xf16>`: piece number `index`."""

    name = "ttig.extract"
    syntax = "$source `[` $index `]` attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()
    index = integer()


class Glue(Operation):
    """`ttig.glue %p0, %p1 : ... -> tensor<32x64xf16>`: equal pieces put together."""

    name = "ttig.glue"
    syntax = "$pieces attr-dict `:` functional-type($pieces, results)"
    pure = True
    pieces = variadic()


class Prefetch(Operation):
    """`ttig.prefetch %ptr`: brings a block nearer; no result."""

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
