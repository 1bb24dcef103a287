"""Changes to the words of a SPIR-V module that LLVM's back end cannot be asked for.

Level: binary -> binary. Each patch is a function from module to module; `emission.py` applies it. Guarantees: a module
without what a patch is about comes back equal.
"""

from __future__ import annotations

from mltriton.targets.xe.spirv.words import Instruction, SpirvModule

# LLVM 22 writes OpPredicatedLoadINTEL and OpPredicatedStoreINTEL with two digits of their opcodes swapped.
PREDICATED = {6528: 6258, 6529: 6259}


def renumber_predicated_accesses(module: SpirvModule) -> SpirvModule:
    """Give predicated loads and stores the opcodes of their extension."""
    return module.with_instructions(
        Instruction(PREDICATED.get(opcode, opcode), operands) for opcode, operands in module.instructions
    )
