"""match-target-size: warp -> intrinsic.

Takes one warp's program and leaves one in which every operation has a size that the target executes. How depends on
where the target keeps blocks (`TargetSpec.storage`): in registers, operations are unrolled into pieces of the target's
sizes (`split_registers`); in memory, they become loops over chunks, scratch tiles and micro-kernels (`tile_loops`).
Guarantees: types carry no encodings.
Source: ML-Triton paper, section 2.3.
"""

from __future__ import annotations

from mltriton.dialects import tt
from mltriton.errors import PassError
from mltriton.ir.attributes import IntegerAttr, StringAttr
from mltriton.ir.module import Module
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32
from mltriton.targets.base import Storage, TargetSpec
from mltriton.targets.registry import num_warps_of, spec_of


class MatchTargetSize(Pass):
    """Give every operation the size of one of the target's instructions."""

    name = "match-target-size"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        marks = {"mltriton.level": StringAttr("intrinsic"), "ttg.target": StringAttr(spec.name)}
        made = Module.empty(module.attributes | marks, module.loc)
        if spec.storage is Storage.MEMORY:
            _in_memory(module, made, spec)
        else:
            _in_registers(module, made, spec)
        return made


def _in_memory(module: Module, made: Module, spec: TargetSpec) -> None:
    from mltriton.passes.intrinsic.tile_loops import lower  # One kind of target does not need the other's rules.

    if num_warps_of(module) != 1:
        raise PassError(f"{spec.name} keeps blocks in memory: a program there is one warp")
    for op in module.body.block.ops:
        assert isinstance(op, tt.Func)
        made.body.block.append(lower(op, spec))
    made.attributes["ttg.num-warps"] = IntegerAttr(1, I32)


def _in_registers(module: Module, made: Module, spec: TargetSpec) -> None:
    from mltriton.passes.intrinsic.split_registers.driver import split  # As above.

    for op in module.body.block.ops:
        assert isinstance(op, tt.Func)
        made.body.block.append(split(op, spec))
