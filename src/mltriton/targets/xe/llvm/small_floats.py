"""Floats of 8 bits as f16, which the matrix engine multiplies: what is done to their bits, and calls that do it.

Level: `llvm`. f8E5M2 is the upper half of f16. f8E4M3FN has the same fields one bit further down, and an exponent that
counts from 8 less: a product with 256 puts that right, also of denormals. Guarantees: exact; NaN, and f8E5M2's
infinities, stay what they are. In a lane's program a call is that of a function that is only declared, as for moves of
regions: the SPIR-V module has inline assembly in its place (`spirv/assembly.py`), emulation the formula
(`emulation/small_floats.py`).
"""

from __future__ import annotations

from mltriton.ir.types import F8E4M3, F8E5M2
from mltriton.ir.types import Type as IRType
from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import Type, Value, constant, vector
from mltriton.targets.llvm.writer import Function

NAMES: dict[IRType, str] = {F8E4M3: "f8E4M3FN", F8E5M2: "f8E5M2"}
SCALE = 256.0  # 2 to the difference of the exponents' biases, 15 and 7
MAGNITUDE, SIGN, ONE, CARRIED = 0x3F80, 0x8000, 0x0080, 0x4000  # of f8E4M3FN one bit below the top of 16 bits


class Widening(NamedTuple):
    """What a function does: from i8 to i16 (`halves`), or from an i32 to two (`pairs_of_halves`), of all lanes."""

    kind: IRType
    source: Type


def halves(f: Function, kind: IRType, bytes: Value) -> Value:
    """f16, as i16, of floats of 8 bits given as i8."""
    return _of_upper_bytes(f, kind, f.shl(f.cast("zext", bytes, bytes.type.with_element("i16")), 8))


def pairs_of_halves(f: Function, kind: IRType, words: Value) -> tuple[Value, Value]:
    """Of i32 with four floats each two i32 with two f16 each, in order."""
    first = f.or_(f.and_(f.shl(words, 8), 0xFF00), f.and_(f.shl(words, 16), 0xFF000000))
    second = f.or_(f.and_(f.lshr(words, 8), 0xFF00), f.and_(words, 0xFF000000))
    return _of_upper_bytes(f, kind, first), _of_upper_bytes(f, kind, second)


def _of_upper_bytes(f: Function, kind: IRType, bits: Value) -> Value:
    """f16 of what stands in the upper bytes of 16 bits, one or two in an integer."""
    if kind is F8E5M2:
        return bits
    count = bits.type.bits // 16
    magnitude, sign, one, carried = (_repeated(each, count) for each in (MAGNITUDE, SIGN, ONE, CARRIED))
    value = f.or_(f.and_(bits, sign), f.and_(f.lshr(bits, 1), magnitude))
    # One more carries into the empty bit where all others are set, which is NaN: so it has the largest exponent.
    value = f.or_(value, f.and_(f.add(value, one), carried))
    floats = f.bitcast(value, vector("half", count * value.type.lanes))
    return f.bitcast(f.fmul(floats, constant(floats.type, SCALE)), bits.type)


def _repeated(half: int, count: int) -> int:
    return sum(half << 16 * number for number in range(count))


def widened(f: Function, kind: IRType, source: Value, result: Type) -> Value:
    """The call of the function that does it."""
    name = f"widened.{NAMES[kind]}.{source.type.suffix}.{result.suffix}"
    f.module.meanings[name] = Widening(kind, source.type)
    return f.pure_call(name, result, source)
