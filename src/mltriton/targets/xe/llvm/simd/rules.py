"""The tables of emission functions of a SIMD kernel: operation class -> rule. Level: intrinsic -> llvm."""

from __future__ import annotations

from mltriton.targets.simt.context import Rules
from mltriton.targets.xe.llvm.simd import (
    atomics,
    control,
    debug,
    dot,
    elements,
    gather,
    global_memory,
    reduce,
    shapes,
    shared,
    small_floats,
)

# Rules that see whole blocks.
RULES: Rules = {
    **control.RULES,
    **shapes.RULES,
    **global_memory.RULES,
    **reduce.RULES,
    **dot.RULES,
    **shared.RULES,
    **atomics.RULES,
    **gather.RULES,
    **debug.RULES,
    **small_floats.RULES,
}
# Rules that see one LLVM value of each block at a time.
ELEMENTS: Rules = elements.RULES
