"""Elements in another type: what packing a dot's operand and reading it back need.

Level: intrinsic. Guarantees: floats widen exactly and narrow to nearest even, integers keep their sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mltriton.dialects import arith, tt
from mltriton.ir.operation import Operation
from mltriton.ir.types import FloatType, IntegerType, Type, element_type
from mltriton.passes.intrinsic.tile_loops.combine import combine
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Form, Uniform, Vector

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator


def conversion(source: Type, target: Type) -> type[Operation]:
    """The operation that takes elements of one type to another."""
    if isinstance(source, FloatType) and isinstance(target, FloatType):
        if min(source.width, target.width) == 8 or source.width == target.width:
            return tt.FpToFp
        return arith.ExtF if source.width < target.width else arith.TruncF
    if isinstance(source, IntegerType) and isinstance(target, IntegerType):
        if source.width == 1:
            return arith.ExtUI
        return arith.ExtSI if source.width < target.width else arith.TruncI
    return arith.SIToFP if isinstance(target, FloatType) else arith.FPToSI


def element_of(form: Form) -> Type:
    """The element type of a form."""
    return form.type if isinstance(form, Affine) else element_type(form.value.type)


def converted(e: Evaluator, form: Uniform | Vector | Affine, element: Type, lanes: int) -> Form:
    """A form with another element type."""
    source = element_of(form)
    if source is element:
        return form
    return combine(e, conversion(source, element), [form], element, lanes, {})
