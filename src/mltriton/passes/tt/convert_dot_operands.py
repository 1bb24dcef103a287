"""convert-dot-operands: operands that the target's dots do not take are converted to elements that they do.

Level: tt, or warp where dots are micro-kernels, which take other sizes than a loop's steps were. Takes any program and
changes it in place. `TargetSpec.dot_through` says what becomes what; unsigned bytes of which no micro-kernel takes so
many become what one does take. Guarantees: the same products, since each value of the narrower type is one of the
wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

from mltriton.dialects import arith, tt
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.patterns import apply_patterns
from mltriton.ir.types import FloatType, TensorType, Type, element_type
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of


class ConvertDotOperands(Pass):
    """Widen operands of dots."""

    name = "convert-dot-operands"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        if spec.dot_through or spec.micro_kernels:
            apply_patterns(module, {tt.Dot: partial(dot, spec)})
        return module


def dot(spec: TargetSpec, builder: Builder, op: tt.Dot) -> Sequence[Value] | None:
    """The dot of converted operands; None where they stay as they are."""
    signs = (op.a, op.a_unsigned), (op.b, op.b_unsigned)
    made = [_converted(builder, value, _wanted(spec, op, value), unsigned) for value, unsigned in signs]
    if made == [op.a, op.b]:
        return None
    attributes = {name: value for name, value in op.attributes.items() if name not in ("a_unsigned", "b_unsigned")}
    copy = tt.Dot([*made, op.c], [op.result.type], attributes, (), op.loc, op.segments)
    return list(builder.insert(copy).results)


def _wanted(spec: TargetSpec, op: tt.Dot, value: Value) -> Type:
    """The elements that an operand should have."""
    element = element_type(value.type)
    if op.a_unsigned or op.b_unsigned:
        a, b = (cast(TensorType, each.type).shape for each in (op.a, op.b))
        kernel = spec.micro_kernel(element, b[-1], a[-1])
        return element if kernel is None else kernel.operand
    return spec.dot_through.get(element, element)


def _converted(builder: Builder, value: Value, element: Type, unsigned: bool) -> Value:
    assert isinstance(value.type, TensorType)
    if value.type.element is element:
        return value
    convert = tt.FpToFp if isinstance(element, FloatType) else arith.ExtUI if unsigned else arith.ExtSI
    return builder.emit(convert, value, result_types=[value.type.with_element(element)])
