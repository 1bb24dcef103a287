"""merge-inductions: induction variables of a loop that are always equal, or at a constant distance, are one.

Level: intrinsic. Blocks that a loop moves alike each have an offset that grows by the same steps. Offsets at a constant
distance are merged where block accesses add a constant to an offset (`BlockIO.distances`): accesses to them all share
an address. Guarantees: the same numbers.
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
        distances = limits is not None and limits.distances
        for op in list(module.walk()):
            if isinstance(op, scf.For):
                _merge(op, distances=distances)
        return module


def _merge(loop: scf.For, *, distances: bool) -> None:
    first: dict[object, tuple[int, int]] = {}
    merged: dict[int, tuple[int, int]] = {}
    for number, (argument, init) in enumerate(zip(loop.carried, loop.inits, strict=True)):
        steps = _steps(loop.body.block.terminator.operands[number], argument)
        if isinstance(init.type, IntegerType) and steps is not None:
            root, constant = _taken_apart(init)
            key = root, steps, init.type, 0 if distances else constant
            known, start = first.setdefault(key, (number, constant))
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
            one = values[known]
            if distance:
                one = builder.emit(arith.AddI, one, arith.integer(builder, distance, one.type))
            values[number].replace_by(one)
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
