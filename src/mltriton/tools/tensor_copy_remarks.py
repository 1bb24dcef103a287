"""Which accesses of a kernel an engine does by copies of whole blocks, and why it does not do the others.

Level: tt. Takes a job for a target with such an engine; gives remarks in the order of the program. Guarantees: what a
remark says is what the pass `hoist-descriptors` judges of the same program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from mltriton.analysis.rectangles import Reason
from mltriton.analysis.tensor_maps import Access, TensorMaps, accesses_of
from mltriton.dialects import tt
from mltriton.ir.types import TensorType, block_of
from mltriton.passes.manager import PassManager
from mltriton.passes.pipeline import parse_pipeline
from mltriton.passes.tt.hoist_descriptors import HoistDescriptors, are_allowed, limits_in
from mltriton.tools.remarks import Remark

if TYPE_CHECKING:
    from mltriton.compiler.job import Job


def tensor_copy_remarks(job: Job) -> list[Remark]:
    """The remarks; none where there is no such engine, or the options do without."""
    spec, module = job.target.spec, job.source_module()
    before, found, _ = spec.pipeline[0].partition(f",{HoistDescriptors.name}")
    if spec.tensor_copies is None or not found or not are_allowed(module):
        return []
    module = PassManager(parse_pipeline(f"{before},normalize-block-pointers")).run(module)
    functions = [op for op in module.body.block.ops if isinstance(op, tt.Func)]
    limits = limits_in(module, spec.tensor_copies)
    judges = [(function, TensorMaps(function, limits)) for function in functions]
    return [_remark(op, judge) for function, judge in judges for op in accesses_of(function)]


def _remark(op: Access, judge: TensorMaps) -> Remark:
    place, stores = judge.of(op), isinstance(op, tt.Store | tt.DescriptorStore)
    block = block_of(op.operands[1].type if isinstance(op, tt.DescriptorStore | tt.Store) else op.result.type)
    what = (
        f"{'store' if stores else 'load'} {'x'.join(map(str, cast(TensorType, block).shape))}x{block and block.element}"
    )
    if isinstance(place, Reason):
        how, hint = f"element by element, not by the engine for whole blocks, since {place.why}", place.hint
        return Remark(op.loc.in_source, what, how, hint.removesuffix(".") if hint else None)
    dimensions = place.tensor.block.rank
    how = f"by the engine for whole blocks, from a tensor of {dimensions} dimensions that the launch describes"
    return Remark(op.loc.in_source, what, how.replace("from", "to") if stores else how)
