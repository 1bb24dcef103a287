"""Conversions of floats of 8 bits to f16.

Level: intrinsic -> llvm. What the matrix engine takes is converted by whole values of the operand, a right operand's
word by word: four bytes of a column become two words of two. All else goes register by register. Every other conversion
is as on other targets.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import tt
from mltriton.ir.types import F16, TensorType, element_type
from mltriton.ir.types import Type as IRType
from mltriton.targets.llvm.emit import casts
from mltriton.targets.llvm.types import Value, vector
from mltriton.targets.llvm.writer import Function
from mltriton.targets.simt.context import Emitter, Rule, Rules
from mltriton.targets.simt.lanes import Lanes, Made
from mltriton.targets.xe.llvm.lanes import form_of
from mltriton.targets.xe.llvm.small_floats import NAMES, halves, widened

BYTES = 4  # in a word of a right operand

Halves = Callable[[Function, IRType, Value], Value]
Pairs = Callable[[Function, IRType, Value], tuple[Value, Value]]


def _halves_by_call(f: Function, kind: IRType, bytes: Value) -> Value:
    """One instruction for 32 elements of a warp, or five."""
    if not bytes.type.is_vector:
        return halves(f, kind, bytes)
    return widened(f, kind, bytes, bytes.type.with_element("i16"))


def _pairs_by_call(f: Function, kind: IRType, word: Value) -> tuple[Value, Value]:
    made = widened(f, kind, word, vector("i32", 2))
    return f.extract(made, 0), f.extract(made, 1)


def rule(halves: Halves, pairs: Pairs) -> Rule:
    """`tt.fp_to_fp` with these conversions of elements and of words."""

    def element(e: Emitter, op: tt.FpToFp) -> Value:
        return halves(e.function, element_type(op.source.type), e.get(op.source))

    def convert(e: Emitter, op: tt.FpToFp) -> Made:
        if element_type(op.source.type) not in NAMES or element_type(op.result.type) is not F16:
            return e.elementwise(op, casts.RULES[tt.FpToFp])
        return _by_words(e, op, pairs) or e.elementwise(op, element)

    return convert


def _by_words(e: Emitter, op: tt.FpToFp, pairs: Pairs) -> Lanes | None:
    """A block whose elements come by four in words, and whose results lie in words by two; None where they do not."""
    source, result = op.source.type, op.result.type
    if not (isinstance(result, TensorType) and isinstance(source, TensorType)):
        return None
    form = form_of(result)
    if form.width != 2 * form.type.lanes:
        return None
    registers = e.registers(op.source)
    found = [e.shared_word(registers[at : at + BYTES]) for at in range(0, len(registers), BYTES)]
    if None in found:
        return None
    words = [made for word in found if word for made in pairs(e.function, element_type(source), word)]
    starts = range(0, len(words), form.type.lanes)
    return Lanes(form, [e.of_words(words[at : at + form.type.lanes], form) for at in starts])


RULES: Rules = {tt.FpToFp: rule(_halves_by_call, _pairs_by_call)}
