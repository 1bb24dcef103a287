"""Changes to the words of a SPIR-V module that LLVM's back end cannot be asked for.

Level: binary -> binary. Each patch is a function from module to module; `emission.py` lists those that a kind of code
needs. Guarantees: a module without what a patch is about comes back equal.
"""

from __future__ import annotations

from mltriton.targets.xe.spirv.words import Instruction, Op, SpirvModule, words_of

# LLVM 22 writes OpPredicatedLoadINTEL and OpPredicatedStoreINTEL with two digits of their opcodes swapped.
PREDICATED = {6528: 6258, 6529: 6259}

VECTOR_COMPUTE_CAPABILITIES = (5617, 5619)  # VectorComputeINTEL, VectorAnyINTEL
VECTOR_COMPUTE_EXTENSION = "SPV_INTEL_vector_compute"
VECTOR_COMPUTE_FUNCTION = 5626  # decoration of each function

# Sections of a module in order: capabilities, extensions, ... annotations (up to the first type).
_PREAMBLE = 18  # opcodes up to OpMemberDecorate that stand before the first type lie below OpTypeVoid
_ANNOTATIONS = {71, 72, 73, 74, 75, 332, 5632, 5633}
_DEBUG = {2, 3, 4, 5, 6, 7, 8, 317, 330, 331}


def renumber_predicated_accesses(module: SpirvModule) -> SpirvModule:
    """Give predicated loads and stores the opcodes of their extension."""
    return module.with_instructions(
        Instruction(PREDICATED.get(opcode, opcode), operands) for opcode, operands in module.instructions
    )


def mark_vector_compute(module: SpirvModule) -> SpirvModule:
    """Say that each function is one of Vector Compute: one work item stands for a whole warp."""
    functions = [operands[1] for operands in module.of(Op.FUNCTION)]
    capabilities = [Instruction(Op.CAPABILITY, (number,)) for number in VECTOR_COMPUTE_CAPABILITIES]
    extension = Instruction(Op.EXTENSION, words_of(VECTOR_COMPUTE_EXTENSION))
    decorations = [Instruction(Op.DECORATE, (function, VECTOR_COMPUTE_FUNCTION)) for function in functions]
    before = [item for item in module.instructions if item.opcode == Op.CAPABILITY]
    rest = list(module.instructions[len(before) :])
    types = next((index for index, item in enumerate(rest) if not _is_preamble(item)), len(rest))
    return module.with_instructions([*before, *capabilities, extension, *rest[:types], *decorations, *rest[types:]])


def _is_preamble(item: Instruction) -> bool:
    """Whether an instruction stands before the types, constants and functions."""
    return item.opcode <= _PREAMBLE or item.opcode in _ANNOTATIONS or item.opcode in _DEBUG
