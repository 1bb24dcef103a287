"""`arith`: integer and float arithmetic, on scalars and element by element on tensors.

Level: tt to intrinsic. Names, operands and text are MLIR's. All operations are pure; integers wrap; a shift by the
width or more and a division by zero give an unspecified value (they never trap on any target).
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.definition import attribute, enum, operand
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, INDEX, Type, like


class Constant(Operation):
    """`arith.constant 1 : i32`, `arith.constant dense<0.0> : tensor<4xf32>`."""

    name = "arith.constant"
    syntax = "attr-dict $value"
    pure = True
    value: IntegerAttr | FloatAttr | DenseAttr = attribute()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        value = attributes["value"]
        assert isinstance(value, IntegerAttr | FloatAttr | DenseAttr)
        return [value.type]

    def default_name(self) -> str:
        """MLIR's names of constants: `c8_i32`, `c8` (index), `true`, `cst`."""
        value = self.value
        if not isinstance(value, IntegerAttr):
            return "cst"
        if value.type is I1:
            return "true" if value.value else "false"
        return f"c{value.value}" + ("" if value.type is INDEX else f"_{value.type}")


class Elementwise(Operation):
    """Base: the result has the type of the first operand."""

    pure = True
    elementwise = True

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[0].type]


class Binary(Elementwise):
    """Base of operations with two operands and a result of one type."""

    syntax = "$lhs `,` $rhs permissions attr-dict `:` type($lhs, $rhs, result)"
    lhs = operand()
    rhs = operand()


class Unary(Elementwise):
    """Base of operations with one operand and a result of its type."""

    syntax = "$source permissions attr-dict `:` type($source, result)"
    source = operand()


class Cast(Operation):
    """Base of conversions: `arith.extf %x : f16 to f32`. The result type must be given."""

    syntax = "$source permissions attr-dict `:` type($source) `to` type(result)"
    pure = True
    elementwise = True
    source = operand()


class AddI(Binary):
    """Integer addition."""

    name = "arith.addi"
    commutative = True


class SubI(Binary):
    """Integer subtraction."""

    name = "arith.subi"


class MulI(Binary):
    """Integer multiplication."""

    name = "arith.muli"
    commutative = True


class DivSI(Binary):
    """Signed division, rounding to zero."""

    name = "arith.divsi"


class DivUI(Binary):
    """Unsigned division."""

    name = "arith.divui"


class CeilDivSI(Binary):
    """Signed division, rounding up."""

    name = "arith.ceildivsi"


class FloorDivSI(Binary):
    """Signed division, rounding down."""

    name = "arith.floordivsi"


class RemSI(Binary):
    """Signed remainder, with the sign of the dividend."""

    name = "arith.remsi"


class RemUI(Binary):
    """Unsigned remainder."""

    name = "arith.remui"


class AndI(Binary):
    """Bitwise and."""

    name = "arith.andi"
    commutative = True


class OrI(Binary):
    """Bitwise or."""

    name = "arith.ori"
    commutative = True


class XOrI(Binary):
    """Bitwise exclusive or."""

    name = "arith.xori"
    commutative = True


class ShLI(Binary):
    """Shift left."""

    name = "arith.shli"


class ShRSI(Binary):
    """Arithmetic shift right."""

    name = "arith.shrsi"


class ShRUI(Binary):
    """Logical shift right."""

    name = "arith.shrui"


class MaxSI(Binary):
    """Signed maximum."""

    name = "arith.maxsi"
    commutative = True


class MinSI(Binary):
    """Signed minimum."""

    name = "arith.minsi"
    commutative = True


class MaxUI(Binary):
    """Unsigned maximum."""

    name = "arith.maxui"
    commutative = True


class MinUI(Binary):
    """Unsigned minimum."""

    name = "arith.minui"
    commutative = True


class AddF(Binary):
    """Float addition."""

    name = "arith.addf"
    commutative = True


class SubF(Binary):
    """Float subtraction."""

    name = "arith.subf"


class MulF(Binary):
    """Float multiplication."""

    name = "arith.mulf"
    commutative = True


class DivF(Binary):
    """Float division."""

    name = "arith.divf"


class RemF(Binary):
    """Float remainder, as C's fmod."""

    name = "arith.remf"


class MaximumF(Binary):
    """Maximum; NaN if an operand is NaN."""

    name = "arith.maximumf"
    commutative = True


class MinimumF(Binary):
    """Minimum; NaN if an operand is NaN."""

    name = "arith.minimumf"
    commutative = True


class MaxNumF(Binary):
    """Maximum; the other operand if one is NaN."""

    name = "arith.maxnumf"
    commutative = True


class MinNumF(Binary):
    """Minimum; the other operand if one is NaN."""

    name = "arith.minnumf"
    commutative = True


class NegF(Unary):
    """Float negation."""

    name = "arith.negf"


class CmpI(Operation):
    """`arith.cmpi slt, %a, %b : i32`: integer comparison giving i1."""

    name = "arith.cmpi"
    syntax = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs, $rhs)"
    pure = True
    elementwise = True
    predicate = enum("cmpi")
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [like(operands[0].type, I1)]


class CmpF(Operation):
    """`arith.cmpf olt, %a, %b : f32`: float comparison giving i1; o = ordered (false on NaN), u = unordered (true on
    NaN).
    """

    name = "arith.cmpf"
    syntax = "$predicate `,` $lhs `,` $rhs permissions attr-dict `:` type($lhs, $rhs)"
    pure = True
    elementwise = True
    predicate = enum("cmpf")
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [like(operands[0].type, I1)]


class Select(Operation):
    """`arith.select %c, %a, %b`: element by element when the condition is a tensor, whole when it is an i1 scalar."""

    name = "arith.select"
    syntax = "$condition `,` $true_value `,` $false_value attr-dict `:` custom<select-types>"
    pure = True
    elementwise = True
    condition = operand()
    true_value = operand()
    false_value = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[1].type]


class ExtSI(Cast):
    """Sign extension."""

    name = "arith.extsi"


class ExtUI(Cast):
    """Zero extension."""

    name = "arith.extui"


class TruncI(Cast):
    """Truncation to fewer bits."""

    name = "arith.trunci"


class ExtF(Cast):
    """Float to a wider float: exact."""

    name = "arith.extf"


class TruncF(Cast):
    """Float to a narrower float, rounding to nearest even."""

    name = "arith.truncf"


class SIToFP(Cast):
    """Signed integer to float."""

    name = "arith.sitofp"


class UIToFP(Cast):
    """Unsigned integer to float."""

    name = "arith.uitofp"


class FPToSI(Cast):
    """Float to signed integer, rounding to zero; out of range is unspecified."""

    name = "arith.fptosi"


class FPToUI(Cast):
    """Float to unsigned integer, rounding to zero; out of range is unspecified."""

    name = "arith.fptoui"


class Bitcast(Cast):
    """The same bits as another type of the same width."""

    name = "arith.bitcast"


class IndexCast(Cast):
    """Between `index` and an integer type."""

    name = "arith.index_cast"
