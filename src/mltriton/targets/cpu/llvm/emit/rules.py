"""The table of emission functions: operation class -> rule. Level: intrinsic -> llvm."""

from __future__ import annotations

from mltriton.targets.cpu.llvm.emit import arith, atomics, casts, control, debug, floats, memory, reduce, tile
from mltriton.targets.cpu.llvm.emit.context import Rules

RULES: Rules = {
    **arith.RULES,
    **floats.RULES,
    **casts.RULES,
    **control.RULES,
    **memory.RULES,
    **tile.RULES,
    **reduce.RULES,
    **atomics.RULES,
    **debug.RULES,
}
