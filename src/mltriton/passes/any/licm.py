"""licm: computations that are the same in every iteration move in front of the loop.

Level: tt to intrinsic. Takes any program and changes it in place. Only pure operations move, inner loops first, so that
one invariant in a nest leaves all loops at once. Guarantees: loads, and everything with an effect, stay; a loop that
never runs costs what moved, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from mltriton.analysis.effects import inner_ops, is_pure
from mltriton.dialects import scf
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass


class LoopInvariants(Pass):
    """Move loop-invariant operations out of loops."""

    name = "licm"

    def run(self, module: Module) -> Module:
        for function in module.body.block.ops:
            _visit(function)
        return module


def _visit(op: Operation) -> None:
    for block in op.blocks:
        _block(block)


def _block(block: Block) -> None:
    if not any(op.regions for op in block.ops):
        return
    ops: list[Operation] = []
    for op in block.ops:
        if op.regions:
            _visit(op)
        if isinstance(op, scf.For | scf.While):
            for moved in _take_invariants(op):
                moved.block = block
                ops.append(moved)
        ops.append(op)
    block.ops[:] = ops


def _take_invariants(loop: scf.For | scf.While) -> list[Operation]:
    """Take the invariant operations out of the bodies of a loop, in order."""
    moved: list[Operation] = []
    for region in loop.regions:
        block = region.block
        varying: set[Value] = set(block.arguments)
        kept: list[Operation] = []
        for op in block.ops:
            if not op.terminator and is_pure(op) and not any(value in varying for value in _used(op)):
                moved.append(op)
            else:
                varying.update(op.results)
                kept.append(op)
        block.ops[:] = kept
    return moved


def _used(op: Operation) -> Iterator[Value]:
    """Every value that the operation or something in its regions uses."""
    yield from op.operands
    for inner in inner_ops(op):
        yield from _used(inner)
