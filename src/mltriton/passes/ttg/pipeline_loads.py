"""pipeline-loads: what a loop multiplies is copied to shared memory some iterations before.

Level: ttg, after `assign-lanes`. Takes `scf.for` loops of more than one stage and changes them in place: a load whose
block goes into a dot becomes an asynchronous copy into one of `stages` buffers, `stages - 1` iterations ahead; in its
place the block is loaded from shared memory, in the encoding in which it is wanted. Where a dot goes on by itself into
the next iteration buffers are kept for one more (`KEPT`): there is one more, or copies are one iteration less ahead.
A block of a tensor that the launch describes is copied by the engine, and waited for by the barrier of its buffer.
Where all blocks are, products only add up, and one buffer more would leave a program alone on its multiprocessor, the
copies of an iteration start at its end, behind a barrier: the products of the iteration before are done then, and their
buffers are free.
Guarantees: no result changes; an iteration waits for its own copies only; memory behind the last iteration is not
touched; where the target copies nothing asynchronously (`TargetSpec.copy_bytes`), and in warp-level kernels, every loop
stays as it is.

A load stays where the loop may write what it reads, or what its address is read from, where lanes have fewer
neighbours than a copy needs, where what is outside of the mask is not 0, and where shared memory does not hold two
buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from mltriton.analysis.axis_info import AxisInfoAnalysis
from mltriton.analysis.residency import programs_at_once
from mltriton.analysis.workload import adding_loop
from mltriton.dialects import arith, gpu, scf, tt, ttg, ttng
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.attributes import IntegerAttr, integer_in
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, MemDescType, TensorType, byte_width
from mltriton.layouts.base import Encoding, SharedEncoding
from mltriton.layouts.encodings import DotOperandEncoding
from mltriton.layouts.lanes import order_of
from mltriton.passes.ttg.copy_blocks import (
    Load,
    block_bytes,
    bytes_beside,
    copied_type,
    end_barriers,
    make_barriers,
    read_from,
    window_at,
)
from mltriton.passes.ttg.delay_dots import pair_of
from mltriton.passes.ttg.dot_loads import fastest_dim, is_load_of_dot
from mltriton.passes.ttg.later_iterations import (
    Needed,
    address_of,
    bytes_at_once,
    counter_after,
    happens_after,
    mask_where,
    stays_as_it_is,
)
from mltriton.passes.ttg.start_dots import KEPT, is_asynchronous
from mltriton.records import NamedTuple
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import fewer_stages_of, num_warps_of, spec_of


@dataclass(frozen=True)
class PipelineLoads(Pass):
    """Copy ahead. `stages`: buffers, instead of the loop's or the module's number of stages."""

    name = "pipeline-loads"
    stages: int | None = None

    def run(self, module: Module) -> Module:
        for function in [op for op in module.body.block.ops if isinstance(op, tt.Func)]:
            for plan in plans_of(function, module, self.stages):
                _Pipeline(plan, spec_of(module)).write()
        return module


def plans_of(function: tt.Func, module: Module, stages: int | None = None) -> Iterator[Plan]:
    """How the loops of a function copy ahead, each judged when it is asked for."""
    spec, usual = spec_of(module), integer_in(module.attributes, "ttg.num-stages", 0)
    if is_warp_level(module) or not spec.copy_bytes:  # Buffers are the program's, and each warp has loops of its own.
        return
    axes = AxisInfoAnalysis(function)
    room, fewer = spec.shared_bytes - bytes_beside(function), fewer_stages_of(module)
    for loop in [op for op in function.walk() if isinstance(op, scf.For)]:
        asked = stages if stages is not None else loop.num_stages or usual
        found = [op for op in loop.body.block.ops if isinstance(op, Load) and is_load_of_dot(op)]
        found = [load for load in found if _can_be_copied(load, axes, spec) and stays_as_it_is(load, loop)]
        plan = _planned(loop, found, asked, fewer, room, num_warps_of(module), spec)
        if plan is not None:
            yield plan


def _kept(loop: scf.For, spec: TargetSpec, stages: int) -> int:
    """For how many iterations more buffers are left as they are."""
    return int(stages > 1 and (_adds_up(loop, spec) or pair_of(loop, spec) is not None))


def _may_be_delayed(loop: scf.For, shared_bytes: int, warps: int, spec: TargetSpec) -> bool:
    """Whether buffers are kept for products: not for those that take another's result where a program has several
    groups of warps and a second program, which computes while one waits for them; groups that meet in every iteration
    would wait for each other's products of two.
    """
    groups = spec.warp_groups
    if pair_of(loop, spec) is None or groups is None or warps <= groups.warps:
        return True
    return _is_alone(loop, shared_bytes, warps, spec)


def _can_be_late(loop: scf.For, loads: Sequence[Load], spec: TargetSpec) -> bool:
    """Whether copies may start at the end of an iteration: lanes need not meet for what they have copied themselves."""
    fetched = all(isinstance(load, tt.DescriptorLoad) for load in loads)
    return fetched and _adds_up(loop, spec) and pair_of(loop, spec) is None


def _is_alone(loop: scf.For, shared_bytes: int, warps: int, spec: TargetSpec) -> bool:
    """Whether no second program with so much shared memory runs beside one: it would compute while the other waits."""
    beside = programs_at_once(loop.carried, shared_bytes, warps, spec)
    return beside is not None and beside < 2


def _adds_up(loop: scf.For, spec: TargetSpec) -> bool:
    """Whether a loop adds up products that go on into the next iteration."""
    dots = [op for op in loop.body.block.ops if isinstance(op, tt.Dot)]
    return any(is_asynchronous(dot, spec) and adding_loop(dot) is loop for dot in dots)


class Plan(NamedTuple):
    """What a loop copies ahead: its loads, and what these need in an earlier iteration. There are `stages` buffers of
    each, kept for `kept` further iterations, of which products make use where `used`; `late`: an iteration starts its
    copies at its end. `by_engine`: nothing else copies, and products only add up. `beside` programs share a
    multiprocessor then, where that is known.
    """

    loop: scf.For
    loads: Sequence[Load]
    ahead: Needed
    stages: int
    kept: int
    late: bool
    used: bool
    by_engine: bool
    beside: int | None

    @property
    def early(self) -> int:
        """How many iterations before copies start."""
        return self.stages - 1 - (0 if self.late else self.kept)

    @property
    def summary(self) -> str:
        """For people."""
        blocks = " + ".join(f"{'x'.join(map(str, block.shape))}x{block.element}" for block in map(_block, self.loads))
        when = f"{self.early} iteration{'s' * (self.early > 1)} ahead, in {self.stages} buffers of {blocks}"
        if self.late:
            return f"{when}, from an iteration's end on, so that {self.beside} programs share a multiprocessor"
        return f"{when}, of which products under way read one" if self.kept else when


def _planned(
    loop: scf.For, loads: Sequence[Load], stages: int, fewer: int, room: int, warps: int, spec: TargetSpec
) -> Plan | None:
    """`loads` copied ahead, as many as can be, in as many buffers as there is room for, and `fewer` less."""
    loads = [load for load in loads if Needed.of(loop, _address_of(load), loads=True) is not None]
    addresses = [value for load in loads for value in _address_of(load)]
    ahead = Needed.of(loop, addresses, loads=True) if loads else None
    kept, each = _kept(loop, spec, stages), sum(map(block_bytes, loads))
    by_engine = _can_be_late(loop, loads, spec)
    late = kept > 0 and by_engine and not _is_alone(loop, stages * each, warps, spec)
    late = late and _is_alone(loop, (stages + kept) * each, warps, spec)
    stages = min(stages + (0 if late else kept), room // each if loads else 0) - fewer
    if ahead is None or stages < 2:
        return None
    kept = kept if stages > 2 or late else 0
    used = kept > 0 and _may_be_delayed(loop, stages * each, warps, spec)
    beside = programs_at_once(loop.carried, stages * each, warps, spec)
    return Plan(loop, loads, ahead, stages, kept, late, used, by_engine, beside)


# Which loads.


def _can_be_copied(load: Load, axes: AxisInfoAnalysis, spec: TargetSpec) -> bool:
    """Whether lanes have as much in a row as a copy needs, all of it inside or outside of the mask."""
    if isinstance(load, tt.DescriptorLoad):
        return True
    other = splat_of(load.other) if load.other is not None else 0
    if other != 0:
        return False
    dim, run = fastest_dim(load, axes)
    return bytes_at_once(load, dim, run, axes) >= min(spec.copy_bytes)


def _block(load: Load) -> TensorType:
    return cast(TensorType, load.result.type)


def _address_of(load: Load) -> list[Value]:
    return [load.desc, *load.indices] if isinstance(load, tt.DescriptorLoad) else address_of(load)


_Iteration = tuple[Value, int]  # the counter of an iteration, and how many iterations after it


class _Pipeline:
    """The rewriting of one loop."""

    def __init__(self, plan: Plan, spec: TargetSpec) -> None:
        self.loop, self.loads, self.ahead = plan.loop, plan.loads, plan.ahead
        self.stages, self.late, self.early = plan.stages, plan.late, plan.early
        if plan.used:
            self.loop.attributes[KEPT] = IntegerAttr(plan.kept, I32)
        self.entry = Builder().before(self.loop)
        self.buffers = [
            self.entry.emit(ttg.LocalAlloc, None, result_types=[_buffer(load, plan.stages, spec)])
            for load in plan.loads
        ]
        self.fetched = [load for load in plan.loads if isinstance(load, tt.DescriptorLoad)]
        self.by_lanes = not plan.by_engine
        self.barriers = make_barriers(self.entry, plan.stages) if self.fetched else None
        if self.barriers is None and isinstance(self.loop.parent_op, scf.For | scf.While):
            self.entry.create(gpu.Barrier)  # The buffers may be where warps still read what went before them.

    def write(self) -> None:
        """Copies in front of the loop, then those of the body, then the loads from shared memory."""
        states = self._prologue()
        arguments = [carry_also(self.loop, state)[0] for state in states]
        slot, _ = carry_also(self.loop, arith.integer(self.entry, 0))
        builder = Builder().before(self.loop.body.block.ops[0])
        parities = self._wait(builder, slot)
        yielded = self._copies_of_the_body(self._at_the_end() if self.late else builder, arguments, slot)
        following = self._next(builder, slot)
        parities = [self._parity(builder, parity, following) for parity in parities]
        yield_also(self.loop.body.block, [*yielded, following, *parities])
        arrived = [window_at(builder, buffer, slot) for buffer in self.buffers]
        for load, block in zip(self.loads, arrived, strict=True):
            self._read(load, block)
        self._finish()

    def _wait(self, builder: Builder, slot: Value) -> list[Value]:
        """Until the iteration's copies have come, and all warps are done with those before; the parity, if any."""
        parities: list[Value] = []
        if self.barriers is not None:
            parity, _ = carry_also(self.loop, arith.integer(self.entry, 0))
            builder.create(ttng.WaitBarrier, window_at(builder, self.barriers, slot), parity)
            parities = [parity]
        if self.by_lanes:
            builder.create(ttg.AsyncWait, [], num=self.early - 1)
        elif not self.late:
            builder.create(gpu.Barrier)
        return parities

    def _at_the_end(self) -> Builder:
        """At the end of an iteration, when all warps are done with the one before."""
        builder = Builder().before(self.loop.body.block.terminator)
        builder.create(gpu.Barrier)
        return builder

    def _parity(self, builder: Builder, parity: Value, following: Value) -> Value:
        """That of the next iteration, which another one is when it begins with the buffers anew."""
        wraps = builder.emit(arith.CmpI, following, arith.integer(builder, 0), predicate="eq")
        return builder.emit(arith.XOrI, parity, builder.emit(arith.ExtUI, wraps, result_types=[I32]))

    def _finish(self) -> None:
        block = self.loop.block
        assert block is not None
        after = Builder().before(block.ops[block.position(self.loop) + 1])
        if self.by_lanes:
            after.create(ttg.AsyncWait, [], num=0)
        if self.barriers is not None:
            end_barriers(after, self.barriers, self.stages)

    def _prologue(self) -> list[Value]:
        """Start the copies of the first iterations; the carried values of the first one that is not begun."""
        carried = [self.loop.inits[index] for index in self.ahead.carried]
        for step in range(self.early):
            carried = self._copies(self.entry, (self.loop.lower, step), carried, arith.integer(self.entry, step))
        return carried

    def _copies_of_the_body(self, builder: Builder, carried: Sequence[Value], slot: Value) -> list[Value]:
        """Start the copies of an iteration that comes later, into the buffers that were read longest ago."""
        last = builder.emit(arith.AddI, slot, arith.integer(builder, self.early))
        return self._copies(builder, (self.loop.counter, self.early), carried, self._wrapped(builder, last))

    def _copies(self, builder: Builder, when: _Iteration, carried: Sequence[Value], slot: Value) -> list[Value]:
        """Start the copies of an iteration; what it hands on to the next."""
        body = self.loop.body.block
        values: dict[Value, Value] = {self.loop.counter: counter_after(builder, self.loop, *when)}
        values.update((body.arguments[1 + i], value) for i, value in zip(self.ahead.carried, carried, strict=True))
        happens = happens_after(builder, self.loop, *when)
        self.ahead.compute(builder, values, happens)
        barrier = None
        if self.barriers is not None:
            barrier = window_at(builder, self.barriers, slot)
            builder.create(ttng.BarrierExpect, barrier, happens, size=sum(map(block_bytes, self.fetched)))
        for load, buffer in zip(self.loads, self.buffers, strict=True):
            with builder.at(load.loc):
                there = window_at(builder, buffer, slot)
                if isinstance(load, tt.Load):
                    self._copy(builder, load, values, happens, there)
                else:
                    indices = [values.get(index, index) for index in load.indices]
                    builder.create(ttng.AsyncTMACopyGlobalToLocal, load.desc, indices, there, barrier, happens)
        if self.by_lanes:
            builder.create(ttg.AsyncCommitGroup, [])
        ends = [body.terminator.operands[index] for index in self.ahead.carried]
        return [values.get(end, end) for end in ends]

    def _copy(self, builder: Builder, load: tt.Load, values: dict[Value, Value], happens: Value, slot: Value) -> None:
        mask = mask_where(builder, load, values, happens)
        builder.create(ttg.AsyncCopyGlobalToLocal, values.get(load.ptr, load.ptr), slot, mask, None)

    def _read(self, load: Load, slot: Value) -> None:
        """Each user gets the block as it wants it: in its own encoding, or where it is."""
        read_from(load, slot)

    def _next(self, builder: Builder, slot: Value) -> Value:
        return self._wrapped(builder, builder.emit(arith.AddI, slot, arith.integer(builder, 1)))

    def _wrapped(self, builder: Builder, slot: Value) -> Value:
        """A buffer's number, which is less than twice the number of buffers."""
        count = arith.integer(builder, self.stages)
        over = builder.emit(arith.CmpI, slot, count, predicate="sge")
        return builder.emit(arith.Select, over, builder.emit(arith.SubI, slot, count), slot)


def _buffer(load: Load, stages: int, spec: TargetSpec) -> MemDescType:
    """The buffers of a load, laid out as the instruction that multiplies its blocks likes to read them."""
    if isinstance(load, tt.DescriptorLoad):
        return copied_type(load, spec, stages)
    block = cast(TensorType, load.result.type)
    return MemDescType((stages, *block.shape), block.element, _shared_encoding(load, block))


def _shared_encoding(load: tt.Load, block: TensorType) -> SharedEncoding | None:
    """As a product reads it there, which lanes can load from as well; else as lanes of a product load it best."""
    for user in load.result.users:
        if isinstance(user, ttg.LocalAlloc):
            return cast("SharedEncoding | None", cast(MemDescType, user.result.type).encoding)
    for user in load.result.users:
        wanted = cast(TensorType, user.results[0].type).encoding if isinstance(user, ttg.ConvertLayout) else None
        if isinstance(wanted, DotOperandEncoding):
            assert isinstance(block.encoding, Encoding)
            return wanted.parent.operand_in_shared(
                wanted, block.shape, byte_width(block.element), order_of(block.encoding, block.shape)
            )
    return None
