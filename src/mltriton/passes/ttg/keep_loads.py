"""keep-loads: what one loop loads and later ones load again stays in shared memory.

Level: ttg, before `load-ahead`. Takes `scf.for` loops that follow each other, count alike and multiply nothing, of
which the first loads blocks that others load, too, and divides each in two: for the first iterations, as many as shared
memory has room for, the first loop copies its blocks there asynchronously, some iterations ahead, and the others read
them there, every lane what is its own, so that nobody waits; later iterations stay as they are. Guarantees: no result
changes; loads stay where something between may write what they read (of two parameters that may be one array an element
is always accessed by one iteration), where the target copies nothing asynchronously, and in warp-level kernels.
Purpose: rows that are read twice (a sum, then what is divided by it) come from memory once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from mltriton.analysis.aliasing import may_alias, orders_memory, through_other_parameter, writes_in
from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.dialects import arith, scf, tt
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32
from mltriton.passes.ttg.copy_blocks import block_bytes
from mltriton.passes.ttg.load_ahead import Ahead, arrived, can_be_ahead, is_small, room_of
from mltriton.targets.registry import num_warps_of, spec_of

FEW_WARPS = 32  # that a multiprocessor should have at least, whatever blocks need
MOST_AHEAD = 3  # iterations that copies are started before
LARGEST = 2**31 - 1  # of a counter

Pairs = list[tuple[tt.Load, tt.Load]]


class KeepLoads(Pass):
    """Keep what loops load for those behind them."""

    name = "keep-loads"

    def run(self, module: Module) -> Module:
        spec = spec_of(module)
        if is_warp_level(module) or not spec.copy_bytes:
            return module
        for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
            axes = AxisInfoAnalysis(function)
            for first, pairs in list(_found(function)):
                kept = list(dict.fromkeys(load for load, _ in pairs if can_be_ahead(load, first, axes, spec)))
                chosen = [(load, again) for load, again in pairs if load in kept]
                room = room_of(function, spec, num_warps_of(module), FEW_WARPS)
                slots = _slots(first, room // sum(map(block_bytes, kept)) if kept else 0)
                if slots:
                    _keep(first, kept, chosen, slots)
        return module


def _found(function: tt.Func) -> Iterator[tuple[scf.For, Pairs]]:
    """Loops, with what they load and loops behind them load again; each loop once."""
    taken: set[Operation] = set()
    for first in [op for op in function.walk() if isinstance(op, scf.For)]:
        if first in taken or not _is_plain(first):
            continue
        pairs: Pairs = []
        for later in _behind(first):
            if later not in taken and (found := _pairs(first, later)):
                pairs += found
                taken.add(later)
        if pairs:
            taken.add(first)
            yield first, pairs


def _is_plain(loop: scf.For) -> bool:
    """Whether its iterations can be divided, and multiply nothing."""
    inner = [op for op in loop.walk() if op is not loop]
    return not any(isinstance(op, (tt.Dot, scf.For, scf.While)) for op in inner) and _counts(loop) is not None


def _counts(loop: scf.For) -> tuple[int, int] | None:
    """The first counter and the step, where they are known."""
    lower, step = splat_of(loop.lower), splat_of(loop.step)
    return (lower, step) if isinstance(lower, int) and isinstance(step, int) and step > 0 else None


def _behind(first: scf.For) -> Iterator[scf.For]:
    """Loops behind one in its block that count as it does."""
    block = first.block
    assert block is not None
    for op in block.ops[block.position(first) + 1 :]:
        if isinstance(op, scf.For) and op.operands[:3] == first.operands[:3] and _is_plain(op):
            yield op


def _pairs(first: scf.For, later: scf.For) -> Pairs:
    """Loads of a loop, and those of a loop behind it that load the same."""
    loads = [[op for op in loop.body.block.ops if isinstance(op, tt.Load)] for loop in (first, later)]
    return [
        (load, again)
        for again in loads[1]
        for load in loads[0]
        if not is_small(load) and _is_same(load, again, first, later) and _is_unchanged(load, again, first, later)
    ][:1]


def _is_same(load: tt.Load, again: tt.Load, first: scf.For, later: scf.For) -> bool:
    if (
        load.result.type != again.result.type
        or load.volatile
        or again.volatile
        or (load.mask is None) != (again.mask is None)
    ):
        return False
    masks = load.mask is None or again.mask is None or _is_equal(load.mask, again.mask, first, later)
    return masks and _is_equal(load.ptr, again.ptr, first, later)


def _is_equal(a: Value, b: Value, first: scf.For, later: scf.For) -> bool:
    """Whether values of two loops are the same in iterations of the same number."""
    if a is b:
        return True
    if a is first.counter or b is later.counter:
        return a is first.counter and b is later.counter
    one, other = a.defining_op, b.defining_op
    if one is None or other is None or one.block is not first.body.block or other.block is not later.body.block:
        return False
    if type(one) is not type(other) or not one.pure or one.regions or one.attributes != other.attributes:
        return False
    if len(one.operands) != len(other.operands) or a.type != b.type:
        return False
    return all(_is_equal(x, y, first, later) for x, y in zip(one.operands, other.operands, strict=True))


def _is_unchanged(load: tt.Load, again: tt.Load, first: scf.For, later: scf.For) -> bool:
    """Whether memory holds for the second load what it held for the first."""
    block = first.block
    assert block is not None
    between = block.ops[block.position(first) : block.position(later) + 1]
    if any(orders_memory(op) for op in between):
        return False
    order = later.body.block.ops
    for write in (write for op in between for write in writes_in(op)):
        behind = write.block is later.body.block and order.index(write) > order.index(again)
        if may_alias(load, write) and not (behind and through_other_parameter(again, write)):
            return False
    return True


def _slots(loop: scf.For, room: int) -> int:
    """How many iterations have their blocks kept, of those that there is room for."""
    counts, upper = _counts(loop), splat_of(loop.upper)
    assert counts is not None
    lower, step = counts
    if isinstance(upper, int):
        room = min(room, -(-(upper - lower) // step))
    return room if room > 0 and lower + room * step <= LARGEST else 0


def _keep(first: scf.For, kept: Sequence[tt.Load], pairs: Pairs, slots: int) -> None:
    lower, step = cast("tuple[int, int]", _counts(first))
    end = lower + slots * step
    builder = Builder().before(first)
    limit = arith.integer(builder, end, first.counter.type)
    is_less = builder.emit(arith.CmpI, first.upper, limit, predicate="slt")
    middle = builder.emit(arith.Select, is_less, first.upper, limit)
    head, copies = _divided(first, middle, limit)
    loads = [cast(tt.Load, copies[load.result].defining_op) for load in kept]
    ahead = Ahead(head, loads, loads, min(slots, MOST_AHEAD), slots)
    ahead.write()
    buffers = {load: ahead.buffers[copy] for load, copy in zip(kept, loads, strict=True)}
    for loop in dict.fromkeys(cast(scf.For, again.parent_op) for _, again in pairs):
        again = {second: buffers[load] for load, second in pairs if second.parent_op is loop}
        _read_again(loop, middle, limit, again)


def _divided(loop: scf.For, middle: Value, limit: Value) -> tuple[scf.For, dict[Value, Value]]:
    """A copy of a loop in front of it for the iterations before `middle`; the loop goes on from `limit` on."""
    copies: dict[Value, Value] = {}
    head = cast(scf.For, Builder().before(loop).insert(loop.clone(copies)))
    head.set_operands([loop.lower, middle, loop.step, *loop.inits], head.segments)
    loop.set_operands([limit, loop.upper, loop.step, *head.results], loop.segments)
    loop.attributes = {**loop.attributes, "num_stages": IntegerAttr(1, I32)}  # no memory but for what is kept
    return head, copies


def _read_again(loop: scf.For, middle: Value, limit: Value, kept: dict[tt.Load, Value]) -> None:
    """Let a loop read what is kept for its first iterations."""
    head, copies = _divided(loop, middle, limit)
    slot, _ = carry_also(head, arith.integer(Builder().before(head), 0))
    for load, buffers in kept.items():
        copy = cast(tt.Load, copies[load.result].defining_op)
        copy.replace_by([arrived(copy, buffers, slot)])
    builder = Builder().before(head.body.block.terminator)
    yield_also(head.body.block, [builder.emit(arith.AddI, slot, arith.integer(builder, 1))])
