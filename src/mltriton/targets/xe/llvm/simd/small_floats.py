"""Conversions of floats of 8 bits to f16 in a SIMD kernel.

Level: intrinsic -> llvm. As in a lane's program, but by the formula, which the vector compiler makes instructions for
32 elements of: the bytes of a word are read as regions of two.
"""

from __future__ import annotations

from mltriton.dialects import tt
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.types import Value, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.context import Rules
from mltriton.targets.xe.llvm.emit.small_floats import BYTES, rule
from mltriton.targets.xe.llvm.simd.intrinsics import read, same_bits
from mltriton.targets.xe.llvm.small_floats import halves


def _pairs(f: Function, kind: IRType, words: Value) -> tuple[Value, Value]:
    """Of i32 with four floats each two i32 with two f16 each, in order."""
    lanes = words.type.lanes
    bytes = same_bits(f, words, vector("i8", BYTES * lanes))
    first, second = (read(f, bytes, place, 2, rows=lanes, row_stride=BYTES) for place in (0, 2))
    return same_bits(f, halves(f, kind, first), words.type), same_bits(f, halves(f, kind, second), words.type)


RULES: Rules = {tt.FpToFp: rule(halves, _pairs)}
