"""`tt.dot` by `mma.sync`.

Level: intrinsic -> llvm. The operands lie in the lanes as the instruction takes them (`#ttg.dot_op` of
`#ttg.nvidia_mma`), 4 bytes of neighbours along k in a word. Products of f32 are those of TF32 where the program says
so, each operand rounded to the nearest. Otherwise each operand is the sum of two TF32 numbers, and the three products
that matter are added up, which errs by 2**-21 of a product. Narrow sums are added up in f32 and rounded for each
instruction, but for f16 those of f16, which the instruction adds up itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import tt
from mltriton.errors import BackendError
from mltriton.ir.types import BF16, F8E4M3, F8E5M2, F16, F32, F64, I8, MemDescType, TensorType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.layouts.nvidia import NvidiaMmaEncoding
from mltriton.targets.llvm import types
from mltriton.targets.llvm.types import Type, Value
from mltriton.targets.llvm.writer import Function
from mltriton.targets.nvidia.accesses import in_words
from mltriton.targets.nvidia.assembly import ptx
from mltriton.targets.nvidia.calls import as_integer
from mltriton.targets.nvidia.machine import NvidiaMachine
from mltriton.targets.simt.context import Emitted, Emitter, Rules

WORD_BITS = 32
_NAMES: dict[IRType, str] = {F16: "f16", BF16: "bf16", F32: "tf32", F64: "f64", F8E4M3: "e4m3", F8E5M2: "e5m2"}
_SHAPES: dict[int, str] = {64: "m16n8k8", 32: "m16n8k8", 16: "m16n8k16", 8: "m16n8k32"}  # by bits of an operand
_SUMS: dict[str, Type] = {"f32": types.F32, "f64": types.F64, "s32": types.I32, "f16": types.I32}


def _dot(e: Emitter, op: tt.Dot) -> Emitted:
    a, c = (cast(TensorType, value.type) for value in (op.a, op.c))
    if not isinstance(c.encoding, NvidiaMmaEncoding):
        raise BackendError("a dot whose result is not in the layout of mma.sync", found=str(c))
    left, right = ([words_of(e.function, e.registers(value))] for value in (op.a, op.b))
    if a.element is F32:
        left, right = (_tf32(e.function, words[0], op.precision == "tf32") for words in (left, right))
    name = sums_of(op)
    sums = as_sums(e, op, name)
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right)) if i + j < len(left)]
    for i, j in reversed(pairs):
        sums = _product(e, op, name, left[i], right[j], sums)
    return e.held(from_sums(e, op, name, sums), op.result.type)


def name_of(element: IRType, unsigned: bool) -> str:
    """What the instruction calls elements of an operand."""
    if element is I8:
        return "u8" if unsigned else "s8"
    if element not in _NAMES:
        expected = ", ".join(map(str, (*_NAMES, I8)))
        raise BackendError("no matrix product of these elements", expected=expected, found=str(element))
    return _NAMES[element]


def sums_of(op: tt.Dot) -> str:
    """What the instruction adds products up in."""
    a, c = cast(TensorType | MemDescType, op.a.type).element, element_type(op.result.type)
    if a is I8:
        return "s32"
    return "f64" if a is F64 else "f16" if a is c is F16 else "f32"


def words_of(f: Function, registers: Sequence[Value]) -> list[Value]:
    """Registers as words of 32 bits, or as they are where they are wider; f32 as integers."""
    bits = [as_integer(f, register) if register.type.bits <= WORD_BITS else register for register in registers]
    return bits if bits[0].type.bits > WORD_BITS else in_words(f, bits, types.I32)


def _tf32(f: Function, words: Sequence[Value], is_enough: bool) -> list[list[Value]]:
    """f32 rounded to TF32, and unless that is enough what is left, rounded too."""

    def rounded(value: Value) -> Value:
        return ptx(f, "cvt.rna.tf32.f32 $0, $1;", [types.I32], value, pure=True)[0]

    numbers = [f.bitcast(word, types.F32) for word in words]
    high = [rounded(number) for number in numbers]
    if is_enough:
        return [high]
    rest = [f.fsub(number, f.bitcast(top, types.F32)) for number, top in zip(numbers, high, strict=True)]
    return [high, [rounded(number) for number in rest]]


def as_sums(e: Emitter, op: tt.Dot, name: str) -> list[Value]:
    """The accumulator as the instruction takes it."""
    registers = e.registers(op.c)
    if name == "f16":
        return words_of(e.function, registers)
    return [e.widen(register, op.c.type) for register in registers] if name == "f32" else list(registers)


def from_sums(e: Emitter, op: tt.Dot, name: str, sums: Sequence[Value]) -> list[Value]:
    """What the instruction gives as registers of the result."""
    f = e.function
    if name == "f16":
        pairs = [f.bitcast(word, types.I16.with_lanes(2)) for word in sums]
        return [f.extract(pair, number) for pair in pairs for number in range(2)]
    return [e.narrow(value, op.result.type) for value in sums] if name == "f32" else list(sums)


def _product(
    e: Emitter, op: tt.Dot, name: str, left: Sequence[Value], right: Sequence[Value], sums: Sequence[Value]
) -> list[Value]:
    """One instruction; of f64 as many as the device needs for the size of the others'."""
    a, b = element_type(op.a.type), element_type(op.b.type)
    factors = f"{name_of(a, op.a_unsigned)}.{name_of(b, op.b_unsigned)}"
    if name == "f64" and not cast(NvidiaMachine, e.machine).device.wide_f64:
        return _by_quarters(e.function, left, right, sums)
    shape = _SHAPES[_bits(left[0], a)]
    return _mma(e.function, f"{shape}.row.col.{name}.{factors}.{name}", name, left, right, sums)


def _bits(word: Value, element: IRType) -> int:
    return word.type.bits if element is F64 else {F32: 32, F16: 16, BF16: 16}.get(element, 8)


def _mma(
    f: Function, what: str, name: str, left: Sequence[Value], right: Sequence[Value], sums: Sequence[Value]
) -> list[Value]:
    result, numbers = _SUMS[name], iter(range(99))
    groups = [", ".join(f"${next(numbers)}" for _ in group) for group in (sums, left, right, sums)]
    listed = ", ".join(f"{{{group}}}" for group in groups)
    operands = [*left, *right, *sums]
    return ptx(f, f"mma.sync.aligned.{what} {listed};", [result] * len(sums), *operands)


def _by_quarters(f: Function, left: Sequence[Value], right: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
    """16 x 8 x 8 products of f64 by instructions of 8 x 8 x 4."""
    what, made = "m8n8k4.row.col.f64.f64.f64.f64", list(sums)
    for row in range(2):
        for step in range(2):
            part = slice(2 * row, 2 * row + 2)
            made[part] = _mma(f, what, "f64", [left[row + 2 * step]], [right[step]], made[part])
    return made


RULES: Rules = {tt.Dot: _dot}
