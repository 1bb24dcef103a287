"""The kernel of a module at the intrinsic level as LLVM IR text for NVPTX.

Level: intrinsic -> llvm. `simt/kernel.py` says what a kernel is: 32 lanes a warp, warps along x of a program.
"""

from __future__ import annotations

from mltriton.dialects import tt, ttg, ttng
from mltriton.errors import TargetError
from mltriton.ir.attributes import integer_in
from mltriton.ir.module import Module
from mltriton.targets.assertions import describe
from mltriton.targets.nvidia import (
    dot,
    grid_dependencies,
    inline_assembly,
    math,
    shared,
    specialization,
    tensor_copies,
    wgmma,
)
from mltriton.targets.nvidia.devices import Device
from mltriton.targets.nvidia.facts import LAUNCH_ATTRIBUTES, NvidiaFacts
from mltriton.targets.nvidia.machine import NvidiaMachine
from mltriton.targets.registry import BESIDE, TAKES_TURNS, most_registers_of, total_warps_of
from mltriton.targets.simt import rules
from mltriton.targets.simt.context import Rules
from mltriton.targets.simt.kernel import emit_kernel
from mltriton.targets.simt.shared import allocations
from mltriton.targets.target import Lowered

RULES: Rules = {
    **rules.RULES,
    **dot.RULES,
    **shared.RULES,
    **wgmma.RULES,
    **tensor_copies.RULES,
    **specialization.RULES,
    **grid_dependencies.RULES,
    **inline_assembly.RULES,
}
ELEMENTS: Rules = {**rules.ELEMENTS, **math.RULES, **inline_assembly.ELEMENTS}


def lower(module: Module, device: Device) -> Lowered:
    """LLVM IR, and how a program is to run.

    Raises `BackendError` at the line of what has no lowering, `TargetError` for more warps than a program may have.
    """
    if total_warps_of(module) > device.max_warps:
        message, hint = f"too many warps for cuda:{device.name}", "Choose a smaller num_warps."
        raise TargetError(message, expected=f"at most {device.max_warps}", found=str(total_warps_of(module)), hint=hint)
    maps = tensor_copies.parameters(module)
    facts = NvidiaFacts(
        num_warps=total_warps_of(module),
        shared=allocations(module).size,
        multiplies=any(isinstance(op, tt.Dot | ttng.WarpGroupDot) for op in module.walk()),
        prints=any(isinstance(op, tt.Print) for op in module.walk()),
        assertions=describe(module),
        maps=tensor_copies.maps_of(maps),
        attributes=tuple(number for name, number in LAUNCH_ATTRIBUTES.items() if name in module.attributes),
        beside=integer_in(module.attributes, BESIDE, 1),
        takes_turns=TAKES_TURNS in module.attributes,
    )
    registers = most_registers_of(module)
    hands_over = not registers and any(isinstance(op, ttg.WarpSpecialize) for op in module.walk())
    machine = NvidiaMachine(device, maps, hands_over, registers)
    return Lowered(emit_kernel(module, machine, RULES, ELEMENTS), facts)
