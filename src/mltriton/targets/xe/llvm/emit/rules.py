"""The tables of emission functions: operation class -> rule. Level: intrinsic -> llvm."""

from __future__ import annotations

from mltriton.targets.simt import rules
from mltriton.targets.simt.context import Rules
from mltriton.targets.xe.llvm.emit import block_accesses, dot, elements, small_floats

# Rules that see whole blocks.
RULES: Rules = {**rules.RULES, **block_accesses.RULES, **dot.RULES, **small_floats.RULES}
# Rules that see one LLVM value of each block at a time.
ELEMENTS: Rules = elements.RULES
