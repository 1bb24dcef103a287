"""Bases of arithmetic: what its operations have in common; and the constant."""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.checks import (
    on_floats,
    on_integers,
    one_type,
    require_type,
)
from mltriton.ir.constants import Number, splat_constant
from mltriton.ir.definition import attribute, operand
from mltriton.ir.operation import Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import I1, I32, INDEX, TensorType, Type

__all__ = [
    "Binary", "Cast", "Constant", "Elementwise", "FloatBinary", "FloatUnary", "IntegerBinary", "IntegerUnary", "Pure",
    "Unary", "filled", "integer",
]  # fmt: skip


class Constant(Operation, name="arith.constant", pure=True):
    """`arith.constant 1 : i32`, `arith.constant dense<0.0> : tensor<4xf32>`."""

    syntax = "attr-dict $value"
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


class Pure(Operation, pure=True, elementwise=True):
    """Base: element by element, and folded by the tables of `arith_folding.py`."""

    def fold(self) -> Value | Attribute | None:
        from mltriton.dialects.arith_folding import fold  # Its tables name the classes that stand on this one.

        return fold(self)


class Elementwise(Pure):
    """Base: the result has the type of the first operand."""

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


class Cast(Pure):
    """Base of conversions: `arith.extf %x : f16 to f32`. The result type must be given."""

    syntax = "$source permissions attr-dict `:` type($source) `to` type(result)"
    source = operand()


def integer(builder: Builder, number: int, type: Type = I32) -> Value:
    """An integer constant where the builder stands."""
    return builder.emit(Constant, value=IntegerAttr(number, type))


def filled(builder: Builder, number: Number, type: Type) -> Value:
    """A constant of which every element is `number`, which is one of the element type."""
    return builder.emit(Constant, value=splat_constant(type, number))
