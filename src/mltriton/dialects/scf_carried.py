"""Loops and branches with other carried values: the same body under a changed signature.

Level: tt to intrinsic. Takes a `scf.for`, `scf.while` or `scf.if` in a block; puts a new operation in its place that
takes over the body. Guarantees: arguments and results that stay are replaced everywhere; the others still have the
users that they had, which is for the caller to settle.
"""

from __future__ import annotations

from collections.abc import Sequence

from mltriton.dialects import scf
from mltriton.ir.operation import Block, BlockArgument, Operation, OpResult, Region, Value
from mltriton.ir.types import Type


def keep_for(loop: scf.For, kept: Sequence[int], extra: Sequence[Value] = ()) -> scf.For:
    """The loop with the carried values `kept` and then one for each initial value in `extra`.

    The caller adds what the body yields for `extra` (`yield_also`).
    """
    made = body_taken_over(loop, kept, extra)
    _put_in_place(loop, made, kept)
    return made


def body_taken_over(loop: scf.For, kept: Sequence[int], extra: Sequence[Value] = ()) -> scf.For:
    """The same in no block yet: the old loop keeps its place, its results and their users, but not its body."""
    old = loop.body.block
    types = [*(loop.results[i].type for i in kept), *(value.type for value in extra)]
    block = Block([loop.counter.type, *types])
    _take_over(old, block, [0, *(1 + i for i in kept)])
    end = block.terminator
    end.set_operands([end.operands[i] for i in kept], (len(kept),))
    operands = [*loop.operands[:3], *(loop.inits[i] for i in kept), *extra]
    return scf.For(operands, types, loop.attributes, [Region([block])], loop.loc, (1, 1, 1, len(types)))


def carry_also(loop: scf.For, init: Value) -> tuple[BlockArgument, OpResult]:
    """Let a loop carry one more value, in place: its argument and its result. The caller adds what the body yields
    (`yield_also`).
    """
    count = len(loop.inits) + 1
    loop.set_operands([*loop.operands, init], (1, 1, 1, count))
    argument = loop.body.block.add_argument(init.type, init.hint)
    result = OpResult(init.type, loop, count - 1)
    result.hint = init.hint
    loop.results.append(result)
    return argument, result


def keep_if(branch: scf.If, kept: Sequence[int], extra: Sequence[Type] = ()) -> scf.If:
    """The branch with the results `kept` and then results of the types `extra`, for which the caller adds what both
    regions yield.
    """
    for block in branch.blocks:
        end = block.terminator
        end.set_operands([end.operands[i] for i in kept], (len(kept),))
    regions = list(branch.regions)
    branch.regions = []
    types = [*(branch.results[i].type for i in kept), *extra]
    made = scf.If([branch.condition], types, branch.attributes, regions, branch.loc, branch.segments)
    _put_in_place(branch, made, kept)
    return made


def keep_while(
    loop: scf.While,
    carried: Sequence[int],
    results: Sequence[int],
    extra: Sequence[Value] = (),
    extra_results: Sequence[Type] = (),
) -> scf.While:
    """The loop with some of the values that `before` takes (`carried`) and some that it hands on (`results`), and then
    further ones of both kinds, for which the caller adds what the bodies yield.
    """
    before, after = loop.before.block, loop.after.block
    new_before = Block([*(before.arguments[i].type for i in carried), *(value.type for value in extra)])
    new_after = Block([*(after.arguments[i].type for i in results), *extra_results])
    _take_over(before, new_before, carried)
    _take_over(after, new_after, results)
    condition, end = new_before.terminator, new_after.terminator
    condition.set_operands([condition.operands[0], *(condition.operands[1 + i] for i in results)], (1, len(results)))
    end.set_operands([end.operands[i] for i in carried], (len(carried),))
    inits = [*(loop.inits[i] for i in carried), *extra]
    result_types = [*(loop.results[i].type for i in results), *extra_results]
    regions = [Region([new_before]), Region([new_after])]
    made = scf.While(inits, result_types, loop.attributes, regions, loop.loc, (len(inits),))
    _put_in_place(loop, made, results)
    return made


def yield_also(block: Block, values: Sequence[Value]) -> None:
    """Let the terminator of a body hand on more values."""
    end = block.terminator
    operands = [*end.operands, *values]
    first = 1 if isinstance(end, scf.Condition) else 0
    sizes = (len(operands),) if not first else (1, len(operands) - 1)
    end.set_operands(operands, sizes)


def _take_over(old: Block, new: Block, kept: Sequence[int]) -> None:
    """Move the operations of a block; argument i of the new block stands for argument `kept[i]` of the old one."""
    for index, after in zip(kept, new.arguments, strict=False):
        before = old.arguments[index]
        after.hint = before.hint
        before.replace_by(after)
    for op in old.ops:
        new.append(op)
    old.ops = []


def _put_in_place(old: Operation, new: Operation, kept: Sequence[int]) -> None:
    block = old.block
    assert block is not None
    for index, result in zip(kept, new.results, strict=False):
        result.hint = old.results[index].hint
        old.results[index].replace_by(result)
    block.ops[block.ops.index(old)] = new
    new.block, old.block = block, None
    old.drop_operands()
