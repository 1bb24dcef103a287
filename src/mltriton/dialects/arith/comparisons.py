"""Comparisons, and the choice by what they give."""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects.arith.base import Pure
from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import (
    gives_booleans,
    require_type,
)
from mltriton.ir.definition import enum, operand
from mltriton.ir.operation import Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import I1, FloatType, IndexType, IntegerType, Type, element_type, like

__all__ = ["CmpF", "CmpI", "Select"]


def _compares_integers(op: CmpI) -> None:
    if not isinstance(element_type(op.lhs.type), IntegerType | IndexType):
        reject(op, "compares integers", found=str(op.lhs.type))


def _compares_floats(op: CmpF) -> None:
    if not isinstance(element_type(op.lhs.type), FloatType):
        reject(op, "compares floats", found=str(op.lhs.type))


class Comparison(Pure):
    """Base of comparisons, which give an i1 for each element."""

    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [like(operands[0].type, I1)]


class CmpI(Comparison, name="arith.cmpi"):
    """`arith.cmpi slt, %a, %b : i32`: integer comparison giving i1."""

    checks = (_compares_integers, gives_booleans)
    syntax = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs, $rhs)"
    predicate = enum("cmpi")


class CmpF(Comparison, name="arith.cmpf"):
    """`arith.cmpf olt, %a, %b : f32`: float comparison giving i1; o = ordered (false on NaN), u = unordered (true on
    NaN).
    """

    checks = (_compares_floats, gives_booleans)
    syntax = "$predicate `,` $lhs `,` $rhs permissions attr-dict `:` type($lhs, $rhs)"
    predicate = enum("cmpf")


class Select(Pure, name="arith.select"):
    """`arith.select %c, %a, %b`: element by element when the condition is a tensor, whole when it is an i1 scalar."""

    syntax = "$condition `,` $true_value `,` $false_value attr-dict `:` custom<select-types>"
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
