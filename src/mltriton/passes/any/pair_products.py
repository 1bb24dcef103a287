"""pair-products: both halves of a product by one multiplication.

Level: any. Takes any program and changes it in place: where a block computes the upper half of a product of 32-bit
integers (`tt.mulhiui`) and the lower half of the same (`arith.muli`), both are parts of one product of 64 bits.
Guarantees: no result changes. Purpose: where an instruction multiplies 32 by 32 bits, that is one instead of two (a
round of Philox has four).
"""

from __future__ import annotations

from mltriton.dialects import arith, tt
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, I64, TensorType, Type, element_type

Factors = frozenset[Value]


class PairProducts(Pass):
    """Make one product of two halves."""

    name = "pair-products"

    def run(self, module: Module) -> Module:
        for op in [*module.walk()]:
            for block in op.blocks:
                _pair(block)
        return module


def _pair(block: Block) -> None:
    upper, lower = _halves(block, tt.MulhiUI), _halves(block, arith.MulI)
    for factors in [factors for factors in upper if factors in lower]:
        high, low = upper[factors], lower[factors]
        builder = Builder().before(high if high.is_before(low) else low)
        whole = _product(builder, *high.operands)
        halves = _half(builder, whole, 32), _half(builder, whole, 0)
        high.replace_by([halves[0]])
        low.replace_by([halves[1]])


def _halves(block: Block, kind: type[Operation]) -> dict[Factors, Operation]:
    """Products of 32 bits, of one operation for the same factors, by these."""
    found = (op for op in block.ops if isinstance(op, kind) and element_type(op.result.type) is I32)
    return {frozenset(op.operands): op for op in found}


def _product(builder: Builder, a: Value, b: Value) -> Value:
    wide = _with_element(a.type, I64)
    factors = [builder.emit(arith.ExtUI, factor, result_types=[wide]) for factor in (a, b)]
    return builder.emit(arith.MulI, *factors)


def _half(builder: Builder, whole: Value, from_bit: int) -> Value:
    if from_bit:
        bits: Value = arith.integer(builder, from_bit, I64)
        if isinstance(whole.type, TensorType):
            bits = builder.emit(tt.Splat, bits, result_types=[whole.type])
        whole = builder.emit(arith.ShRUI, whole, bits)
    return builder.emit(arith.TruncI, whole, result_types=[_with_element(whole.type, I32)])


def _with_element(type_: Type, element: Type) -> Type:
    return type_.with_element(element) if isinstance(type_, TensorType) else element
