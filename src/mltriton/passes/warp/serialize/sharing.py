"""Loops in which the warps take turns in every iteration, although they need not wait for each other.

Level: warp. A loop without barriers whose trips are the same for all warps may be cut like one with barriers: each
iteration is done for all warps before the next one. That pays where a dot takes a right operand that is the same for
all warps and new in every iteration: it is brought into the micro-kernel's form once, not once for each warp.
"""

from __future__ import annotations

from collections.abc import Callable

from mltriton.dialects import scf, tt
from mltriton.ir.operation import Block, Operation
from mltriton.passes.intrinsic.tile_loops.dots import is_packed
from mltriton.passes.intrinsic.tile_loops.footprints import is_outside
from mltriton.passes.warp.serialize.units import Cut, Piece, has_barrier
from mltriton.passes.warp.serialize.varying import Varying
from mltriton.targets.base import TargetSpec


def forks_of(body: Block, spec: TargetSpec) -> Callable[[Operation], bool]:
    """Which operations are cut: those that hold barriers, and loops whose dots share an operand that is packed."""
    waiting = {op for inner in body.ops for op in inner.walk() if op.regions and has_barrier(op)}
    loops = {op for inner in body.ops for op in inner.walk() if isinstance(op, scf.For) and _holds_dot(op)} - waiting
    while True:
        forks = waiting | loops
        cut = Cut(body, forks.__contains__)
        varying = Varying(cut, body)
        kept = {op for op in loops if op in cut.forks and _shares(op, cut, varying, spec)}
        if kept == loops:
            return forks.__contains__
        loops = kept


def _holds_dot(loop: scf.For) -> bool:
    return any(isinstance(op, tt.Dot) for op in loop.body.block.ops)


def _shares(loop: Operation, cut: Cut, varying: Varying, spec: TargetSpec) -> bool:
    """Whether all warps take the same trips, and some dot the same new right operand."""
    assert isinstance(loop, scf.For)
    if any(bound in varying for bound in (loop.lower, loop.upper, loop.step)):
        return False
    body = [op for unit in cut.units[loop.body.block] if isinstance(unit, Piece) for op in unit.ops]
    return any(
        isinstance(op, tt.Dot)
        and op.result in varying
        and op.b not in varying
        and not is_outside(loop, op.b)
        and is_packed(op, spec)
        for op in body
    )
