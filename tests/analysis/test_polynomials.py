"""Formulas: what depends on nothing but the program."""

from __future__ import annotations

import pytest

from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.dialects import arith
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Block
from mltriton.ir.types import I64


@pytest.mark.parametrize("lower_first", [True, False])
def test_products_are_computed_in_the_order_in_which_values_are_met(lower_first: bool) -> None:
    """Wherever these lie in the compiler's memory."""
    block = Block([I64] * 8)
    first, second, *_ = sorted(block.arguments, key=id, reverse=not lower_first)
    product = Polynomial.of(first) * Polynomial.of(second)
    assert product == Polynomial.of(second) * Polynomial.of(first)
    builder = Builder()
    with builder.inside(block):
        made = product.emit(builder, I64).defining_op
    assert isinstance(made, arith.MulI)
    assert (made.lhs, made.rhs) == (first, second)
