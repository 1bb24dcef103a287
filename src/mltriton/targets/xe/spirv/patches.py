"""Changes to the words of a SPIR-V module that LLVM's back end cannot be asked for.

Level: binary -> binary. Each patch is a function from module to module, which `emission.py` applies, or `emulation` to
its own. Guarantees: a module without what a patch is about comes back equal.
"""

from __future__ import annotations

from mltriton.targets.xe.spirv.words import Instruction, Op, SpirvModule, words_of

# LLVM 22 writes OpPredicatedLoadINTEL and OpPredicatedStoreINTEL with two digits of their opcodes swapped.
PREDICATED = {6528: 6258, 6529: 6259}

# SPV_INTEL_optnone: its capability, and the bits of a function's control that go together.
OPTNONE, OPTNONE_CAPABILITY = "SPV_INTEL_optnone", 6094
_INLINE, _LEFT_ALONE = 1, 0x10000 | 2  # not to be optimised, nor inlined


def renumber_predicated_accesses(module: SpirvModule) -> SpirvModule:
    """Give predicated loads and stores the opcodes of their extension."""
    return module.with_instructions(
        Instruction(PREDICATED.get(opcode, opcode), operands) for opcode, operands in module.instructions
    )


def leave_kernels_alone(module: SpirvModule) -> SpirvModule:
    """Ask the driver not to optimise kernels, only the functions that they call."""
    kernels = {operands[1] for operands in module.of(Op.ENTRY_POINT)}
    asked = [
        Instruction(Op.CAPABILITY, (OPTNONE_CAPABILITY,)),
        *(item for item in module.instructions if item.opcode == Op.CAPABILITY),
        Instruction(Op.EXTENSION, words_of(OPTNONE)),
    ]
    others = (item for item in module.instructions if item.opcode != Op.CAPABILITY)
    return module.with_instructions((*asked, *(_left_alone(item, kernels) for item in others)))


def _left_alone(item: Instruction, kernels: set[int]) -> Instruction:
    """The start of a kernel with the bits that say so; anything else as it is."""
    if item.opcode != Op.FUNCTION or item.operands[1] not in kernels:
        return item
    type_, function, control, signature = item.operands
    return Instruction(item.opcode, (type_, function, control & ~_INLINE | _LEFT_ALONE, signature))
