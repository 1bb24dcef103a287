"""load-ahead: what a loop loads anew in each iteration is on its way some iterations before.

Level: ttg, after `pipeline-loads`. Takes `scf.for` loops of more than one stage that multiply nothing and changes them
in place: a load of a block becomes an asynchronous copy to shared memory, of which every lane copies and later reads
what is its own, so that nobody waits for others; a scalar, or a block of few elements, is loaded ahead and
carried. Guarantees: no result changes;
memory behind the last iteration is not touched; where the target copies nothing asynchronously
(`TargetSpec.copy_bytes`), and in warp-level kernels, every loop stays as it is.

A load stays where its address does not follow from the loop's counter, where lanes have fewer neighbours than the
largest copy takes, where shared memory does not hold its block, and where the loop may write what it reads: of two
parameters that may be one array an element is always accessed at the same index of a block, and so by one iteration
where the counter moves the block. What keeps memory busy is enough: no more iterations are ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from mltriton.analysis.aliasing import may_alias, orders_memory, through_other_parameter, writes_in
from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.dialects import arith, scf, tt, ttg
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Block, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.reaching import reached
from mltriton.ir.types import MemDescType, TensorType, byte_width
from mltriton.layouts.base import Encoding
from mltriton.layouts.lanes import order_of
from mltriton.passes.ttg.copy_blocks import block_bytes, window_at
from mltriton.passes.ttg.later_iterations import (
    Needed,
    address_of,
    bytes_at_once,
    counter_after,
    happens_after,
    load_where,
    mask_where,
)
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import fewer_stages_of, num_warps_of, spec_of

FEW_WARPS = 16  # that a multiprocessor should have at least, whatever buffers need
KEPT_BYTES = 16384  # of shared memory for what crosses warps
UNDER_WAY = 16384  # bytes of a program that keep memory busy
CARRIED_BYTES = 32  # of a block, at most, that lanes carry
# How a counter may become an offset, so that each iteration has addresses of its own.
MOVING = (arith.AddI, arith.MulI, arith.ExtSI, arith.IndexCast, tt.Splat, tt.ExpandDims, tt.Broadcast, tt.AddPtr)


@dataclass(frozen=True)
class LoadAhead(Pass):
    """Load ahead, as many iterations as the loop has stages after its first one and shared memory has room for."""

    name = "load-ahead"

    def run(self, module: Module) -> Module:
        spec, asked = spec_of(module), module.attributes.get("ttg.num-stages")
        if is_warp_level(module) or not spec.copy_bytes:
            return module
        usual = asked.value if isinstance(asked, IntegerAttr) else 0
        for function in (op for op in module.body.block.ops if isinstance(op, tt.Func)):
            axes = AxisInfoAnalysis(function)
            room = room_of(function, spec, num_warps_of(module), FEW_WARPS)
            for loop in [op for op in function.walk() if isinstance(op, scf.For)]:
                depth = (loop.num_stages or usual) - 1 - fewer_stages_of(module)
                if depth > 0 and not any(isinstance(op, tt.Dot) for op in loop.walk()):
                    room -= _load_ahead(loop, axes, spec, room, depth)
        return module


def room_of(function: tt.Func, spec: TargetSpec, warps: int, few: int) -> int:
    """Bytes of shared memory for buffers, where programs of `few` warps together are to have room for theirs."""
    held = [cast(MemDescType, op.result.type) for op in function.walk() if isinstance(op, ttg.LocalAlloc)]
    taken = sum(prod(block.shape) * byte_width(block.element) for block in held)
    return min(spec.shared_bytes * warps // few, spec.shared_bytes - KEPT_BYTES) - taken


def _load_ahead(loop: scf.For, axes: AxisInfoAnalysis, spec: TargetSpec, room: int, depth: int) -> int:
    """Change a loop, whose loads may be `depth` iterations ahead; gives the bytes that its buffers need."""
    found = [op for op in loop.body.block.ops if isinstance(op, tt.Load) and can_be_ahead(op, loop, axes, spec)]
    blocks = [load for load in found if not is_small(load)]
    needed = sum(map(block_bytes, blocks))
    if not blocks or needed > room:
        return 0
    depth = min(depth, room // needed, -(-UNDER_WAY // needed))
    Ahead(loop, found, blocks, depth).write()
    return depth * needed


def can_be_ahead(load: tt.Load, loop: scf.For, axes: AxisInfoAnalysis, spec: TargetSpec) -> bool:
    """Whether what a loop loads can be on its way some iterations before."""
    if load.volatile or is_block_pointer(load.ptr.type) or orders_memory(loop):
        return False
    if not is_small(load) and not _can_be_copied(load, axes, max(spec.copy_bytes)):
        return False
    if _needed(loop, load) is None or not _moves_on(load.ptr, loop):
        return False
    order = loop.body.block.ops
    for write in writes_in(loop):
        behind = write.block is loop.body.block and order.index(write) > order.index(load)
        if may_alias(load, write) and not (behind and through_other_parameter(load, write)):
            return False
    return True


def is_small(load: tt.Load) -> bool:
    """Whether a lane can carry what is loaded, even all of it."""
    type = load.result.type
    return not isinstance(type, TensorType) or type.bytes <= CARRIED_BYTES


def _can_be_copied(load: tt.Load, axes: AxisInfoAnalysis, size: int) -> bool:
    """Whether lanes have `size` bytes in a row, all of it inside or outside of the mask."""
    block = cast(TensorType, load.result.type)
    dim = order_of(cast(Encoding, block.encoding), block.shape)[0]
    return bytes_at_once(load, dim, axes.contiguous_bytes(load.ptr, dim), axes) >= size


def _needed(loop: scf.For, load: tt.Load) -> Needed | None:
    """What says where and whether a load happens; None where that is more than the counter."""
    found = Needed.of(loop, address_of(load))
    return found if found is not None and not found.carried else None


def _moves_on(value: Value, loop: scf.For) -> bool:
    """Whether each iteration has addresses of its own."""
    if value is loop.counter:
        return True
    op = value.defining_op
    if op is None or op.block is not loop.body.block or not isinstance(op, MOVING):
        return False
    changing = [operand for operand in op.operands if _changes(operand, loop)]
    return len(changing) == 1 and _moves_on(changing[0], loop)


def _changes(value: Value, loop: scf.For) -> bool:
    """Whether a value depends on the loop's counter."""

    def before(value: Value) -> Sequence[Value]:
        op = value.defining_op
        return op.operands if op is not None and op.block is loop.body.block else ()

    return loop.counter in reached([value], before)


class Ahead:
    """The rewriting of a loop whose loads are under way `depth` iterations before, those `copied` to buffers: so many
    of each in turn, or `slots`, one for each iteration, so that all are there in the end.
    """

    def __init__(
        self, loop: scf.For, loads: Sequence[tt.Load], copied: Sequence[tt.Load], depth: int, slots: int = 0
    ) -> None:
        self.loop = loop
        self.loads = loads
        self.depth = depth
        self.keeps, self.slots = slots > 0, slots or depth
        needed = Needed.of(loop, [value for load in loads for value in address_of(load)])
        assert needed is not None
        self.ops = needed.ops
        self.entry = Builder().before(loop)
        self.buffers = {load: self._buffer(load) for load in copied}

    def write(self) -> None:
        """Copies in front of the loop; then in each iteration what has arrived, and copies for a later one."""
        body, block = self.loop.body.block, self.loop.block
        assert block is not None
        first = [self._group(self.entry, step) for step in range(self.depth)]
        slot: Value = arith.integer(self.entry, 0)
        if self.slots > 1:
            slot, _ = carry_also(self.loop, slot)
        carried = {load: [carry_also(self.loop, of[load])[0] for of in first] for load in first[0]}
        Builder().before(body.ops[0]).create(ttg.AsyncWait, [], num=self.depth - 1, own=True)
        builder = Builder().before(body.ops[max(map(body.ops.index, self.loads)) + 1])
        after = self._start_later(builder, slot)
        builder.create(ttg.AsyncCommitGroup, [])
        scalars = [value for load, last in after.items() for value in (*carried[load][1:], last)]
        yield_also(body, [*([self._next(builder, slot)] if self.slots > 1 else []), *scalars])
        for load in self.loads:
            load.replace_by([carried[load][0] if load in carried else arrived(load, self.buffers[load], slot)])
        Builder().before(block.ops[block.position(self.loop) + 1]).create(ttg.AsyncWait, [], num=0, own=True)

    def _buffer(self, load: tt.Load) -> Value:
        block = cast(TensorType, load.result.type)
        type = MemDescType((self.slots, *block.shape), block.element)
        return self.entry.emit(ttg.LocalAlloc, None, result_types=[type])

    def _start(self, builder: Builder, counter: Value, steps: int, slot: Value) -> dict[tt.Load, Value]:
        """Start the copies of the iteration so many steps after that with this counter; what is loaded of scalars."""
        loop = self.loop
        values: dict[Value, Value] = {loop.counter: counter_after(builder, loop, counter, steps)}
        for op in self.ops:
            builder.insert(op.clone(values))
        happens = happens_after(builder, loop, counter, steps)
        scalars: dict[tt.Load, Value] = {}
        for load in self.loads:
            with builder.at(load.loc):
                if load in self.buffers:
                    window = window_at(builder, self.buffers[load], slot)
                    pointer, mask = values.get(load.ptr, load.ptr), mask_where(builder, load, values, happens)
                    builder.create(ttg.AsyncCopyGlobalToLocal, pointer, window, mask, None)
                else:
                    scalars[load] = builder.insert(load_where(builder, load, values, happens)).results[0]
        return scalars

    def _group(self, builder: Builder, step: int) -> dict[tt.Load, Value]:
        """Start the copies of one of the first iterations as a group of their own."""
        started = self._start(builder, self.loop.lower, step, arith.integer(builder, step))
        builder.create(ttg.AsyncCommitGroup, [])
        return started

    def _start_later(self, builder: Builder, slot: Value) -> dict[tt.Load, Value]:
        """Start the copies for `depth` iterations later. Those that are not leave a buffer of its own alone."""
        if not self.keeps:
            return self._start(builder, self.loop.counter, self.depth, slot)
        if self.depth == self.slots:
            return {}
        target = builder.emit(arith.AddI, slot, arith.integer(builder, self.depth))
        happens = happens_after(builder, self.loop, self.loop.counter, self.depth)
        branch = builder.create(scf.If, happens, result_types=[], regions=[Region([Block()]), Region([])])
        with builder.inside(branch.then.block):
            self._start(builder, self.loop.counter, self.depth, target)
            builder.create(scf.Yield, [], result_types=[])
        return {}

    def _next(self, builder: Builder, slot: Value) -> Value:
        """The number of the next buffer."""
        following = builder.emit(arith.AddI, slot, arith.integer(builder, 1))
        if self.keeps:
            return following
        over = builder.emit(arith.CmpI, following, arith.integer(builder, self.depth), predicate="sge")
        return builder.emit(arith.Select, over, arith.integer(builder, 0), following)


def arrived(load: tt.Load, buffers: Value, slot: Value) -> Value:
    """The block that a load's copy has brought to a buffer, with what is asked for outside of the mask."""
    builder = Builder().before(load)
    loaded = builder.emit(ttg.LocalLoad, window_at(builder, buffers, slot), result_types=[load.result.type])
    if load.mask is not None and load.other is not None and splat_of(load.other) != 0:
        loaded = builder.emit(arith.Select, load.mask, loaded, load.other)
    loaded.hint = load.result.hint
    return loaded
