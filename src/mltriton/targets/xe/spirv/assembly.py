"""Region moves, and conversions of small floats, as inline assembly of Intel's compiler (SPV_INTEL_inline_assembly).

Level: binary -> binary. LLVM's back end takes no assembly with vectors, so a kernel calls functions that are only
declared (`llvm/region_calls.py`, `llvm/small_floats.py`), and here each import whose meaning is known becomes an
`OpAsmINTEL` with the instructions of vISA, Intel's virtual instruction set. Guarantees: a module without such calls
comes back equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mltriton.ir.floats import float_to_bits
from mltriton.ir.types import F8E5M2, F16
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.types import Type
from mltriton.targets.xe.block_limits import SUB_GROUP
from mltriton.targets.xe.layouts.region_moves import RegionMoves
from mltriton.targets.xe.llvm.small_floats import CARRIED, MAGNITUDE, ONE, SCALE, SIGN, Widening
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
    last = len(moves.stages) - 1
    names = ["FROM", *(f"STAGE{number}" for number in range(1, last + 1)), "TO"]

    def variable(name: str, size: int, alias: str = "") -> str:
        return f".decl {name} v_type=G type={type_} num_elts={size // moves.unit}{alias}"

    def place(byte: int) -> str:
        return "{},{}".format(*divmod(byte // moves.unit, per_register))

    lines = [
        variable("TO", moves.result_bytes, " alias=<$0,0>"),
        variable("FROM", moves.source_bytes, " alias=<$1,0>"),
        *(variable(name, stage.result_bytes) for name, stage in zip(names[1:-1], moves.stages, strict=False)),
    ]
    for stage, source, target in zip(moves.stages, names, names[1:], strict=False):
        lines += [
            f"mov (M1_NM, {stage.length}) {target}({place(number * stage.run)})<1> "
            f"{source}({place(stage.source(number))})<{stage.stride};1,0>"
            for number in range(stage.moves)
        ]
    return "\n".join(("{", *lines, "}"))


def text_of_widening(kind: IRType, source: Type) -> str:
    """The instructions of `small_floats.halves` (of i8), or of `small_floats.pairs_of_halves` (of an i32)."""
    count = source.bytes * SUB_GROUP  # floats
    is_half = kind is F8E5M2
    views = {
        "BYTES": ("UB" if is_half else "B", count, " alias=<$1,0>"),
        "WORDS": ("UW" if is_half else "W", count, " alias=<$0,0>"),
        "PAIRS": ("UD", count // 2, " alias=<$0,0>"),
        "HALVES": ("HF", count, " alias=<$0,0>"),
        "CARRY": ("UD", count // 2, ""),
    }
    lines = [f".decl {name} v_type=G type={type_} num_elts={size}{of}" for name, (type_, size, of) in views.items()]
    # Of four bytes in a word the first two of all lanes, then the others; or all as they come.
    places = [(0, "<4;2,1>"), (2, "<4;2,1>")] if source.bits == 32 else [(at, "<1;1,0>") for at in range(0, count, 32)]
    for register, (byte, region) in enumerate(places):
        read = "{},{}".format(*divmod(byte, REGISTER))
        lines.append(f"shl (M1_NM, 32) WORDS({register},0)<1> BYTES({read}){region} {8 if is_half else 7}:w")
    if not is_half:
        lines += _fields_and_scale(count // 32)
    return "\n".join(("{", *lines, "}"))


def _fields_and_scale(registers: int) -> list[str]:
    """Of f8E4M3FN, moved with its sign into the upper nine bits of 16: the sign above, NaN, and the exponent's bias."""
    lines: list[str] = []
    size = 16 * min(registers, 2)
    kept, one, carried = (f"0x{each * 0x10001:08X}:ud" for each in (SIGN | MAGNITUDE, ONE, CARRIED))
    for first in range(0, registers, size // 16):
        at = f"({first},0)"
        lines += [
            f"and (M1_NM, {size}) PAIRS{at}<1> PAIRS{at}<1;1,0> {kept}",
            f"add (M1_NM, {size}) CARRY{at}<1> PAIRS{at}<1;1,0> {one}",
            f"and (M1_NM, {size}) CARRY{at}<1> CARRY{at}<1;1,0> {carried}",
            f"or (M1_NM, {size}) PAIRS{at}<1> PAIRS{at}<1;1,0> CARRY{at}<1;1,0>",
        ]
    scale = f"0x{float_to_bits(SCALE, F16):04X}:hf"
    lines += [f"mul (M1_NM, 32) HALVES({r},0)<1> HALVES({r},0)<1;1,0> {scale}" for r in range(registers)]
    return lines


def _assembly(meaning: object) -> str:
    """The instructions of a function that does this."""
    if isinstance(meaning, RegionMoves):
        return text_of_moves(meaning)
    assert isinstance(meaning, Widening), meaning
    return text_of_widening(*meaning)


def put_assembly(module: SpirvModule, meanings: Mapping[str, object]) -> SpirvModule:
    """Put assembly in the place of the functions of these names."""
    functions = {
        operands[0]: _assembly(meanings[name])
        for operands in module.of(Op.DECORATE)
        if operands[1] == LINKAGE_ATTRIBUTES and operands[-1] == IMPORT and (name := text_of(operands[2:])) in meanings
    }
    if not functions:
        return module
    version = (*module.header[:3], module.header[3] + 1, *module.header[4:])
    return SpirvModule(version, tuple(_assembled(module, functions)))


def _assembled(module: SpirvModule, functions: dict[int, str]) -> Iterator[Instruction]:
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


def _definitions(target: int, declared: dict[int, tuple[int, int]], functions: dict[int, str]) -> Iterator[Instruction]:
    yield Instruction(Op.ASM_TARGET, (target, *words_of(TARGET)))
    for function, text in functions.items():
        result, type_ = declared[function]
        yield Instruction(Op.ASM, (result, function, type_, target, *words_of(text), *words_of(CONSTRAINTS)))
