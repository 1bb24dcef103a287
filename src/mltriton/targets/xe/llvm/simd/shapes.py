"""Blocks of places and numbers in a warp's vector program; rearrangements are those of a lane's program.

Level: intrinsic -> llvm.
"""

from __future__ import annotations

from mltriton.dialects import arith, tt
from mltriton.ir.attributes import DenseAttr
from mltriton.ir.types import TensorType
from mltriton.targets.llvm.emit.arith import emit_constant, number_of
from mltriton.targets.llvm.types import Type, Value, constant
from mltriton.targets.xe.llvm.emit import shapes
from mltriton.targets.xe.llvm.emit.context import Emitted, Rules
from mltriton.targets.xe.llvm.lanes import form_of, layout_of
from mltriton.targets.xe.llvm.simd.context import WarpEmitter


def _unsplat(e: WarpEmitter, op: tt.Unsplat) -> Value:
    return e.function.extract(e.registers(op.source)[0], 0)


def _constant(e: WarpEmitter, op: arith.Constant) -> Emitted:
    """A scalar, the same number everywhere, or the numbers of each lane."""
    type_, value = op.result.type, op.value
    if not isinstance(type_, TensorType):
        return emit_constant(e, op)
    assert isinstance(value, DenseAttr)
    form, layout = form_of(type_), layout_of(type_)
    numbers = [number_of(number, value) for number in value.values]
    if value.is_splat:
        return e.splat(numbers[0], form, layout.count("register"))
    rows = shapes.row_major(layout, type_)
    return e.packed([_lanes([numbers[place] for place in row], form.element) for row in rows], form)


def _lanes(numbers: list[int | float], element: Type) -> Value:
    values = [constant(element, number) for number in numbers]
    if len(set(values)) == 1:
        return constant(element.with_lanes(len(values)), numbers[0])
    return Value(element.with_lanes(len(values)), f"<{', '.join(map(str, values))}>")


RULES: Rules = {**shapes.RULES, tt.Unsplat: _unsplat, arith.Constant: _constant}  # type: ignore[dict-item]
