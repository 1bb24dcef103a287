"""merge-inductions: induction variables of a loop at a constant distance from each other are one.

Level: intrinsic, targets whose block accesses add a constant to the place of a block (`BlockIO.distances`), after
normalize-block-pointers. The pieces of a block each have an offset that starts at its own place and grows by the same
steps; where the loop carries one of them, accesses to all share an address. Guarantees: the same numbers.
"""

from __future__ import annotations

from mltriton.dialects import arith, scf
from mltriton.dialects.scf_carried import keep_for
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import IntegerType
from mltriton.targets.registry import spec_of


class MergeInductions(Pass):
    """Carry one number for several."""

    name = "merge-inductions"

    def run(self, module: Module) -> Module:
        limits = spec_of(module).block_load
        if limits is not None and limits.distances:
            for op in list(module.walk()):
                if isinstance(op, scf.For):
                    _merge(op)
        return module


def _merge(loop: scf.For) -> None:
    first: dict[object, tuple[int, int]] = {}
    merged: dict[int, tuple[int, int]] = {}
    for number, (argument, init) in enumerate(zip(loop.carried, loop.inits, strict=True)):
        steps = _steps(loop.body.block.terminator.operands[number], argument)
        if isinstance(init.type, IntegerType) and steps is not None:
            root, constant = _taken_apart(init)
            known, start = first.setdefault((root, steps, init.type), (number, constant))
            if known != number:
                merged[number] = known, constant - start
    if merged:
        _replace(loop, merged)


def _replace(loop: scf.For, merged: dict[int, tuple[int, int]]) -> None:
    body, block = loop.body.block, loop.block
    assert block is not None
    inside, behind = Builder().before(body.ops[0]), Builder().before(block.ops[block.position(loop) + 1])
    for number, (known, distance) in merged.items():
        for builder, values in ((inside, loop.carried), (behind, loop.results)):
            apart = arith.integer(builder, distance, values[known].type)
            values[number].replace_by(builder.emit(arith.AddI, values[known], apart))
    keep_for(loop, [number for number in range(len(loop.inits)) if number not in merged])


def _taken_apart(value: Value) -> tuple[Value | None, int]:
    """A number as one that is not known and a constant."""
    number, op = splat_of(value), value.defining_op
    if isinstance(number, int):
        return None, number
    if isinstance(op, arith.AddI) and isinstance(number := splat_of(op.rhs), int):
        return op.lhs, number
    return value, 0


def _steps(value: Value, argument: Value) -> tuple[Value | int, ...] | None:
    """What is added to `argument` to make `value`; None where it is made in another way."""
    found: list[Value | int] = []
    while value is not argument:
        op = value.defining_op
        if not isinstance(op, arith.AddI):
            return None
        step = splat_of(op.rhs)
        found.append(step if isinstance(step, int) else op.rhs)
        value = op.lhs
    return tuple(found) or None
