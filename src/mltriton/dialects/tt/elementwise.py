"""Element-by-element operations that arith and math do not have. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from mltriton.dialects.arith import Cast, Elementwise, FloatBinary, FloatUnary, IntegerBinary
from mltriton.ir.checks import between, keeps_width, on_floats, one_type
from mltriton.ir.definition import attribute, boolean, enum, integer, operand, string, variadic
from mltriton.ir.operation import ALIKE, Operation
from mltriton.ir.types import FloatType, IntegerType, PointerType

__all__ = [
    "Bitcast",
    "ClampF",
    "FpToFp",
    "InlineAsm",
    "IntToPtr",
    "MulhiUI",
    "PreciseDivF",
    "PreciseSqrt",
    "PtrToInt",
    "VolatileAsm",
]


class Bitcast(Cast, name="tt.bitcast"):
    """The same bits as another type of the same width, pointers included."""

    checks = (keeps_width,)
    syntax = "$source attr-dict `:` type($source) `->` type(result)"


class IntToPtr(Cast, name="tt.int_to_ptr"):
    """i64 to a pointer."""

    checks = (between(IntegerType, PointerType), keeps_width)
    syntax = "$source attr-dict `:` type($source) `->` type(result)"


class PtrToInt(Cast, name="tt.ptr_to_int"):
    """A pointer to i64."""

    checks = (between(PointerType, IntegerType), keeps_width)
    syntax = "$source attr-dict `:` type($source) `->` type(result)"


class FpToFp(Cast, name="tt.fp_to_fp"):
    """Float to float where fp8 takes part or the rounding is chosen."""

    checks = (between(FloatType, FloatType),)
    syntax = "$source attr-dict (`,` `rounding` `=` $rounding^)? `:` type($source) `->` type(result)"
    rounding = enum("rounding")


class MulhiUI(IntegerBinary, name="tt.mulhiui", commutative=True):
    """The upper half of the unsigned product."""


class PreciseSqrt(FloatUnary, name="tt.precise_sqrt"):
    """Square root, correctly rounded."""


class PreciseDivF(FloatBinary, name="tt.precise_divf"):
    """Float division, correctly rounded."""


class ClampF(Elementwise, name="tt.clampf"):
    """min(max(x, low), high); NaN stays NaN with `propagate_nan`, becomes `low` without."""

    checks = (one_type, on_floats)
    syntax = (
        "$x `,` $low `,` $high `,` `propagateNan` `=` choice<none|all>($propagate_nan) attr-dict `:` "
        "type($x, $low, $high, result)"
    )
    x = operand()
    low = operand()
    high = operand()
    propagate_nan = boolean(text="propagateNan")


class InlineAsm(Operation, name="tt.inline_asm", pure=True, elementwise=True):
    """`tt.inline_asm "leal 1($1), $0" "=r,r" {gives = [i32], number = 0 : i32} %x : i32 -> i32`: a fragment of machine
    code of the target's own for each element.

    It takes `packed` elements of every argument and gives as many of each type in `gives`; the operation's result is
    the one of that number among them, and its operands are the elements of the first argument, of the second, ... With
    `is_llvm` the text is the body of a function in LLVM's language and the constraints are empty.
    """

    syntax = "$assembly $constraints attr-dict ($sources^ `:` type($sources))? `->` type(result)"
    sources = variadic()
    assembly = string()
    constraints = string()
    gives = attribute()
    number = integer(0)
    packed = integer(1)
    is_llvm = boolean()


class VolatileAsm(Operation, name="tt.volatile_asm", reads=True, writes=True, encodings=ALIKE):
    """`tt.volatile_asm "mov.u32 $0, %clock;" "=r" {gives = [i32]} -> i32`: a fragment that has effects or does not give
    the same each time. The results are all that it gives: `packed` of the first type, as many of the second, ...
    """

    syntax = "$assembly $constraints attr-dict ($sources^ `:` type($sources))? `->` type(results)"
    sources = variadic()
    assembly = string()
    constraints = string()
    gives = attribute()
    packed = integer(1)
    is_llvm = boolean()
