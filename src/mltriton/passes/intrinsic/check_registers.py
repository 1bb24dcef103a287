"""check-registers: loops of products that a lane has by far too few registers for are refused.

Level: intrinsic, targets whose lanes have registers of their own. Takes a program as it will be lowered and leaves it
as it is. Guarantees afterwards: no loop with products needs more than `spec.overfull` registers
(`analysis/registers.py`). Purpose: the compiler behind this one keeps in memory what a lane has no registers for; for
more than so many it takes minutes, and the kernel would be useless.
"""

from __future__ import annotations

from mltriton.analysis.registers import RegisterEstimate
from mltriton.dialects import scf, tt, ttng
from mltriton.errors import OutOfResources
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.passes import Pass
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of


class CheckRegisters(Pass):
    """Refuse loops of products whose blocks need many times the registers that there are."""

    name = "check-registers"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        if spec.overfull:
            for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
                _check(function, spec)
        return module


def _check(function: tt.Func, spec: TargetSpec) -> None:
    estimate = RegisterEstimate(function, spec)
    for loop in (op for op in function.walk() if isinstance(op, scf.For | scf.While)):
        dot = next(
            (op for block in loop.blocks for op in block.ops if isinstance(op, tt.Dot | ttng.WarpGroupDot)), None
        )
        if dot is not None and estimate.within(loop) > spec.overfull:
            raise _error(dot, spec, estimate.within(loop))


def _error(dot: Operation, spec: TargetSpec, needed: int) -> OutOfResources:
    message = f"blocks beside this product need more registers than a lane of {spec.name} has"
    hint = "Use smaller blocks (along K, too), or more warps (num_warps)."
    expected = f"at most {spec.overfull}, most of them in memory"
    error = OutOfResources(message, expected=expected, found=f"about {needed}", hint=hint)
    return error.at(dot.loc.in_source)
