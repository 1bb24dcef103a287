"""serialize-warps: the warps of a program take turns in one thread (barrier fission).

Level: warp. Takes a warp-level program of W warps (`mltriton.warp_level`) for a target that runs every program as one
warp; does nothing to any other. Leaves a program of one warp: each piece between two barriers is a loop over the
warps, and no barrier and no `gpu.subgroup_id` is left. Guarantees: what does not depend on the warp is done once,
effects once for each warp; what a warp needs from one piece in another is computed again where that is cheap, and
otherwise kept in a buffer with a part for each warp. Files of `serialize/`, in the order of a first reading: `units`
cuts blocks at barriers; `varying` says what depends on the warp; `sharing` and `grid` find loops that are
cut although nobody waits in them; `plan`, `buffers` and `prefetching` decide what is kept where; `writer` writes the
new program, in which `carrying` replaces buffers of sums.
"""

from __future__ import annotations

from mltriton.dialects import tt
from mltriton.ir.attributes import IntegerAttr, integer_in
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32
from mltriton.targets.registry import spec_of

WARP_LEVEL = "mltriton.warp_level"
NUM_WARPS = "ttg.num-warps"


class SerializeWarps(Pass):
    """Turn cooperating warps into loops over the warps."""

    name = "serialize-warps"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        if not is_warp_level(module) or spec.workgroup_warps != 1:
            return module
        from mltriton.passes.warp.serialize.writer import serialized  # Few kernels need it.

        count = integer_in(module.attributes, NUM_WARPS, 1)
        attributes = {name: value for name, value in module.attributes.items() if name != WARP_LEVEL}
        made = Module.empty(attributes | {NUM_WARPS: IntegerAttr(1, I32)}, module.loc)
        for op in module.body.block.ops:
            assert isinstance(op, tt.Func)
            made.body.block.append(serialized(op, count, spec))
        return made
