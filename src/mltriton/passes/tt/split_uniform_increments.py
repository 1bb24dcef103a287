"""split-uniform-increments: loops carry a scalar offset instead of a block that moves as a whole.

Level: tt. Takes any program, best after `reorder-broadcast`; changes it in place. A block of pointers or integers
that a loop carries, and that becomes itself plus the splat of a scalar, turns into its initial value plus the splat
of a carried scalar (i64 for pointers). A carried scalar that grows by a constant is computed from the loop's counter
where the counter's start and step are constants. Guarantees: the same values; carried tensors of pointers are left
only where they move by different amounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.dialects import arith, scf, tt
from mltriton.dialects.scf_carried import keep_for, keep_if, keep_while, yield_also
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, OpResult, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I64, IntegerType, PointerType, TensorType, Type, element_type, like
from mltriton.passes.tt.reorder_broadcast import moved_by
from mltriton.records import record


class SplitUniformIncrements(Pass):
    """Carry offsets instead of moving blocks."""

    name = "split-uniform-increments"

    def run(self, module: Module) -> Module:
        for op in _post_order(module):
            if isinstance(op, scf.For):
                _split_counters(_split_for(op))
            elif isinstance(op, scf.While):
                _split_while(op)
        return module


def _post_order(op: Operation) -> list[Operation]:
    return [inner for block in op.blocks for child in block.ops for inner in [*_post_order(child), child]]


# How much a block moved.


def moves_uniformly(value: Value, start: Value) -> bool:
    """Whether `value` is `start` plus the same amount for every element."""
    op = value.defining_op
    if value is start:
        return True
    if isinstance(op, scf.If):
        ends = handed_from(value) or ()
        return len(ends) == 2 and all(moves_uniformly(end, start) for end in ends)
    step = _step(op, start)
    return step is not None and moves_uniformly(step[0], start)


def _step(op: Operation | None, start: Value) -> tuple[Value, Value, type[arith.AddI | arith.SubI]] | None:
    """The block that an operation moves, the uniform amount, and the direction."""
    if isinstance(op, tt.AddPtr | arith.SubI) and _is_uniform(op.operands[1]):
        return op.operands[0], op.operands[1], arith.SubI if isinstance(op, arith.SubI) else arith.AddI
    if isinstance(op, arith.AddI):
        for moved, amount in (op.operands, op.operands[::-1]):
            if _is_uniform(amount):
                return moved, amount, arith.AddI
    return None


def _is_uniform(value: Value) -> bool:
    return isinstance(value.defining_op, tt.Splat) or splat_of(value) is not None


def amount_moved(builder: Builder, value: Value, start: Value, type: Type) -> Value:
    """By how much `value` moved from `start`, as a scalar of `type`, computed where the builder stands."""
    op = value.defining_op
    if value is start:
        return arith.integer(builder, 0, type)
    if isinstance(op, scf.If):
        return _amount_of_branches(builder, op, cast(OpResult, value).index, start, type)
    step = _step(op, start)
    assert step is not None
    moved, amount, direction = step
    if moved is start and direction is arith.AddI:
        return _scalar(builder, amount, type)
    before = amount_moved(builder, moved, start, type)
    return builder.emit(direction, before, _scalar(builder, amount, type))


def _amount_of_branches(builder: Builder, branch: scf.If, index: int, start: Value, type: Type) -> Value:
    made = keep_if(branch, range(len(branch.results)), [type])
    for region in made.regions:
        block = region.block
        inner = Builder().before(block.terminator)
        yield_also(block, [amount_moved(inner, block.terminator.operands[index], start, type)])
    return made.results[-1]


def _scalar(builder: Builder, amount: Value, type: Type) -> Value:
    """A uniform block as a scalar of `type`."""
    number = splat_of(amount)
    if number is not None:
        return arith.integer(builder, cast(int, number), type)
    source = cast(tt.Splat, amount.defining_op).source
    return source if source.type is type else builder.emit(arith.ExtSI, source, result_types=[type])


# Blocks that loops carry.


def _offset_type(block: Type) -> Type | None:
    """The type of the scalar by which a carried block moves; None for what cannot be split."""
    element = element_type(block)
    if not isinstance(block, TensorType):
        return None
    return I64 if isinstance(element, PointerType) else element if isinstance(element, IntegerType) else None


def _moved(builder: Builder, start: Value, amount: Value) -> Value:
    """`start` with every element moved by a scalar."""
    if isinstance(element_type(start.type), PointerType):
        return moved_by(builder, start, amount)
    return builder.emit(arith.AddI, start, builder.emit(tt.Splat, amount, result_types=[like(start.type, amount.type)]))


@record(frozen=True)
class _Split:
    """A carried block to split: its initial value, what stands for it in the body, and its offset's type."""

    index: int
    start: Value
    argument: Value
    offset: Type


def _split_for(loop: scf.For) -> scf.For:
    end = loop.body.block.terminator
    splits = [
        _Split(i, loop.inits[i], argument, offset)
        for i, argument in enumerate(loop.carried)
        if (offset := _offset_type(argument.type)) is not None and moves_uniformly(end.operands[i], argument)
    ]
    if not splits:
        return loop
    gone = {split.index for split in splits}
    kept = [i for i in range(len(loop.inits)) if i not in gone]
    old_results = loop.results
    steps, old = _steps(end, splits), list(loop.body.block.arguments)
    made = keep_for(loop, kept, _zeros(loop, splits))
    body = made.body.block
    steps = _renamed(steps, [old[0], *(old[1 + i] for i in kept)], body.arguments)
    amounts = body.arguments[1 + len(kept) :]
    _grow(body, amounts, steps)
    _restore(body, splits, [split.argument for split in splits], amounts)
    _restore_after(made, splits, [old_results[split.index] for split in splits], made.results[len(kept) :])
    return made


def _split_while(loop: scf.While) -> None:
    condition, end = loop.before.block.terminator, loop.after.block.terminator
    splits: list[_Split] = []
    handed_on: list[int] = []
    for i, argument in enumerate(loop.before.block.arguments):
        offset, indices = (
            _offset_type(argument.type),
            [j for j, v in enumerate(condition.operands[1:]) if v is argument],
        )
        if offset is None or len(indices) != 1:
            continue
        inner = loop.after.block.arguments[indices[0]]
        if moves_uniformly(end.operands[i], inner):
            splits.append(_Split(i, loop.inits[i], inner, offset))
            handed_on.append(indices[0])
    if not splits:
        return
    gone = {split.index for split in splits}
    kept = [i for i in range(len(loop.inits)) if i not in gone]
    kept_results = [j for j in range(len(loop.results)) if j not in handed_on]
    old_before = [loop.before.block.arguments[split.index] for split in splits]
    old_results = [loop.results[j] for j in handed_on]
    steps, old = _steps(end, splits), list(loop.after.block.arguments)
    made = keep_while(loop, kept, kept_results, _zeros(loop, splits), [split.offset for split in splits])
    before, after = made.before.block, made.after.block
    steps = _renamed(steps, [old[j] for j in kept_results], after.arguments)
    amounts, inner_amounts = before.arguments[len(kept) :], after.arguments[len(kept_results) :]
    yield_also(before, amounts)
    _grow(after, inner_amounts, steps)
    _restore(before, splits, old_before, amounts)
    _restore(after, splits, [split.argument for split in splits], inner_amounts)
    _restore_after(made, splits, old_results, made.results[len(kept_results) :])


def _renamed(steps: Sequence[Value], old: Sequence[Value], new: Sequence[Value]) -> list[Value]:
    """Amounts that are arguments of the body themselves (the loop's counter) as those of the new body."""
    names = dict(zip(old, new, strict=False))
    return [names.get(step, step) for step in steps]


def _zeros(loop: Operation, splits: Sequence[_Split]) -> list[Value]:
    builder = Builder().before(loop)
    return [arith.integer(builder, 0, split.offset) for split in splits]


def _steps(end: Operation, splits: Sequence[_Split]) -> list[Value]:
    """By how much each block moves in an iteration, computed at the end of the body."""
    builder = Builder().before(end)
    block = cast(Block, end.block)
    for split in splits:
        # Values are read from operands and handed on at once: a branch is replaced by one that gives the amount too.
        yield_also(block, [amount_moved(builder, end.operands[split.index], split.argument, split.offset)])
    return end.operands[-len(splits) :]


def _grow(body: Block, amounts: Sequence[Value], steps: Sequence[Value]) -> None:
    """Hand on the offsets of the next iteration."""
    builder = Builder().before(body.terminator)
    sums = [builder.emit(arith.AddI, amount, step) for amount, step in zip(amounts, steps, strict=True)]
    yield_also(body, sums)


def _restore(body: Block, splits: Sequence[_Split], old: Sequence[Value], amounts: Sequence[Value]) -> None:
    """At the start of a body, the blocks that were its arguments."""
    builder = Builder().before(body.ops[0])
    for split, argument, amount in zip(splits, old, amounts, strict=True):
        amount.hint = argument.hint
        if argument.users:
            argument.replace_by(_moved(builder, split.start, amount))


def _restore_after(loop: Operation, splits: Sequence[_Split], old: Sequence[Value], amounts: Sequence[Value]) -> None:
    """After the loop, the blocks that were its results."""
    block = cast(Block, loop.block)
    builder = Builder().before(block.ops[block.ops.index(loop) + 1])
    for split, result, amount in zip(splits, old, amounts, strict=True):
        amount.hint = split.argument.hint
        if result.users:
            result.replace_by(_moved(builder, split.start, amount))


# Scalars that loops carry.


def _split_counters(loop: scf.For) -> None:
    """Compute a carried integer that grows by a constant, and that nobody needs after the loop, from the counter."""
    lower, step = splat_of(loop.lower), splat_of(loop.step)
    if not isinstance(lower, int) or not isinstance(step, int) or lower < 0 or step <= 0:
        return
    end = loop.body.block.terminator
    growths: dict[int, int] = {}
    for i, argument in enumerate(loop.carried):
        growth = _constant_growth(argument, end.operands[i])
        if growth is not None and growth % step == 0 and not loop.results[i].users:
            growths[i] = growth // step
    if not growths:
        return
    old = {i: (loop.carried[i], loop.inits[i]) for i in growths}
    made = keep_for(loop, [i for i in range(len(loop.inits)) if i not in growths])
    builder = Builder().before(made.body.block.ops[0])
    for i, (argument, init) in old.items():
        argument.replace_by(_from_counter(builder, made.counter, init, lower, growths[i]))


def _constant_growth(argument: Value, after: Value) -> int | None:
    """By how much a scalar integer grows in an iteration, if by a constant."""
    op = after.defining_op
    if not isinstance(argument.type, IntegerType) or not isinstance(op, arith.AddI | arith.SubI):
        return None
    number = splat_of(op.rhs) if op.lhs is argument else None
    if number is None and isinstance(op, arith.AddI) and op.rhs is argument:
        number = splat_of(op.lhs)
    if number is None:
        return None
    return int(number) if isinstance(op, arith.AddI) else -int(number)


def _from_counter(builder: Builder, counter: Value, init: Value, lower: int, growth: int) -> Value:
    """init + (counter - lower) * growth."""
    value: Value = counter
    if lower:
        value = builder.emit(arith.SubI, value, arith.integer(builder, lower, value.type))
    value = _resized(builder, value, init.type)
    if growth != 1:
        value = builder.emit(arith.MulI, value, arith.integer(builder, growth, init.type))
    return value if splat_of(init) == 0 else builder.emit(arith.AddI, init, value)


def _resized(builder: Builder, value: Value, type: Type) -> Value:
    """A number that is not negative in another integer type."""
    if value.type is type:
        return value
    if not isinstance(value.type, IntegerType):
        return builder.emit(arith.IndexCast, value, result_types=[type])
    widens = value.type.width < cast(IntegerType, type).width
    return builder.emit(arith.ExtSI if widens else arith.TruncI, value, result_types=[type])
