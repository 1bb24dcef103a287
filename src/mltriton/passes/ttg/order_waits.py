"""order-waits: what is computed while products are under way is computed before the wait for them.

Level: ttg, after `release-slots`. Takes any program and changes it in place: the last sums of f32 (`tt.reduce`) between
a `ttng.warp_group_dot_wait` and the start of a product, or the wait, in front of it become an input of the wait, so
that no level below moves what they sum up behind it: an assembler that sees nothing but registers does, and then the
warps wait for the product first and compute afterwards. Guarantees: values stay; the results for these inputs are
taken by nobody.
"""

from __future__ import annotations

from mltriton.dialects import tt, ttng
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import F32, TensorType


class OrderWaits(Pass):
    """Compute in front of waits what stands there."""

    name = "order-waits"

    def run(self, module: Module) -> Module:
        for op in list(module.walk()):
            if isinstance(op, ttng.WarpGroupDotWait):
                sums = _computed_meanwhile(op)
                if sums is not None:
                    _give(op, sums)
        return module


def _computed_meanwhile(wait: ttng.WarpGroupDotWait) -> Value | None:
    """The last sums that are computed while the product goes on."""
    block = wait.block
    assert block is not None
    for op in reversed(block.ops[: block.position(wait)]):
        if isinstance(op, ttng.WarpGroupDot | ttng.WarpGroupDotWait):
            return None
        if isinstance(op, tt.Reduce) and all(_is_of_f32(result) for result in op.results):
            return op.results[0]
    return None


def _is_of_f32(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.element is F32


def _give(wait: ttng.WarpGroupDotWait, value: Value) -> None:
    """One more input."""
    values, builder = [*wait.inputs, value], Builder().before(wait)
    with builder.at(wait.loc):
        types = [each.type for each in values]
        made = builder.create(ttng.WarpGroupDotWait, values, result_types=types, pendings=wait.pendings)
    for old, new in zip(wait.results, made.results, strict=False):
        new.hint = old.hint
    wait.replace_by(list(made.results[: len(wait.results)]))
