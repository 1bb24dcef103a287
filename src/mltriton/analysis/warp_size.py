"""How many lanes the warps of a program should have, where a target gives the choice.

Level: tt. The matrix engine and 2D block accesses have one number of lanes. Other programs do with half as many
instructions where twice as many lanes take part, as long as there is an element for each.
"""

from __future__ import annotations

from mltriton.dialects import tt
from mltriton.dialects.tt.memory import is_block_pointer
from mltriton.ir.attributes import string_in
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorDescType, block_of
from mltriton.targets.base import TargetSpec, WideWarps
from mltriton.targets.registry import num_warps_of, sharing_warps_of, spec_of


def warp_size_for(module: Module) -> int:
    """Lanes of each of the program's warps."""
    spec = spec_of(module)
    wide = spec.wide_warps
    return wide.lanes if wide is not None and _may_be_wide(module, spec, wide) else spec.warp_size


def _may_be_wide(module: Module, spec: TargetSpec, wide: WideWarps) -> bool:
    codegen = string_in(module.attributes, "ttig.codegen", next(iter(spec.codegens), ""))
    if codegen not in wide.codegens or num_warps_of(module) > wide.max_warps:
        return False
    ops = list(module.walk())
    return not any(map(_takes_usual_lanes, ops)) and _largest_block(ops) >= wide.lanes * sharing_warps_of(module)


def _takes_usual_lanes(op: Operation) -> bool:
    """Whether an operation is one of the matrix engine's or accesses matrices."""
    if isinstance(op, tt.Dot):
        return True
    blocks = (
        value.type.block if isinstance(value.type, TensorDescType) else block_of(value.type)
        for value in op.operands
        if isinstance(value.type, TensorDescType) or is_block_pointer(value.type)
    )
    return any(block is not None and block.rank > 1 for block in blocks)


def _largest_block(ops: list[Operation]) -> int:
    return max((block.size for op in ops for result in op.results if (block := block_of(result.type))), default=1)
