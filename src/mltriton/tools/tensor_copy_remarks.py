"""Which accesses of a kernel an engine does by copies of whole blocks, and why it does not do the others.

Level: tt. Takes a job for a target with such an engine; gives remarks in the order of the program. Guarantees: what a
remark says is what the pass `hoist-descriptors` judges of the same program.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from mltriton.analysis.rectangles import Reason, Rectangle
from mltriton.analysis.tensor_maps import Access, TensorAccess, TensorMaps
from mltriton.dialects import tt
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType, block_of
from mltriton.passes.tt.block_alternatives import alternatives, is_simple, regular_pointers
from mltriton.passes.tt.hoist_descriptors import HoistDescriptors, are_allowed, limits_in
from mltriton.passes.tt.normalize_block_pointers import NormalizeBlockPointers
from mltriton.targets.base import TensorCopies
from mltriton.tools.remarks import Remark

if TYPE_CHECKING:
    from mltriton.compiler.job import Job


def tensor_copy_remarks(job: Job) -> list[Remark]:
    """The remarks; none where there is no such engine, or the options do without."""
    copies = job.target.spec.tensor_copies
    module = job.module_before(HoistDescriptors) if copies is not None else None
    if copies is None or module is None or not are_allowed(module):
        return []
    module = NormalizeBlockPointers().run(module)
    limits = limits_in(module, copies)
    functions = [op for op in module.body.block.ops if isinstance(op, tt.Func)]
    return [remark for function in functions for remark in _remarks(function, limits)]


def _remarks(function: tt.Func, limits: TensorCopies) -> Iterator[Remark]:
    added = alternatives(function, limits)
    instead = {cast(Operation, original): cast(Access, op) for op, original in added.items()}
    judge, pointers = TensorMaps(function, limits, added), regular_pointers(function, limits)
    for op in function.walk():
        if isinstance(op, Access) and op not in added and _block(op) is not None:
            judged = judge.of(instead.get(op, op))
            if isinstance(op, tt.Load | tt.Store) and isinstance(op.ptr.type, TensorType) and op not in instead:
                judged = _not_described(op, pointers.of(op), limits)
            yield _remark(op, judged)


def _not_described(op: tt.Load | tt.Store, regular: Rectangle | Reason, limits: TensorCopies) -> Reason:
    """Why a block of pointers is none of a tensor that the launch describes."""
    if isinstance(regular, Rectangle) and is_simple(op, regular):
        return Reason(f"lanes bring small blocks with rows of less than {limits.row_bytes} bytes faster")
    why = regular.why if isinstance(regular, Reason) else "the matrix is not the same for all programs"
    return Reason(f"each element has a pointer of its own: {why}", getattr(regular, "hint", None))


def _block(op: Access) -> TensorType | None:
    return block_of(op.value.type if isinstance(op, tt.DescriptorStore | tt.Store) else op.result.type)


def _remark(op: Access, judged: TensorAccess | Reason) -> Remark:
    stores, block = isinstance(op, tt.Store | tt.DescriptorStore), cast(TensorType, _block(op))
    what = f"{'store' if stores else 'load'} {'x'.join(map(str, block.shape))}x{block.element}"
    if isinstance(judged, Reason):
        return Remark(op.loc.in_source, what, judged.why, judged.hint.removesuffix(".") if judged.hint else None)
    tensor = f"a tensor of {judged.tensor.block.rank} dimensions that the launch describes"
    how = f"by the engine for whole blocks, {'to' if stores else 'from'} {tensor}"
    return Remark(op.loc.in_source, what, how)
