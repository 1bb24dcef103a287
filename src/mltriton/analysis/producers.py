"""Whether a warp of its own can start all copies of a function's products, and what it must compute for that.

Level: ttg, before loads become copies. Takes a function; gives the loads that a producer warp would do, in groups of
those that one product takes, with the loops around them and the scalars from which their indices follow, or why there
is no such warp. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from mltriton.analysis.aliasing import may_alias, waits_for_own_programs, writes_in
from mltriton.analysis.rectangles import Reason
from mltriton.analysis.workload import PLACED, adding_loop, is_multiplied
from mltriton.dialects import gpu, scf, tt, ttg, ttng
from mltriton.ir.operation import Block, BlockArgument, Operation, OpResult, Value
from mltriton.ir.types import TensorType


class NotProduced(Exception):  # noqa: N818
    """Ends the judgement of a function."""

    def __init__(self, op: Operation, why: str) -> None:
        super().__init__(why)
        self.op = op
        self.reason = Reason(why)


@dataclass(frozen=True, eq=False)
class Group:
    """Loads of one block of operations that go into the same product: they come together and are given back together.
    `loops` are around it, the innermost last.
    """

    loads: tuple[tt.DescriptorLoad, ...]
    loops: tuple[scf.For, ...]


@dataclass
class Producer:
    """What the producer warp does: groups in the order of the program, the loops that it goes through, which of their
    carried values it needs, and the operations from which these and the indices of blocks are computed. It waits for
    earlier launches where the program does.
    """

    groups: list[Group]
    loops: set[scf.For] = field(default_factory=set[scf.For])
    carried: dict[scf.For, set[int]] = field(default_factory=dict[scf.For, "set[int]"])
    ops: set[Operation] = field(default_factory=set[Operation])


def producer_of(function: tt.Func, loads: Sequence[tt.Load | tt.DescriptorLoad]) -> Producer:
    """The producer of the loads of a function that are multiplied. Raises `NotProduced`."""
    if waits_for_own_programs(function):
        raise NotProduced(function, "an atomic operation may order what programs load")
    ahead, waits = list[tt.DescriptorLoad](), list[ttng.GridDependencyWait]()
    for op in function.walk():
        if isinstance(op, gpu.Barrier):
            raise NotProduced(op, "a barrier of the source stands between loads")
        if isinstance(op, tt.DescriptorLoad) and op in loads:
            ahead.append(op)
        elif isinstance(op, ttng.GridDependencyWait):
            waits.append(op)
    others = [load for load in loads if isinstance(load, tt.Load) and _loops_around(load)]
    if others:
        raise NotProduced(others[0], "lanes copy a block that is multiplied in a loop")
    found = Producer(_groups(ahead))
    if not any(group.loops for group in found.groups):
        raise NotProduced(function, "no loop multiplies blocks that the engine copies")
    found.loops = {loop for group in found.groups for loop in group.loops}
    found.carried = {loop: set() for loop in found.loops}
    for wait in waits:
        if not found.loops.issuperset(_loops_around(wait)):
            raise NotProduced(wait, "the program waits for earlier launches in a loop without copies")
    found.ops.update(waits)
    _slice(found)
    return found


def _loops_around(op: Operation) -> tuple[scf.For, ...]:
    """The loops around an operation, which nothing but loops may be."""
    loops: list[scf.For] = []
    parent = op.parent_op
    while not isinstance(parent, tt.Func):
        if not isinstance(parent, scf.For):
            raise NotProduced(op, f"{op.name} inside of {parent.name if parent is not None else 'nothing'}")
        loops.append(parent)
        parent = parent.parent_op
    return tuple(loops[::-1])


def _groups(loads: Sequence[tt.DescriptorLoad]) -> list[Group]:
    """Loads of one block of operations by the first product that they go into; what goes along with the one before."""
    found: dict[object, list[tt.DescriptorLoad]] = {}
    key: object = None
    for load in loads:
        if is_multiplied(load.result, turned=True) or not any(
            load.block is other.block for other in found.get(key, [])
        ):
            key = load.block, _product_of(load)
        found.setdefault(key, []).append(load)
    return [Group(tuple(group), _loops_around(group[0])) for group in found.values()]


def _product_of(load: tt.DescriptorLoad) -> object:
    """The one product that takes a load as it is, or the first of those that share operands and add up nothing but
    loads: they go on together. The load where there are others.
    """
    dots = _products_of(load)
    if not dots:
        return load
    return _first_of_sharing(dots[0]) or (dots[0] if len(dots) == 1 else load)


def _first_of_sharing(dot: tt.Dot) -> tt.Dot | None:
    """The first of the products that share operands with one; None where some take or give something else."""
    found, pending = set[tt.Dot](), [dot]
    while pending:
        dot = pending.pop()
        if dot in found:
            continue
        if adding_loop(dot) is None:
            return None
        found.add(dot)
        for operand in (dot.a, dot.b):
            load, _ = _load_of(operand)
            dots = _products_of(load) if load is not None and load.block is dot.block else None
            if dots is None:
                return None
            pending += dots
    return next(op for op in cast(Block, dot.block).ops if isinstance(op, tt.Dot) and op in found)


def follows(first: tt.DescriptorLoad, second: tt.DescriptorLoad) -> int | None:
    """The dimension along which a block is to follow another in shared memory: both are right operands of products by
    the same left one, of which one instruction multiplies the columns of both then. None where they are not.
    """
    products = [_products_of(load) or [] for load in (first, second)]
    dots = [found[0] for found in products if len(found) == 1]
    if len(dots) < 2 or dots[0] is dots[1]:
        return None
    (one, turned), (other, also) = (_load_of(dot.b) for dot in dots)
    left = [_load_of(dot.a) for dot in dots]
    if (one, other, turned) != (first, second, also) or left[0] != left[1] or left[0][0] is None:
        return None
    return 0 if turned else 1


def _load_of(value: Value) -> tuple[tt.DescriptorLoad | None, bool]:
    """The load that gives a block, in whatever layout, and whether its rows have become columns."""
    op, turned = value.defining_op, False
    while isinstance(op, (*PLACED, tt.Trans)) and op.operands:
        turned ^= isinstance(op, tt.Trans | ttg.MemDescTrans)
        op = op.operands[0].defining_op
    return (op if isinstance(op, tt.DescriptorLoad) else None), turned


def _products_of(load: tt.DescriptorLoad) -> list[tt.Dot] | None:
    """The products that take a load, None where something else does."""
    dots, pending = dict[tt.Dot, None](), list(load.result.users)
    while pending:
        user = pending.pop()
        if isinstance(user, tt.Dot):
            dots[user] = None
        elif isinstance(user, (*PLACED, tt.Trans)):
            pending += user.results[0].users
        else:
            return None
    return list(dots)


def _slice(found: Producer) -> None:
    """Add what indices of blocks, and bounds of loops, are computed from."""
    pending = [index for group in found.groups for load in group.loads for index in load.indices]
    pending += [bound for loop in found.loops for bound in (loop.lower, loop.upper, loop.step)]
    seen = set[Value]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, BlockArgument):
            pending += _argument(found, value)
        else:
            pending += _result(found, cast(OpResult, value))


def _argument(found: Producer, value: BlockArgument) -> list[Value]:
    loop = value.block.parent_op
    if isinstance(loop, tt.Func) or (isinstance(loop, scf.For) and value.index == 0):
        return []
    return _carried(found, cast(scf.For, loop), value.index - 1)


def _carried(found: Producer, loop: scf.For, index: int) -> list[Value]:
    found.carried[loop].add(index)
    return [loop.inits[index], loop.body.block.terminator.operands[index]]


def _result(found: Producer, value: OpResult) -> list[Value]:
    op = value.op
    if isinstance(op, scf.For) and op in found.loops:
        return _carried(found, op, value.index)
    if not _is_same_for_both(op) or op.regions or isinstance(op, ttng.TensorMap):
        raise NotProduced(op, f"the place of a block depends on {op.name}")
    if any(isinstance(other.type, TensorType) for other in (*op.operands, *op.results)):
        raise NotProduced(op, f"the place of a block depends on elements of a block ({op.name})")
    found.ops.add(op)
    return list(op.operands)


def _is_same_for_both(op: Operation) -> bool:
    """Whether an operation gives the producer what it gives the others: loads do of memory that nobody writes here."""
    if not isinstance(op, tt.Load) or op.volatile:
        return op.pure
    function = op.parent_op
    while not isinstance(function, tt.Func):
        assert function is not None
        function = function.parent_op
    return not any(may_alias(op, write) for write in writes_in(function))
