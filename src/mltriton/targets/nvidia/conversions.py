"""Conversions of narrow floats by instructions.

Level: `llvm`. Floats of 8 and 16 bits are integers of their width. Guarantees: widening is exact; narrowing rounds an
f32 to nearest even, in fp8 to the largest finite number where it is too large, as `llvm/emit/narrow.py` does.
"""

from __future__ import annotations

from mltriton.targets.llvm.types import I8, I16, I32, Value, constant, vector
from mltriton.targets.llvm.writer import Function

_NAMES = {"f8E4M3FN": "e4m3x2", "f8E5M2": "e5m2x2"}
PAIR = vector("half", 2)


def to_bf16(f: Function, value: Value) -> Value:
    """An f32 as bf16."""
    return f.bitcast(f.cast("fptrunc", value, value.type.with_element("bfloat")), I16)


def to_fp8(f: Function, value: Value, name: str) -> Value:
    """An f32 as a float of 8 bits of that name; where the device has the instruction."""
    both = f.pure_call(f"llvm.nvvm.ff.to.{_NAMES[name]}.rn", I16, constant(value.type, 0.0), value)
    return f.cast("trunc", both, I8)


def from_fp8(f: Function, bits: Value, name: str) -> Value:
    """A float of 8 bits of that name as f16, in the form of an i16; where the device has the instruction."""
    both = f.pure_call(f"llvm.nvvm.{_NAMES[name]}.to.f16x2.rn", PAIR, f.cast("zext", bits, I16))
    return f.cast("trunc", f.bitcast(both, I32), I16)
