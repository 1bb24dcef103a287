"""Whether a kernel has a warp of its own that starts copies, how it shares what there is, and why not; how far ahead
loops copy that have none.

Level: ttg. Takes a job; gives a remark for each function, where the target has groups of warps, and for each loop.
Guarantees: what a remark says is what the passes `specialize-warps` and `pipeline-loads` judge of the same program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mltriton.analysis.producers import NotProduced
from mltriton.dialects import tt
from mltriton.ir.module import Module
from mltriton.passes.ttg.pipeline_loads import PipelineLoads, plans_of
from mltriton.passes.ttg.specialize_warps import SpecializeWarps, plan_of
from mltriton.targets.registry import TAKES_TURNS
from mltriton.tools.remarks import Remark

if TYPE_CHECKING:
    from mltriton.compiler.job import Job


def specialization_remarks(job: Job) -> list[Remark]:
    """The remarks; none where the target has no such groups."""
    module = job.module_before(SpecializeWarps) if job.target.spec.warp_groups is not None else None
    return [] if module is None else list(_remarks(module))


def pipeline_remarks(job: Job) -> list[Remark]:
    """Of each loop that copies ahead."""
    module = job.module_before(PipelineLoads)
    if module is None:
        return []
    functions = [op for op in module.body.block.ops if isinstance(op, tt.Func)]
    plans = [plan for function in functions for plan in plans_of(function, module)]
    return [Remark(plan.loop.loc.in_source, "loop", f"copies {plan.summary}") for plan in plans]


def _remarks(module: Module) -> Iterator[Remark]:
    for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
        if TAKES_TURNS in module.attributes:
            yield Remark(function.loc.in_source, "programs", "as many as run at a time compute all blocks in turn")
        try:
            yield Remark(function.loc.in_source, "producer warp", plan_of(function, module).summary)
        except NotProduced as found:
            yield Remark(found.op.loc.in_source, "no producer warp", found.reason.why)
