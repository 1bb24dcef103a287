"""The table of emission functions: operation class -> rule. Level: intrinsic -> llvm."""

from __future__ import annotations

from mltriton.targets.cpu.llvm.emit import assembly, atomics, avx512, debug, functions, memory, reduce, tile
from mltriton.targets.cpu.llvm.emit.context import Rules
from mltriton.targets.llvm.emit import arith, casts, control, floats

RULES: Rules = {
    **arith.RULES,
    **floats.RULES,
    **functions.RULES,
    **casts.RULES,
    **avx512.RULES,
    **control.RULES,
    **memory.RULES,
    **tile.RULES,
    **reduce.RULES,
    **atomics.RULES,
    **debug.RULES,
    **assembly.RULES,
}
