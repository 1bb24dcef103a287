"""Blocks of indices and numbers in a SIMD kernel; rearrangements are those of a lane's program.

Level: intrinsic -> llvm.
"""

from __future__ import annotations

from mltriton.dialects import arith, tt
from mltriton.targets.llvm.types import Value
from mltriton.targets.simt import shapes
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.lanes import Emitted
from mltriton.targets.xe.llvm.simd.context import WarpEmitter
from mltriton.targets.xe.llvm.simd.rows import constants


def _unsplat(e: WarpEmitter, op: tt.Unsplat) -> Value:
    return e.function.extract(e.registers(op.source)[0], 0)


def _constant(e: WarpEmitter, op: arith.Constant) -> Emitted:
    return shapes.constant_of(e, op, e.splat, constants)


RULES: Rules = {**shapes.RULES, tt.Unsplat: _unsplat, arith.Constant: _constant}  # type: ignore[dict-item]
