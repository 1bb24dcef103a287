"""choose-registers: how many registers a warp of the program is to have.

Level: intrinsic, targets whose blocks live in registers. Takes a program as it will be lowered; adds two attributes to
the module: `ttig.registers`, what its functions are expected to need (`analysis/registers.py`), and
`ttig.register_mode`, the number of registers that a warp gets: what the user asked for (`ttig.grf_mode`), or the
smallest of the target's that is enough, or the largest that so many warps may have.
"""

from __future__ import annotations

from mltriton.analysis.registers import RegisterEstimate, choose_mode
from mltriton.dialects import tt
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.module import Module
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32
from mltriton.targets.base import Storage
from mltriton.targets.registry import num_warps_of, spec_of


class ChooseRegisters(Pass):
    """Say how many registers a warp needs and gets."""

    name = "choose-registers"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        functions = [op for op in module.body.block.ops if isinstance(op, tt.Func)]
        if spec.storage is not Storage.REGISTERS or not spec.register_modes or not functions:
            return module
        needed = max(RegisterEstimate(function, spec).peak.registers for function in functions)
        asked = module.attributes.get("ttig.grf_mode")
        mode = choose_mode(spec, needed, num_warps_of(module))
        module.attributes["ttig.registers"] = IntegerAttr(needed, I32)
        if asked is not None:
            module.attributes["ttig.register_mode"] = asked
        elif mode is not None:
            module.attributes["ttig.register_mode"] = IntegerAttr(mode.registers, I32)
        return module
