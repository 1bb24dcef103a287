"""`arith`: integer and float arithmetic, on scalars and element by element on tensors.

Level: tt to intrinsic. Names, operands and text are MLIR's. All operations are pure; integers wrap; a shift by the
width or more and a division by zero give an unspecified value (they never trap on any target).
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.checks import (
    between,
    gives_booleans,
    keeps_width,
    narrows,
    on_floats,
    on_integers,
    one_type,
    require_type,
    widens,
)
from mltriton.ir.definition import attribute, enum, operand
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import I1, INDEX, FloatType, IndexType, IntegerType, TensorType, Type, element_type, like


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

    def verify(self) -> None:
        value = self.attributes.get("value")
        if not isinstance(value, IntegerAttr | FloatAttr | DenseAttr):
            reject(self, "the value is no constant", expected="a number or dense<...>", found=str(value))
        require_type(self, "the result", self.result.type, value.type)
        if isinstance(value, DenseAttr):
            self._verify_count(value)

    def _verify_count(self, value: DenseAttr) -> None:
        size = value.type.size if isinstance(value.type, TensorType) else 0
        if len(value.values) not in (1, size) or size == 0:
            reject(self, "wrong number of elements", expected=f"1 or {size}", found=str(len(value.values)))

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

    def fold(self) -> Value | Attribute | None:
        from mltriton.dialects.arith_folding import fold_elementwise

        return fold_elementwise(self)


class Binary(Elementwise):
    """Base of operations with two operands and a result of one type."""

    syntax = "$lhs `,` $rhs permissions attr-dict `:` type($lhs, $rhs, result)"
    lhs = operand()
    rhs = operand()


class Unary(Elementwise):
    """Base of operations with one operand and a result of its type."""

    syntax = "$source permissions attr-dict `:` type($source, result)"
    source = operand()


class IntegerBinary(Binary):
    """Base of integer operations with two operands."""

    checks = (one_type, on_integers)


class FloatBinary(Binary):
    """Base of float operations with two operands."""

    checks = (one_type, on_floats)


class IntegerUnary(Unary):
    """Base of integer operations with one operand."""

    checks = (one_type, on_integers)


class FloatUnary(Unary):
    """Base of float operations with one operand."""

    checks = (one_type, on_floats)


class Cast(Operation):
    """Base of conversions: `arith.extf %x : f16 to f32`. The result type must be given."""

    syntax = "$source permissions attr-dict `:` type($source) `to` type(result)"
    pure = True
    elementwise = True
    source = operand()

    def fold(self) -> Value | Attribute | None:
        from mltriton.dialects.arith_folding import fold_cast

        return fold_cast(self)


class AddI(IntegerBinary):
    """Integer addition."""

    name = "arith.addi"
    commutative = True


class SubI(IntegerBinary):
    """Integer subtraction."""

    name = "arith.subi"


class MulI(IntegerBinary):
    """Integer multiplication."""

    name = "arith.muli"
    commutative = True


class DivSI(IntegerBinary):
    """Signed division, rounding to zero."""

    name = "arith.divsi"


class DivUI(IntegerBinary):
    """Unsigned division."""

    name = "arith.divui"


class CeilDivSI(IntegerBinary):
    """Signed division, rounding up."""

    name = "arith.ceildivsi"


class FloorDivSI(IntegerBinary):
    """Signed division, rounding down."""

    name = "arith.floordivsi"


class RemSI(IntegerBinary):
    """Signed remainder, with the sign of the dividend."""

    name = "arith.remsi"


class RemUI(IntegerBinary):
    """Unsigned remainder."""

    name = "arith.remui"


class AndI(IntegerBinary):
    """Bitwise and."""

    name = "arith.andi"
    commutative = True


class OrI(IntegerBinary):
    """Bitwise or."""

    name = "arith.ori"
    commutative = True


class XOrI(IntegerBinary):
    """Bitwise exclusive or."""

    name = "arith.xori"
    commutative = True


class ShLI(IntegerBinary):
    """Shift left."""

    name = "arith.shli"


class ShRSI(IntegerBinary):
    """Arithmetic shift right."""

    name = "arith.shrsi"


class ShRUI(IntegerBinary):
    """Logical shift right."""

    name = "arith.shrui"


class MaxSI(IntegerBinary):
    """Signed maximum."""

    name = "arith.maxsi"
    commutative = True


class MinSI(IntegerBinary):
    """Signed minimum."""

    name = "arith.minsi"
    commutative = True


class MaxUI(IntegerBinary):
    """Unsigned maximum."""

    name = "arith.maxui"
    commutative = True


class MinUI(IntegerBinary):
    """Unsigned minimum."""

    name = "arith.minui"
    commutative = True


class AddF(FloatBinary):
    """Float addition."""

    name = "arith.addf"
    commutative = True


class SubF(FloatBinary):
    """Float subtraction."""

    name = "arith.subf"


class MulF(FloatBinary):
    """Float multiplication."""

    name = "arith.mulf"
    commutative = True


class DivF(FloatBinary):
    """Float division."""

    name = "arith.divf"


class RemF(FloatBinary):
    """Float remainder, as C's fmod."""

    name = "arith.remf"


class MaximumF(FloatBinary):
    """Maximum; NaN if an operand is NaN."""

    name = "arith.maximumf"
    commutative = True


class MinimumF(FloatBinary):
    """Minimum; NaN if an operand is NaN."""

    name = "arith.minimumf"
    commutative = True


class MaxNumF(FloatBinary):
    """Maximum; the other operand if one is NaN."""

    name = "arith.maxnumf"
    commutative = True


class MinNumF(FloatBinary):
    """Minimum; the other operand if one is NaN."""

    name = "arith.minnumf"
    commutative = True


class NegF(FloatUnary):
    """Float negation."""

    name = "arith.negf"


def _compares_integers(op: CmpI) -> None:
    if not isinstance(element_type(op.lhs.type), IntegerType | IndexType):
        reject(op, "compares integers", found=str(op.lhs.type))


def _compares_floats(op: CmpF) -> None:
    if not isinstance(element_type(op.lhs.type), FloatType):
        reject(op, "compares floats", found=str(op.lhs.type))


class CmpI(Operation):
    """`arith.cmpi slt, %a, %b : i32`: integer comparison giving i1."""

    name = "arith.cmpi"
    checks = (_compares_integers, gives_booleans)
    syntax = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs, $rhs)"
    pure = True
    elementwise = True
    predicate = enum("cmpi")
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [like(operands[0].type, I1)]

    def fold(self) -> Value | Attribute | None:
        from mltriton.dialects.arith_folding import fold_cmpi

        return fold_cmpi(self)


class CmpF(Operation):
    """`arith.cmpf olt, %a, %b : f32`: float comparison giving i1; o = ordered (false on NaN), u = unordered (true on
    NaN).
    """

    name = "arith.cmpf"
    checks = (_compares_floats, gives_booleans)
    syntax = "$predicate `,` $lhs `,` $rhs permissions attr-dict `:` type($lhs, $rhs)"
    pure = True
    elementwise = True
    predicate = enum("cmpf")
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [like(operands[0].type, I1)]

    def fold(self) -> Value | Attribute | None:
        from mltriton.dialects.arith_folding import fold_cmpf

        return fold_cmpf(self)


class Select(Operation):
    """`arith.select %c, %a, %b`: element by element when the condition is a tensor, whole when it is an i1 scalar."""

    name = "arith.select"
    syntax = "$condition `,` $true_value `,` $false_value attr-dict `:` custom<select-types>"
    pure = True
    elementwise = True
    condition = operand()
    true_value = operand()
    false_value = operand()

    def verify(self) -> None:
        require_type(self, "the other value", self.false_value.type, self.true_value.type)
        require_type(self, "the result", self.result.type, self.true_value.type)
        expected = like(self.true_value.type, I1)
        if self.condition.type is not expected and self.condition.type is not I1:
            reject(self, "the condition has another type", expected=f"{expected} or i1", found=str(self.condition.type))

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[1].type]

    def fold(self) -> Value | Attribute | None:
        from mltriton.dialects.arith_folding import fold_select

        return fold_select(self)


class ExtSI(Cast):
    """Sign extension."""

    name = "arith.extsi"
    checks = (between(IntegerType, IntegerType), widens)


class ExtUI(Cast):
    """Zero extension."""

    name = "arith.extui"
    checks = (between(IntegerType, IntegerType), widens)


class TruncI(Cast):
    """Truncation to fewer bits."""

    name = "arith.trunci"
    checks = (between(IntegerType, IntegerType), narrows)


class ExtF(Cast):
    """Float to a wider float: exact."""

    name = "arith.extf"
    checks = (between(FloatType, FloatType), widens)


class TruncF(Cast):
    """Float to a narrower float, rounding to nearest even."""

    name = "arith.truncf"
    checks = (between(FloatType, FloatType), narrows)


class SIToFP(Cast):
    """Signed integer to float."""

    name = "arith.sitofp"
    checks = (between(IntegerType, FloatType),)


class UIToFP(Cast):
    """Unsigned integer to float."""

    name = "arith.uitofp"
    checks = (between(IntegerType, FloatType),)


class FPToSI(Cast):
    """Float to signed integer, rounding to zero; out of range is unspecified."""

    name = "arith.fptosi"
    checks = (between(FloatType, IntegerType),)


class FPToUI(Cast):
    """Float to unsigned integer, rounding to zero; out of range is unspecified."""

    name = "arith.fptoui"
    checks = (between(FloatType, IntegerType),)


class Bitcast(Cast):
    """The same bits as another type of the same width."""

    name = "arith.bitcast"
    checks = (between((IntegerType, FloatType), (IntegerType, FloatType)), keeps_width)


class IndexCast(Cast):
    """Between `index` and an integer type."""

    name = "arith.index_cast"
    checks = (between((IntegerType, IndexType), (IntegerType, IndexType)),)
