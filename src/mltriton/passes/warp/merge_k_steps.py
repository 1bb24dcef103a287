"""merge-k-steps: several steps of a dot's loop along K become one longer step.

Level: warp. Takes loops whose body only loads two operands, works on them element by element, and accumulates their
dot; changes them in place. A loop with K steps shorter than the target wants (`TargetSpec.merged_k`) becomes a loop
with longer steps and, after it, the loop as it was for the steps that are left. Guarantees: nothing happens where it
is not proven that the long blocks are the short ones side by side (`long_loops.py`). Results differ by the order of
additions. Purpose: a micro-kernel in memory pays for packing its operands once a step.
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import scf, tt
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType, Type, element_type
from mltriton.records import record
from mltriton.targets.registry import spec_of


@record(frozen=True)
class MergeKSteps(Pass):
    """Merge steps along K. `k`: the wanted length, instead of the target's."""

    name = "merge-k-steps"
    k: int | None = None

    def run(self, module: Module) -> Module:
        wanted = spec_of(module).merged_k if self.k is None else {}
        for op in list(module.walk()):
            if isinstance(op, scf.For) and op.block is not None:
                self._merge(op, wanted)
        return module

    def _merge(self, loop: scf.For, wanted: dict[Type, int]) -> None:
        dots = _accumulations(loop)
        if not dots:
            return
        extents = {cast(TensorType, dot.a.type).shape[-1] for dot in dots}
        lengths = {self.k or wanted.get(element_type(dot.a.type), 0) for dot in dots}
        if len(extents) != 1:
            return
        factor = min(min(lengths) // min(extents), _known_steps(loop))
        factor = 1 << (factor.bit_length() - 1) if factor > 0 else 0
        if factor > 1:
            from mltriton.passes.warp.long_loops import LongLoop  # Tuned products have long steps.

            LongLoop(loop, dots, min(extents), factor).put_in_front()


def _accumulations(loop: scf.For) -> list[tt.Dot]:
    """The dots of a loop, if each adds to a carried block that nothing else uses, and nothing writes memory."""
    end = loop.body.block.terminator
    dots: list[tt.Dot] = []
    for op in loop.body.block.ops:
        if op.writes or op.regions:
            return []
        if isinstance(op, tt.Dot):
            dots.append(op)
    for dot in dots:
        indices = [i for i, argument in enumerate(loop.carried) if argument is dot.c]
        if not indices or dot.c.uses > 1 or dot.result.uses > 1 or end.operands[indices[0]] is not dot.result:
            return []
    return dots


def _known_steps(loop: scf.For) -> int:
    """The number of iterations where it is known; a large number otherwise."""
    lower, upper, step = (splat_of(value) for value in (loop.lower, loop.upper, loop.step))
    if isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int) and step > 0:
        return max(0, -(-(upper - lower) // step))
    return 1 << 30
