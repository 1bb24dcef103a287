"""convert-dot-operands: operands that the target's dots do not take are converted to elements that they do.

Level: tt. Takes any program and changes it in place. `TargetSpec.dot_through` says what becomes what. Guarantees: the
same products, since each value of the narrower type is one of the wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mltriton.dialects import tt
from mltriton.dialects.builtin import Module
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import apply_patterns
from mltriton.ir.types import TensorType, Type
from mltriton.targets.registry import spec_of


class ConvertDotOperands(Pass):
    """Widen operands of dots."""

    name = "convert-dot-operands"

    def run(self, module: Module) -> Module:
        through = spec_of(module).dot_through
        if through:
            apply_patterns(module, {tt.Dot: partial(dot, through)})
        return module


def dot(through: dict[Type, Type], builder: Builder, op: tt.Dot) -> Sequence[Value] | None:
    """A dot of wider elements."""
    made = [_converted(through, builder, value) for value in (op.a, op.b)]
    if made == [op.a, op.b]:
        return None
    copy = tt.Dot([*made, op.c], [op.result.type], op.attributes, (), op.loc, op.segments)
    return list(builder.insert(copy).results)


def _converted(through: dict[Type, Type], builder: Builder, value: Value) -> Value:
    assert isinstance(value.type, TensorType)
    element = through.get(value.type.element)
    if element is None:
        return value
    return builder.emit(tt.FpToFp, value, result_types=[value.type.with_element(element)])
