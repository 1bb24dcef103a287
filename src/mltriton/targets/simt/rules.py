"""The tables of emission functions: operation class -> rule. Level: intrinsic -> llvm."""

from __future__ import annotations

from mltriton.targets.simt import atomics, control, debug, elements, gather, global_memory, reduce, shapes, shared
from mltriton.targets.simt.context import Rules

# Rules that see whole blocks.
RULES: Rules = {
    **control.RULES,
    **shapes.RULES,
    **global_memory.RULES,
    **reduce.RULES,
    **shared.RULES,
    **atomics.RULES,
    **gather.RULES,
    **debug.RULES,
}
# Rules that see one LLVM value of each block at a time.
ELEMENTS: Rules = elements.RULES
