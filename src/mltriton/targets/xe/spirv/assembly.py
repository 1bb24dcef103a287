"""Region moves as inline assembly of Intel's compiler (SPV_INTEL_inline_assembly).

Level: binary -> binary. LLVM's back end takes no assembly with vectors, so a kernel calls functions whose names say
what they move (`llvm/regions.py`), and here each import becomes an `OpAsmINTEL` with the instructions of vISA, Intel's
virtual instruction set. Guarantees: a module without such calls comes back equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.layouts.regions import RegionMoves
from mltriton.targets.xe.llvm.regions import named
from mltriton.targets.xe.spirv.words import IMPORT, LINKAGE_ATTRIBUTES, Instruction, Op, SpirvModule, text_of, words_of

EXTENSION = "SPV_INTEL_inline_assembly"
CAPABILITY = 5606
TARGET = "spirv64-unknown-unknown"
CONSTRAINTS = "=rw,rw"  # the result and the operand, each a whole vector
REGISTER = 64  # bytes
TYPES = {1: "UB", 2: "UW", 4: "UD"}


def text_of_moves(moves: RegionMoves) -> str:
    """The instructions, in which $0 is the result and $1 the source."""
    type_, per_register = TYPES[moves.unit], REGISTER // moves.unit

    def variable(name: str, operand: str, size: int) -> str:
        return f".decl {name} v_type=G type={type_} num_elts={size // moves.unit} alias=<{operand},0>"

    def place(byte: int) -> str:
        return "{},{}".format(*divmod(byte // moves.unit, per_register))

    lines = [variable("TO", "$0", moves.result_bytes), variable("FROM", "$1", moves.source_bytes)]
    lines += [
        f"mov (M1_NM, {moves.length}) TO({place(number * moves.run)})<1> "
        f"FROM({place(moves.source(number))})<{moves.stride};1,0>"
        for number in range(moves.moves)
    ]
    return "\n".join(("{", *lines, "}"))


def assemble_region_moves(module: SpirvModule) -> SpirvModule:
    """Put assembly in the place of the functions that only have a name."""
    functions = {
        operands[0]: moves
        for operands in module.of(Op.DECORATE)
        if operands[1] == LINKAGE_ATTRIBUTES
        and operands[-1] == IMPORT
        and (moves := named(text_of(operands[2:]))) is not None
    }
    if not functions:
        return module
    version = (*module.header[:3], module.header[3] + 1, *module.header[4:])
    return SpirvModule(version, tuple(_assembled(module, functions)))


def _assembled(module: SpirvModule, functions: dict[int, RegionMoves]) -> Iterator[Instruction]:
    """The instructions with one more id, which names the assembly's target."""
    target = module.header[3]
    declared = {o[1]: (o[0], o[3]) for o in module.of(Op.FUNCTION)}
    capable, extended, defined, skipping = False, False, False, False
    for item in module.instructions:
        opcode, operands = item
        if not capable and opcode == Op.CAPABILITY:
            yield Instruction(Op.CAPABILITY, (CAPABILITY,))
            capable = True
        if not extended and opcode != Op.CAPABILITY:
            yield Instruction(Op.EXTENSION, words_of(EXTENSION))
            extended = True
        if not defined and opcode == Op.FUNCTION:
            yield from _definitions(target, declared, functions)
            defined = True
        if opcode in (Op.NAME, Op.DECORATE) and operands[0] in functions:
            continue
        skipping = skipping or (opcode == Op.FUNCTION and operands[1] in functions)
        if not skipping:
            is_call = opcode == Op.FUNCTION_CALL and operands[2] in functions
            yield Instruction(Op.ASM_CALL, operands) if is_call else item
        skipping = skipping and opcode != Op.FUNCTION_END


def _definitions(
    target: int, declared: dict[int, tuple[int, int]], functions: dict[int, RegionMoves]
) -> Iterator[Instruction]:
    yield Instruction(Op.ASM_TARGET, (target, *words_of(TARGET)))
    for function, moves in functions.items():
        result, type_ = declared[function]
        text = (*words_of(text_of_moves(moves)), *words_of(CONSTRAINTS))
        yield Instruction(Op.ASM, (result, function, type_, target, *text))
