"""flush-roundings: what dots of narrow floats give and take needs no denormals where the target's dots drop them.

Level: tt. Takes any program and marks `arith.truncf` (`flushes`) where its source is the sum of such dots alone, begun
with zero, or where only such dots take its result. Guarantees: nothing else changes; targets whose dots keep denormals
(`MicroKernel.flushes`) are left alone. Purpose: an instruction rounds in place of nine, but drops denormals.
"""

from __future__ import annotations

from mltriton.analysis.workload import only_multiplied
from mltriton.dialects import arith, scf, tt
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import BlockArgument, OpResult, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import element_type, shape_of
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import spec_of


class FlushRoundings(Pass):
    """Let roundings around dots make zero of what is less than the least normal number."""

    name = "flush-roundings"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        if any(kernel.flushes for kernels in spec.micro_kernels.values() for kernel in kernels):
            for op in module.walk():
                if isinstance(op, arith.TruncF) and (_is_sum(spec, op.source) or _is_multiplied(spec, op.result)):
                    op.flushes = True
        return module


def _flushes(spec: TargetSpec, op: tt.Dot) -> bool:
    """Whether the target drops denormals of a dot's operands and sums."""
    kernel = spec.micro_kernel(element_type(op.a.type), shape_of(op.b.type)[-1], shape_of(op.a.type)[-1])
    return kernel is not None and kernel.flushes


def _is_multiplied(spec: TargetSpec, value: Value) -> bool:
    """Whether only such dots take a value, as an operand."""
    return only_multiplied(value, lambda dot, operand: operand is not dot.c and _flushes(spec, dot))


def _is_sum(spec: TargetSpec, value: Value, assumed: frozenset[Value] = frozenset()) -> bool:
    """Whether a value is zero, or what dots and loops around them added to it."""
    if value in assumed or splat_of(value) == 0:
        return True
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op
        if not isinstance(loop, scf.For) or value.index == 0:
            return False
        yielded = loop.body.block.terminator.operands[value.index - 1]
        return _is_sum(spec, loop.inits[value.index - 1], assumed) and _is_sum(spec, yielded, assumed | {value})
    assert isinstance(value, OpResult)
    op = value.op
    if isinstance(op, scf.For):
        return _is_sum(spec, op.body.block.arguments[value.index + 1], assumed)
    return isinstance(op, tt.Dot) and _flushes(spec, op) and _is_sum(spec, op.c, assumed)
