"""Dots: micro-kernels on operands in memory.

Level: warp to intrinsic. The accumulator is a tile, in place where the loop carries it. `dot_operands.py` says how
operands come to memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mltriton.analysis.aliasing import is_same_window
from mltriton.dialects import scf, tile, tt, ttg
from mltriton.ir.attributes import Attribute, EnumAttr, IntegerAttr
from mltriton.ir.operation import Block, Region, Value
from mltriton.ir.types import (
    I1,
    I32,
    I64,
)
from mltriton.passes.intrinsic.tile_loops import addressing
from mltriton.passes.intrinsic.tile_loops.dot_kernels import may_use_lines, row_kernel
from mltriton.passes.intrinsic.tile_loops.dot_operands import (
    Direct,
    Plan,
    Ready,
    address_of,
    left_operand,
    operand,
    pack_now,
    pack_of,
    packing_of,
    plan_of,
    pointer_of,
    stride_of,
)
from mltriton.passes.intrinsic.tile_loops.emitter import refuse
from mltriton.passes.intrinsic.tile_loops.first_sums import continued, is_zero
from mltriton.passes.intrinsic.tile_loops.footprints import whole_use
from mltriton.passes.intrinsic.tile_loops.forms import Affine, Index, constant_index
from mltriton.passes.intrinsic.tile_loops.members import Fill
from mltriton.passes.intrinsic.tile_loops.packing import Packing
from mltriton.passes.intrinsic.tile_loops.reuse import may_overwrite
from mltriton.passes.intrinsic.tile_loops.tiles import Tile

if TYPE_CHECKING:
    from mltriton.passes.intrinsic.tile_loops.indirect_dots import Lines
    from mltriton.passes.intrinsic.tile_loops.lowering import Lowering

_SIGNS = ("a_unsigned", "b_unsigned")


def lower_dot(low: Lowering, op: tt.Dot) -> None:
    """c + a b."""
    plan = plan_of(low, op)
    lines = _lines_of(low, op)
    if lines is not None:
        plan = replace(plan, kernel=row_kernel(lines.how))
    store = _store_of(low, op)
    target = None if store is None else _buffer(low, plan, store)
    accumulate: bool | Value = not is_zero(op.c)
    if store is not None and target is not None:
        low.stored.add(store)
        if accumulate and not _lies_in(op.c, store):
            from mltriton.passes.intrinsic.tile_loops.shared import StoreShared  # As below.

            low.add(StoreShared(store, op.c))
    else:
        started = low.started.get(op)
        target = started or _accumulator(low, plan)
        if op.c in low.first_sums:
            accumulate = continued(low, op.c, target if lines is None else None)
        if accumulate and started is None and low.e.tiles.get(op.c) is not target:
            low.add(Fill(op.c, target, op.loc, defines=False, served=whole_use(op, op.c)))
    left = left_operand(low, plan)
    low.flush()
    if lines is not None:
        _multiply_lines(low, plan, lines, left, target, bool(accumulate))
        low.settle(op.result, target)
        return
    right = operand(low, pack_of(op, op.b))
    _for_batches(low, plan.batch, (), lambda prefix: _multiply(low, plan, left, right, target, accumulate, prefix))
    low.settle(op.result, target)


def start_sum(low: Lowering, op: tile.Fill) -> None:
    """Store what a dot adds to where it leaves its sum; in a tile of its own if the nest reads what is there now."""
    block, value = op.block, op.source
    assert block is not None
    dots = [user for user in value.users if isinstance(user, tt.Dot) and user.c is value and user.block is block]
    dot = min((dot for dot in dots if op.is_before(dot)), key=block.position, default=None)
    if dot is None:
        raise refuse(op, "no dot of the block adds to what is stored for its sum")
    plan = plan_of(low, dot)
    target = _accumulator(low, plan)
    fill = Fill(value, target, op.loc, defines=False, served=whole_use(dot, value))
    if target.owner is not None and not low.fits(fill):
        fill.tile = target = low.e.scratch.tile(fill.shape, plan.kernel.accumulator)
    low.started[dot] = target
    low.add(fill)


def _lines_of(low: Lowering, op: tt.Dot) -> Lines | None:
    if not may_use_lines(low.spec, op):
        return None
    from mltriton.passes.intrinsic.tile_loops.indirect_dots import lines_of  # Few dots have so few rows.

    return lines_of(low, op)


def _multiply_lines(
    low: Lowering, plan: Plan, lines: Lines, left: Direct | Ready, target: Tile, accumulate: bool
) -> None:
    """A dot on lines; the left operand of a batch is in a tile."""
    from mltriton.passes.intrinsic.tile_loops.indirect_dots import Left, multiply_lines  # As above.

    batch_stride = 0
    if plan.batch:
        tile = left.tile if isinstance(left, Ready) else left.block.source
        if not isinstance(tile, Tile):
            raise refuse(plan.op, "the left operand of a batch whose right one is read by lines is stored: form-nests")
        batch_stride = tile.strides[0]
    pointer, stride, _ = address_of(low, plan.op, left, (constant_index(0),) * len(plan.batch))
    multiply_lines(low, plan.op, lines, Left(pointer, stride, batch_stride), target, accumulate)


def _store_of(low: Lowering, op: tt.Dot) -> ttg.LocalStore | None:
    """The store that puts a dot's sum into a window in which it may be computed."""
    if not any(isinstance(user, ttg.LocalStore) for user in op.result.users):
        return None
    from mltriton.passes.intrinsic.tile_loops.shared import destination  # Few programs of one warp share memory.

    return destination(low, op)


def _buffer(low: Lowering, plan: Plan, store: ttg.LocalStore) -> Tile | None:
    """The window of a buffer in which a dot accumulates, if the micro-kernel can write there."""
    window = low.e.window(store.memory)
    fits = window.element is plan.kernel.accumulator and window.strides[-1] == 1
    return replace(window, owner=None) if fits else None


def _lies_in(value: Value, store: ttg.LocalStore) -> bool:
    """Whether a value is what the window holds already."""
    op = value.defining_op
    return isinstance(op, ttg.LocalLoad) and is_same_window(op.memory, store.memory)


def _accumulator(low: Lowering, plan: Plan) -> Tile:
    """The tile of the result: where it is going to live, or where c lies, if nothing else is needed there."""
    op = plan.op
    others = [leaf for value in (op.a, op.b) for leaf, _ in low.reads(value).leaves]
    for found in (low.homes.get(op.result), low.e.tiles.get(op.c)):
        if found is None or found.is_buffer or found.element is not plan.kernel.accumulator or found.owner in others:
            continue
        if may_overwrite(low, found, op, [op.c]):
            return found
    return low.e.scratch.tile((*plan.batch, plan.m, plan.n), plan.kernel.accumulator)


def _for_batches(low: Lowering, batch: tuple[int, ...], prefix: Index, body: Callable[[Index], None]) -> None:
    if not batch:
        body(prefix)
        return
    with low.e.emitter.count(batch[0]) as loop:
        _for_batches(low, batch[1:], (*prefix, Affine(I32, loop.counter, 0, 0)), body)


def _multiply(
    low: Lowering,
    plan: Plan,
    left: Direct | Ready,
    right: Direct | Ready | Packing,
    target: Tile,
    accumulate: bool | Value,
    prefix: Index,
) -> None:
    """One matrix."""
    e = low.e
    a = address_of(low, plan.op, left, prefix)
    c = e.arithmetic.scalar(e.address(target, (*prefix, constant_index(0), constant_index(0))))

    def call(b: Value, b_stride: Value, panel: tuple[int, int] | None = None) -> None:
        numbers = {"m": plan.m, "n": plan.n, "group": plan.kernel.group}
        if panel is not None:
            numbers |= {"panel": panel[0], "panel_stride": panel[1]}
        attributes: dict[str, Attribute] = {name: IntegerAttr(number, I32) for name, number in numbers.items()}
        attributes["a_layout"] = EnumAttr("tile_layout", a[2])
        attributes |= {name: plan.op.attributes[name] for name in _SIGNS if name in plan.op.attributes}
        steps = e.emitter.integer(plan.k // plan.kernel.group, I64)
        c_stride = e.emitter.integer(target.strides[-2], I64)
        again = accumulate if isinstance(accumulate, Value) else e.emitter.integer(int(accumulate), I1)
        operands = [a[0], a[1], b, b_stride, c, c_stride, steps, again]
        e.emitter.effect(tile.Dot, operands, (), attributes)

    if isinstance(right, Direct) and right.conditions:
        condition = addressing.conjunction(e, right.conditions)
        assert condition is not None
        sides: list[Block] = []
        for is_direct in (True, False):
            side = Block()
            with e.emitter.inside(side):
                ready = None if is_direct else pack_now(low, packing_of(pack_of(plan.op, plan.op.b)), prefix)
                if ready is None:
                    call(pointer_of(low, right, prefix), stride_of(low, right.stride))
                else:
                    call(ready.pointer(prefix), ready.stride, ready.panel)
                e.emitter.insert(scf.Yield([]))
            sides.append(side)
        e.emitter.effect(scf.If, [condition], [], {}, [Region([side]) for side in sides])
    elif isinstance(right, Direct):
        call(pointer_of(low, right, prefix), stride_of(low, right.stride))
    else:
        ready = right if isinstance(right, Ready) else pack_now(low, right, prefix)
        call(ready.pointer(prefix), ready.stride, ready.panel)
