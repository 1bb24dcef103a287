"""A whole function: parameters, body, scratch memory, and removal of what nobody used in the end.

Level: warp to intrinsic. Guarantees: no tensor in the result is larger than a chunk.
"""

from __future__ import annotations

from mltriton.dialects import scf, tile, tt
from mltriton.ir.operation import Block, Operation, Region
from mltriton.passes.intrinsic.tile_loops.lowering import Lowering
from mltriton.passes.intrinsic.tile_loops.nest_regions import flatten
from mltriton.targets.base import TargetSpec

READS = (tt.Load, tile.Load)


def lower(function: tt.Func, spec: TargetSpec) -> tt.Func:
    """The function as loops over chunks."""
    old = function.body.block
    low = Lowering(spec, flatten(old))
    e = low.e
    body = Block([argument.type for argument in old.arguments])
    for argument, new in zip(old.arguments, body.arguments, strict=True):
        new.hint = argument.hint
        e.scalars[argument] = new
    with e.emitter.inside(body):
        low.block(old)
        low.flush()
        e.emitter.insert(tt.Return([e.scalar(value) for value in old.terminator.operands], loc=old.terminator.loc))
    remove_unused(body)
    return tt.Func((), (), function.attributes, [Region([body])], function.loc)


def remove_unused(block: Block) -> None:
    """Drop pure operations and loads whose results nobody uses."""
    kept: list[Operation] = []
    for op in reversed(block.ops):
        for inner in op.blocks:
            remove_unused(inner)
        if (op.pure or isinstance(op, READS)) and not any(result.users for result in op.results):
            op.drop_operands()
        elif not (isinstance(op, scf.If) and not op.results and all(len(block.ops) <= 1 for block in op.blocks)):
            kept.append(op)
        else:
            op.drop_operands()
    block.ops = kept[::-1]
