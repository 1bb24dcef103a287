"""How encodings spread through each kind of operation: the rule table of `layout_plan.py`.

Level: tt. A rule looks at what is known of an operation's blocks and settles the rest through `plan.anchor` (a value
has this encoding) and `plan.want` (an operand is wanted in this one). Rules are called whenever a value of the
operation gets its encoding, so they may find little known and do nothing. Source: ML-Triton paper, section 2.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from mltriton.dialects import scf, tt
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType
from mltriton.layouts import tiling
from mltriton.layouts.encodings import DotOperandEncoding, SliceEncoding, as_blocked

if TYPE_CHECKING:
    from mltriton.passes.ttg.layout_plan import LayoutPlan

Rule = Callable[["LayoutPlan", Operation], None]


def same_everywhere(plan: LayoutPlan, op: Operation) -> None:
    """Arithmetic, loads, stores, atomics: one encoding for all blocks; a result decides, else a block pointer,
    which cannot be converted, else the stored value's, else any operand's.
    """
    if op in plan.decided:
        return
    pointers = [value for value in op.operands if is_block_pointer(value.type)]
    stored = [op.value] if isinstance(op, tt.Store | tt.DescriptorStore | tt.AtomicRMW) else []
    encoding = plan.known([*op.results, *pointers, *stored, *op.operands])
    if encoding is not None:
        plan.agree(op, encoding)


def load(plan: LayoutPlan, op: tt.Load) -> None:
    """As everywhere; what goes through shared memory on its way is loaded as the plan says."""
    encoding = plan.staged.get(op)
    if encoding is None:
        same_everywhere(plan, op)
        return
    plan.anchor(op.result, encoding, by=op)
    for index in range(len(op.operands)):
        plan.want(op, index, encoding)


def store(plan: LayoutPlan, op: tt.Store) -> None:
    """As everywhere; what goes through shared memory on its way is stored as the plan says, where the addresses can be
    computed again.
    """
    encoding = plan.staged.get(op)
    addresses = [value for value in (op.ptr, op.mask) if value is not None]
    if encoding is None or not all(plan.is_flexible(value) for value in addresses):
        same_everywhere(plan, op)
        return
    plan.decided.add(op)
    for index in range(len(op.operands)):
        plan.want(op, index, encoding)


def dot(plan: LayoutPlan, op: tt.Dot) -> None:
    """The result has the accumulator's encoding; the operands are its `#ttg.dot_op`."""
    encoding = plan.known([op.result, op.c])
    if encoding is not None:
        plan.anchor(op.result, encoding)
        plan.want(op, 0, DotOperandEncoding(0, encoding))
        plan.want(op, 1, DotOperandEncoding(1, encoding))
        plan.want(op, 2, encoding)


def reduce(plan: LayoutPlan, op: tt.Reduce) -> None:
    """All sources agree; a result is the `#ttg.slice` of the encoding that they are wanted in, whatever they have."""
    encoding = plan.wanted.get((op, 0)) or plan.known(list(op.sources))
    if encoding is not None:
        for index in range(len(op.sources)):
            plan.want(op, index, encoding)
        for result in op.results:
            if isinstance(result.type, TensorType):
                plan.anchor(result, SliceEncoding(op.axis, encoding), by=op)


def scan(plan: LayoutPlan, op: tt.Scan) -> None:
    """Each warp holds the whole axis: other dimensions are cut, as the layout seed says."""
    shape = _shape(op.sources[0])
    others = tuple(dim for dim in range(len(shape)) if dim != op.axis)
    encoding = tiling.along(shape, plan.num_warps, others)
    for index, result in enumerate(op.results):
        plan.want(op, index, encoding)
        plan.anchor(result, encoding, by=op)


def trans(plan: LayoutPlan, op: tt.Trans) -> None:
    """The result is cut as the source, with the dimensions permuted. Where no source can be cut so that the result
    comes out as it is wanted, every warp has the whole of both, and users get theirs by a conversion. Where that goes
    through swizzled memory, what is known of the source alone decides nothing: both sides are accessed by lines.
    """
    if op in plan.decided:
        return
    known = plan.encodings.get(op.result)
    blocked = as_blocked(known, _shape(op.result)) if known else None
    if blocked is not None:
        plan.want(op, 0, tiling.transposed(blocked, _inverse(op.order)))
        return
    source = plan.encodings.get(op.source)
    blocked = as_blocked(source, _shape(op.source)) if source else None
    if blocked is not None and known is None and not plan.spec.swizzles:
        plan.want(op, 0, blocked)
        plan.anchor(op.result, tiling.transposed(blocked, op.order))
    elif known is not None:
        plan.decided.add(op)
        plan.want(op, 0, tiling.replicated(_shape(op.source), plan.num_warps))
        plan.encodings[op.result] = tiling.replicated(_shape(op.result), plan.num_warps)


def whole_everywhere(plan: LayoutPlan, op: Operation) -> None:
    """Operations that move elements between positions (reshape, join, split), or show them in order:
    every warp does all. Blocks may differ in shape.
    """
    for index, operand in enumerate(op.operands):
        if isinstance(operand.type, TensorType):
            plan.want(op, index, tiling.replicated(operand.type.shape, plan.num_warps))
    for result in op.results:
        if isinstance(result.type, TensorType):  # The element of an unsplat is none.
            plan.anchor(result, tiling.replicated(_shape(result), plan.num_warps), by=op)


def same_where_bound(plan: LayoutPlan, op: Operation) -> None:
    """Results and the operands that are not free agree (the indices of a gather); the others may be cut in another way:
    warps find their elements in shared memory.
    """
    bound = [index for index in range(len(op.operands)) if op.encodings and index not in op.encodings.free]
    wanted = next((found for index in bound if (found := plan.wanted.get((op, index)))), None)
    encoding = wanted or plan.known([*op.results, *(op.operands[index] for index in bound)])
    if encoding is not None:
        for index in bound:
            plan.want(op, index, encoding)
        for result in op.results:
            plan.anchor(result, encoding)


def cat(plan: LayoutPlan, op: tt.Cat) -> None:
    """Halves of a block of which a warp has all rows are cut as the whole; of others every warp has all."""
    if op in plan.decided:
        return
    encoding = plan.known([op.result, op.lhs, op.rhs])
    if encoding is None:
        return
    if all(encoding.per_warp_shape(_shape(value))[0] == _shape(value)[0] for value in (op.result, op.lhs)):
        plan.agree(op, encoding)
        return
    plan.decided.add(op)
    for index, half in enumerate((op.lhs, op.rhs)):
        plan.want(op, index, tiling.replicated(_shape(half), plan.num_warps))
    plan.encodings[op.result] = tiling.replicated(_shape(op.result), plan.num_warps)


def loop(plan: LayoutPlan, op: scf.For) -> None:
    """Initial value, argument, yielded value and result of a carried block agree."""
    for index, argument in enumerate(op.carried):
        _link(plan, [argument, op.results[index]], [(op, 3 + index), (op.body.block.terminator, index)])


def branch(plan: LayoutPlan, op: scf.If) -> None:
    """What both branches yield agrees with the result."""
    terminators = [block.terminator for block in op.blocks]
    for index, result in enumerate(op.results):
        _link(plan, [result], [(terminator, index) for terminator in terminators])


def while_loop(plan: LayoutPlan, op: scf.While) -> None:
    """Initial and yielded values agree with the arguments of `before`; the condition's values with those of `after`
    and the results.
    """
    before, after = op.before.block, op.after.block
    for index, argument in enumerate(before.arguments):
        _link(plan, [argument], [(op, index), (after.terminator, index)])
    for index, argument in enumerate(after.arguments):
        _link(plan, [argument, op.results[index]], [(before.terminator, 1 + index)])


def end_of_region(plan: LayoutPlan, op: Operation) -> None:
    """A yielded value matters to the operation around it."""
    parent = op.parent_op
    if isinstance(parent, scf.For | scf.If | scf.While):
        RULES[type(parent)](plan, parent)


def _link(plan: LayoutPlan, values: Sequence[Value], uses: Sequence[tuple[Operation, int]]) -> None:
    encoding = plan.known([*values, *(op.operands[index] for op, index in uses)])
    if encoding is not None:
        for value in values:
            plan.anchor(value, encoding)
        for op, index in uses:
            plan.want(op, index, encoding)


def _shape(value: Value) -> tuple[int, ...]:
    return cast(TensorType, value.type).shape


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(dim) for dim in range(len(order)))


RULES: dict[type[Operation], Callable[..., None]] = {
    tt.Load: load,
    tt.Store: store,
    tt.Dot: dot,
    tt.Reduce: reduce,
    tt.Scan: scan,
    tt.Trans: trans,
    tt.Cat: cat,
    scf.For: loop,
    scf.If: branch,
    scf.While: while_loop,
    scf.Yield: end_of_region,
    scf.Condition: end_of_region,
}


def decides(op: Operation) -> bool:
    """Whether results have the encoding that the rule of their operation gives, whatever their users would like."""
    return rule_of(op) in (reduce, scan, whole_everywhere)


def rule_of(op: Operation) -> Callable[..., None] | None:
    """The rule of an operation, if encodings matter to it: its own, or that of what it declares."""
    rule, declared = RULES.get(type(op)), op.encodings
    if rule is not None or declared is None:
        return rule
    return whole_everywhere if declared.whole else same_where_bound if declared.free else same_everywhere
