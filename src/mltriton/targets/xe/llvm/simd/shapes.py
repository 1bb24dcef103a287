"""Blocks of indices and numbers in a SIMD kernel; rearrangements are those of a lane's program.

Level: intrinsic -> llvm.
"""

from __future__ import annotations

from mltriton.dialects import arith, tt
from mltriton.targets.llvm.types import Type, Value, constant
from mltriton.targets.simt import shapes
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.lanes import Emitted
from mltriton.targets.xe.llvm.simd.context import WarpEmitter


def _unsplat(e: WarpEmitter, op: tt.Unsplat) -> Value:
    return e.function.extract(e.registers(op.source)[0], 0)


def _constant(e: WarpEmitter, op: arith.Constant) -> Emitted:
    return shapes.constant_of(e, op, e.splat, _lanes)


def _lanes(numbers: list[int | float], element: Type) -> Value:
    values = [constant(element, number) for number in numbers]
    if len(set(values)) == 1:
        return constant(element.with_lanes(len(values)), numbers[0])
    return Value(element.with_lanes(len(values)), f"<{', '.join(map(str, values))}>")


RULES: Rules = {**shapes.RULES, tt.Unsplat: _unsplat, arith.Constant: _constant}  # type: ignore[dict-item]
