"""split-barriers: the warps of a program stay together in loops of dots.

Level: warp. Takes loops that multiply blocks and changes them in place: an iteration starts with `ttig.barrier_arrive`
and ends with `ttig.barrier_wait`, so that no warp is a whole iteration ahead of another, and what they share in the
cache is still there. Guarantees: no result changes; in such a loop there is no other barrier and no inner loop, and all
warps run it alike, as they do every loop of a program whose blocks they share. Programs with few warps, and kernels
written for warps, stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from mltriton.dialects import scf, tt, ttig
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Operation
from mltriton.ir.passes import Pass
from mltriton.targets.registry import num_warps_of


@dataclass(frozen=True)
class SplitBarriers(Pass):
    """Keep warps together. `warps`: the fewest that are kept; `chained`: also in loops in which a dot takes what
    another gives, where warps that differ hide each other's softmax.
    """

    name = "split-barriers"
    warps: int = 8
    chained: bool = False

    def run(self, module: Module) -> Module:
        if not is_warp_level(module) and num_warps_of(module) >= max(2, self.warps):
            for op in module.walk():
                if isinstance(op, scf.For) and self._is_kept(op):
                    _surround(op)
        return module

    def _is_kept(self, loop: scf.For) -> bool:
        ops = loop.body.block.ops
        dots = [op for op in ops if isinstance(op, tt.Dot)]
        if not dots or any(ttig.meets(op) or _has_loop(op) for op in ops):
            return False
        return self.chained or all(dot.c in loop.carried for dot in dots)


def _has_loop(op: Operation) -> bool:
    return any(isinstance(inner, scf.For | scf.While) for inner in op.walk())


def _surround(loop: scf.For) -> None:
    block = loop.body.block
    Builder().before(block.ops[0]).create(ttig.BarrierArrive, result_types=[])
    Builder().before(block.terminator).create(ttig.BarrierWait, result_types=[])
