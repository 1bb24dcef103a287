"""The coordinates of a warp in the grid; loops and branches are those of a lane's program, whose conditions are
scalars.

Level: intrinsic -> llvm.
"""

from __future__ import annotations

from mltriton.dialects import gpu, tt
from mltriton.targets.llvm.types import I64, Value, constant
from mltriton.targets.simt import control
from mltriton.targets.simt.context import Rules
from mltriton.targets.xe.llvm.simd import intrinsics
from mltriton.targets.xe.llvm.simd.context import WarpEmitter


def _program_id(e: WarpEmitter, op: tt.GetProgramId) -> Value:
    return intrinsics.group(e.function, control.AXES.index(op.axis))


def _num_programs(e: WarpEmitter, op: tt.GetNumPrograms) -> Value:
    return intrinsics.groups(e.function, control.AXES.index(op.axis))


def _subgroup_id(e: WarpEmitter, op: gpu.SubgroupId) -> Value:
    if e.warps == 1:
        return constant(I64, 0)
    return e.function.cast("zext", intrinsics.warp(e.function), I64)


RULES: Rules = {  # type: ignore[dict-item]
    **control.RULES,
    tt.GetProgramId: _program_id,
    tt.GetNumPrograms: _num_programs,
    gpu.SubgroupId: _subgroup_id,
}
