"""Printing from a running kernel, by the driver's vprintf.

Level: `llvm`. Takes a format and values as C's printf does; they travel in local memory, each aligned to its size.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.targets.llvm.types import I8, I32, PTR, Value, vector
from mltriton.targets.llvm.writer import Function

PRINTF = "vprintf"
FORMAT_PTR = vector("ptr addrspace(1)", 1)


def print_line(f: Function, form: Value, values: Sequence[Value]) -> None:
    """Print values (i32, i64 or double) by a format that lies in global memory."""
    offsets: list[int] = []
    end = 0
    for value in values:
        offsets.append(-(-end // value.type.bytes) * value.type.bytes)
        end = offsets[-1] + value.type.bytes
    slots = f.alloca(I8, max(end, 1), align=8)
    for offset, value in zip(offsets, values, strict=True):
        f.store(value, f.gep(slots, offset, I8))
    text = f.pure(f"addrspacecast {form} to ptr", PTR)
    f.declared_call(PRINTF, I32, text, slots)
