"""prefetch: the blocks that loops load are asked for some iterations before.

Level: ttg, after normalize-block-pointers. Takes loops at any depth, whatever else they do, and changes them in place:
for each load of a matrix through a block pointer or descriptor whose offset moves regularly, the first blocks are
prefetched in front of the loop, and in each iteration the one that is loaded `distance` iterations later. For that a
block is cut between all warps of the program (`BlockIO.prefetched`), however its load is cut: what several warps load
comes once. A block too small for that is left. Guarantees: no result changes; a loop that goes on where another one
stopped prefetches nothing again.
Source: ML-Triton paper, section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mltriton.analysis.affine.motion import LoopAffine
from mltriton.dialects import scf, tt, ttig
from mltriton.ir.attributes import integer_in
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation
from mltriton.ir.passes import Pass
from mltriton.ir.types import TensorType
from mltriton.layouts.encodings import Encoding
from mltriton.passes.ttg.prefetch_addresses import Address, Encode, Ends, Load, Position, address_of, note_ends
from mltriton.targets.registry import sharing_warps_of, spec_of


@dataclass(frozen=True)
class Prefetch(Pass):
    """Insert prefetches. `distance`: iterations ahead, instead of the loop's or the module's number of stages."""

    name = "prefetch"
    distance: int | None = None

    def run(self, module: Module) -> Module:
        spec, warps = spec_of(module), sharing_warps_of(module)
        limits = spec.block_load
        if limits is None or (prefetched := limits.prefetched) is None:
            return module
        reached, ends = set[Position](), Ends()

        def encode(block: TensorType, contiguous: int) -> Encoding | None:
            return prefetched(block, contiguous, warps, limits, spec.warp_size)

        usual = integer_in(module.attributes, "ttg.num-stages", 0)
        for op in list(module.walk()):
            if isinstance(op, scf.For):
                distance = self.distance if self.distance is not None else op.num_stages or usual
                if distance > 0:
                    _prefetch_in(op, distance, encode, reached, ends)
        return module


def _prefetch_in(loop: scf.For, distance: int, encode: Encode, reached: set[Position], ends: Ends) -> None:
    """`reached` is where the prefetches of earlier loops end, with their distance."""
    affine, entry = LoopAffine(loop), Builder().before(loop)
    known = set[Position]()
    note_ends(affine, ends)
    for run in _runs(loop.body.block.ops):
        found: list[tuple[Load, Address]] = []
        for load in run:
            address = address_of(load, affine, encode, ends)
            if address is not None and address.first() not in known:
                known.add(address.first())
                found.append((load, address))
        builder = Builder().before(_after(run[-1]))
        for load, address in found:
            with builder.at(load.loc), entry.at(load.loc):
                if (distance, *address.first()) not in reached:
                    for steps in range(distance):
                        entry.create(ttig.Prefetch, address.before(entry, steps), None, result_types=[])
                builder.create(ttig.Prefetch, address.ahead(builder, entry, distance), None, result_types=[])
            reached.add((distance, *address.behind()))


def _runs(ops: Sequence[Operation]) -> list[list[Load]]:
    """The loads of a body, those between which nothing is multiplied together: what comes first is loaded first."""
    runs: list[list[Load]] = [[]]
    for op in ops:
        if isinstance(op, tt.Load | tt.DescriptorLoad):
            runs[-1].append(op)
        elif isinstance(op, tt.Dot) or op.regions:
            runs.append([])
    return [run for run in runs if run]


def _after(op: Operation) -> Operation:
    assert op.block is not None
    return op.block.ops[op.block.position(op) + 1]
