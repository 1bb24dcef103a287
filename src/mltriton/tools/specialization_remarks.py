"""Whether a kernel has a warp of its own that starts copies, how it shares what there is, and why not.

Level: ttg. Takes a job for a target with groups of warps; gives a remark for each function. Guarantees: what a remark
says is what the pass `specialize-warps` judges of the same program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mltriton.analysis.producers import NotProduced
from mltriton.dialects import tt
from mltriton.ir.module import Module
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.passes.ttg.specialize_warps import SpecializeWarps, plan_of
from mltriton.tools.remarks import Remark

if TYPE_CHECKING:
    from mltriton.compiler.job import Job


def specialization_remarks(job: Job) -> list[Remark]:
    """The remarks; none where the target has no such groups."""
    spec = job.target.spec
    if spec.warp_groups is None:
        return []
    before, found, _ = spec.pipeline[1].partition(f",{SpecializeWarps.name}")
    if not found:
        return []
    module = PassManager(parse_pipeline(f"{spec.pipeline[0]},{before}")).run(job.source_module())
    return list(_remarks(module))


def _remarks(module: Module) -> Iterator[Remark]:
    for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
        try:
            yield Remark(function.loc.in_source, "producer warp", plan_of(function, module).summary)
        except NotProduced as found:
            yield Remark(found.op.loc.in_source, "no producer warp", found.reason.why)
