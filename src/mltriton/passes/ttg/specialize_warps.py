"""specialize-warps: a warp of its own starts all copies of what a program multiplies; the program's warps compute.

Level: ttg, after `assign-lanes`. Takes functions whose products take blocks that an engine copies, and changes them in
place: a `ttg.warp_specialize` whose partition is the producer, a loop nest like the program's with nothing but scalars
and copies, and whose default side is all else. Blocks go through rings of slots in shared memory (`rings.py`): loads of
one product share a ring, and so do loops that follow each other. A group of warps gives up registers for the others
where the target can move them (`TargetSpec.warp_groups`). Guarantees: no result changes; every block is waited for
before it is read, and given back when the iteration is over, which later passes may bring forward.

A function stays as it is where `analysis/producers.py` says why, where shared memory has not two slots for each loop,
and where it is not faster and nobody asks: the option `specialize_warps`, or `tl.range(warp_specialize=True)`.
Source: Shah et al., "FlashAttention-3", arXiv:2407.08608, section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from mltriton.analysis.producers import Group, NotProduced, Producer, follows, producer_of
from mltriton.analysis.residency import comes_late, programs_at_once
from mltriton.analysis.staging import piece_of
from mltriton.dialects import scf, tt, ttg, ttng
from mltriton.dialects.scf_carried import carry_also, yield_also
from mltriton.ir.attributes import IntegerAttr, integer_in, string_in
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, MemDescType, TensorType
from mltriton.layouts.base import Encoding
from mltriton.passes.ttg.copy_blocks import block_bytes, copied_type, is_described, read_from, window_at
from mltriton.passes.ttg.delay_dots import chained_values
from mltriton.passes.ttg.dot_loads import is_load_of_dot
from mltriton.passes.ttg.rings import Ring, State, begin_rings, goes_on, make_ring
from mltriton.passes.ttg.start_dots import is_asynchronous
from mltriton.targets.base import TargetSpec
from mltriton.targets.registry import (
    BESIDE,
    TAKES_TURNS,
    TOTAL_WARPS,
    fewer_stages_of,
    most_registers_of,
    num_warps_of,
    spec_of,
)

States = dict[Ring, State]
WIDE = 64  # columns that an instruction multiplies for longer than it reads what it multiplies them with
_KEPT_BYTES = 1024  # of shared memory, for barriers


class SpecializeWarps(Pass):
    """Let a producer warp copy."""

    name = "specialize-warps"

    def run(self, module: Module) -> Module:
        for function in [op for op in module.body.block.ops if isinstance(op, tt.Func)]:
            try:
                plan = plan_of(function, module)
            except NotProduced:
                continue
            plan.write()
            total = num_warps_of(module) + plan.producer_warps
            module.attributes[TOTAL_WARPS] = IntegerAttr(total, I32)
            if plan.beside > 1:
                module.attributes[BESIDE] = IntegerAttr(plan.beside, I32)
        return module


def plan_of(function: tt.Func, module: Module) -> Plan:
    """How a function is specialised. Raises `NotProduced` where it is not."""
    spec, warps = spec_of(module), num_warps_of(module)
    asked = string_in(module.attributes, "ttg.specialize-warps", "none")
    if spec.warp_groups is None or is_warp_level(module):
        raise NotProduced(function, "the target has no groups of warps")
    if asked == "none":
        raise NotProduced(function, "the option specialize_warps is none")
    if warps % spec.warp_groups.warps or warps + spec.warp_groups.warps > spec.max_warps:
        raise NotProduced(function, f"{warps} warps leave no group for a producer")
    loads = [op for op in function.walk() if isinstance(op, tt.Load | tt.DescriptorLoad) and is_load_of_dot(op)]
    producer, stages = producer_of(function, loads), integer_in(module.attributes, "ttg.num-stages", 2)
    beside = 1
    if asked == "auto" and not any(loop.warp_specialize for loop in producer.loops):
        if TAKES_TURNS not in module.attributes:
            _require_faster(function, producer, spec, warps, stages)
        if not any(chained_values(loop, spec) or _is_read_by_lanes(loop, spec) for loop in producer.loops):
            beside = min(_beside(producer, loop, loop.carried, spec, warps, stages) for loop in producer.loops)
    limited = most_registers_of(module) > 0
    return Plan(function, producer, spec, warps, stages, fewer_stages_of(module), beside, limited=limited)


def _require_faster(function: tt.Func, producer: Producer, spec: TargetSpec, warps: int, stages: int) -> None:
    """Raise `NotProduced` where it was not faster: two groups that take turns at the matrix units gain most, of which
    one computes what its next product takes, or loads it from shared memory, while the other multiplies.
    """
    assert spec.warp_groups is not None
    if warps < 2 * spec.warp_groups.warps:
        raise NotProduced(function, f"{warps} warps take no turns at the matrix units")
    chained = {loop: values for loop in producer.loops if (values := chained_values(loop, spec))}
    read = {loop: loop.carried for loop in producer.loops if _is_read_by_lanes(loop, spec)}
    if not chained and not read:
        if not any(_comes_late(group, spec, warps, stages) for group in producer.groups):
            raise NotProduced(function, "no product takes what another gives, and all warps copy as fast")
        return
    if any(_beside(producer, loop, values, spec, warps, stages) > 1 for loop, values in (chained or read).items()):
        raise NotProduced(function, "two programs without a producer share a multiprocessor, and take turns there")


def _comes_late(group: Group, spec: TargetSpec, warps: int, stages: int) -> bool:
    """Whether blocks would come late without a producer."""
    return bool(group.loops) and comes_late(group.loops[-1], _bytes(group), spec, warps, stages)


def _is_read_by_lanes(loop: scf.For, spec: TargetSpec) -> bool:
    """Whether products of a loop's own operations take a block from registers that was loaded: each lane loads its part
    in front of the product, for which groups that wait for each other would all be at once.
    """
    dots = [op for op in loop.body.block.ops if isinstance(op, tt.Dot) and is_asynchronous(op, spec)]
    return any(isinstance(dot.a.type, TensorType) and isinstance(_maker(dot.a), tt.DescriptorLoad) for dot in dots)


def _maker(value: Value) -> Operation | None:
    """What makes a block, whatever its order and layout."""
    op = value.defining_op
    while isinstance(op, tt.Trans | ttg.ConvertLayout):
        op = op.source.defining_op
    return op


def _beside(producer: Producer, loop: scf.For, kept: Sequence[Value], spec: TargetSpec, warps: int, stages: int) -> int:
    """How many programs run beside each other that copy for themselves, and in a loop have so many values in registers;
    with a producer lanes have all that there are. 1 where the target does not say. Sums are faster so in launches of
    one such round (GEMM of 2048 in f16, 256 programs of 128 x 128 x 64, 3 stages: 28.4 us, with a producer 31.7).
    """
    stages = loop.num_stages or stages
    shared = sum(_bytes(group) * (stages if loop in group.loops else 1) for group in producer.groups)
    return max(1, programs_at_once(kept, shared, warps, spec) or 1)


_Key = tuple[object, ...]


class Plan:
    """The rewriting of one function."""

    def __init__(
        self,
        function: tt.Func,
        producer: Producer,
        spec: TargetSpec,
        warps: int,
        stages: int,
        fewer: int,
        beside: int,
        *,
        limited: bool,
    ) -> None:
        self.limited, self.beside = limited, beside
        self.function, self.producer, self.spec, self.warps = function, producer, spec, warps
        assert spec.warp_groups is not None
        self.groups_of_warps = spec.warp_groups
        self.producer_warps = spec.warp_groups.warps
        self.keys = {group: self._key(group) for group in producer.groups}
        self.slots = self._slots(stages, fewer)

    def _key(self, group: Group) -> _Key:
        """What groups have in common that share a ring: the blocks, the depth of loops, and which of several it is."""
        same = [g for g in self.producer.groups if g.loads[0].block is group.loads[0].block]
        number = [g for g in same if self._blocks(g) == self._blocks(group)].index(group)
        return self._blocks(group), len(group.loops), self._is_inner(group), number

    def _blocks(self, group: Group) -> tuple[MemDescType, ...]:
        return tuple(copied_type(load, self.spec) for load in group.loads)

    def _along(self, group: Group) -> list[int | None]:
        """For each load the dimension along which its block follows that of the load before: where both lie alike, the
        elements of one in front of those of the other, and it is so narrow that reading the left operand again would
        take longer than multiplying it.
        """
        found: list[int | None] = [None]
        for (first, before), (second, block) in pairwise(zip(group.loads, self._blocks(group), strict=True)):
            dim = follows(first, second)
            alike = dim is not None and goes_on(before, block, dim) and block.shape[dim] < WIDE
            found.append(dim if alike else None)
        return found

    def _is_inner(self, group: Group) -> bool:
        """Whether a group's loop has no further loop with blocks."""
        return bool(group.loops) and not any(group.loops[-1] in g.loops[:-1] for g in self.producer.groups)

    def _slots(self, stages: int, fewer: int) -> dict[_Key, int]:
        """Slots of each ring: one more than the stages of its loops where shared memory has room, or `fewer` less, and
        then two of what comes around inner loops.
        """
        room = self.spec.shared_bytes - _KEPT_BYTES - sum(map(self._stored, self.producer.loops))
        rings = {self.keys[group]: group for group in self.producer.groups}
        single = {key for key, group in rings.items() if not self._is_inner(group)}
        room -= sum(_bytes(rings[key]) for key in single)
        inner = {key: group for key, group in rings.items() if key not in single}
        asked = max((group.loops[-1].num_stages or stages for group in inner.values()), default=stages)
        slots = min(asked + 1, room // max(1, sum(map(_bytes, inner.values())))) - fewer
        if slots < 2:
            op = next(iter(rings.values())).loads[0]
            raise NotProduced(op, "shared memory does not hold two slots of what a loop copies")
        again = {key for key in single if rings[key].loops}  # filled more than once
        room -= slots * sum(map(_bytes, inner.values()))
        ahead = 1 if fewer or sum(_bytes(rings[key]) for key in again) > room else 2
        return {key: slots if key in inner else ahead if key in again else 1 for key in rings}

    def _stored(self, loop: scf.For) -> int:
        """Bytes of blocks on their way to memory, which a loop needs beside the slots."""
        stores = [op for op in loop.body.block.ops if isinstance(op, tt.Store | tt.DescriptorStore)]
        blocks = [op.value.type for op in stores if isinstance(op.value.type, TensorType)]
        if all(self._goes_by_warps(op) for op in stores):
            return sum(piece.bytes for piece in {piece_of(block.with_encoding(None)) for block in blocks})
        return sum(block.bytes for block in blocks)

    def _goes_by_warps(self, store: tt.Store | tt.DescriptorStore) -> bool:
        """Whether each warp has rows of its own of what the engine stores for it (`store-by-warps`)."""
        block = store.value.type
        if not isinstance(store, tt.DescriptorStore) or not is_described(store) or not isinstance(block, TensorType):
            return False
        own = isinstance(block.encoding, Encoding) and block.encoding.per_warp_shape(block.shape)
        return own == (block.shape[0] // self.warps, *block.shape[1:]) and block.rank == 2

    @property
    def registers(self) -> tuple[int, int]:
        """Of a lane that computes, and of one that copies, where the producers hand over some of theirs; 0 otherwise:
        where lanes have as many as they may in any case, or the program says how many they may have.
        """
        if self.limited:
            return 0, 0
        given = self.groups_of_warps
        most, lanes = given.most // given.unit * given.unit, self.spec.warp_size * (self.warps + self.producer_warps)
        each = given.registers // lanes // given.unit * given.unit  # at the start; nobody has more to hand over
        if each >= most:
            return 0, 0
        left = each * lanes - given.producer * self.spec.warp_size * self.producer_warps
        return min(most, left // (self.spec.warp_size * self.warps) // given.unit * given.unit), given.producer

    @property
    def summary(self) -> str:
        """For people."""
        rings = [
            f"{slots} x {' + '.join('x'.join(map(str, block.shape)) + f'x{block.element}' for block in _kinds(key))}"
            for key, slots in self.slots.items()
        ]
        shares = " and {} registers".format(" to ".join(map(str, self.registers))) if self.registers[0] else ""
        others = f"; none for launches of one round of {self.beside} programs on a multiprocessor"
        return f"copies for {self.warps} warps, in slots of {', '.join(rings)}{shares}{others * (self.beside > 1)}"

    # Writing

    def write(self) -> None:
        """Both sides."""
        body = self.function.body.block
        shared, rest = _split(body)
        body.ops[:] = [*shared, body.terminator]
        builder = Builder().before(body.terminator)
        self.rings = self._make_rings(builder)
        default, partition = Block(), Block()
        made = builder.create(ttg.WarpSpecialize, result_types=[], regions=[Region([default]), Region([partition])])
        made.num_warps = self.producer_warps
        made.default_registers, made.partition_registers = self.registers
        for op in rest:
            default.append(op)
        default.append(ttg.WarpYield())
        with builder.inside(partition):  # It is written first: the default side loses its loads.
            start = {ring: ring.start(builder, 1) for ring in self.rings.values()}
            self._produce(builder, rest, {}, start)
            builder.create(ttg.WarpReturn, result_types=[])
        entry = Builder().before(default.ops[0])
        self._consume(default, {ring: ring.start(entry, 0) for ring in self.rings.values()})

    def _make_rings(self, builder: Builder) -> dict[_Key, Ring]:
        made: dict[_Key, Ring] = {}
        for group, key in self.keys.items():
            if key not in made:
                along, once = self._along(group), not group.loops
                made[key] = make_ring(builder, _kinds(key), along, self.slots[key], self.warps, once=once)
        begin_rings(builder, list(made.values()))
        return made

    # Consumers

    def _consume(self, block: Block, states: States) -> None:
        """Wait for blocks where they are loaded, and give them back at the end of the iteration."""
        here = [group for group in self.producer.groups if group.loads[0].block is block]
        first = {group.loads[0]: group for group in here}
        for op in list(block.ops):
            if isinstance(op, tt.DescriptorLoad) and op in first:
                ring = self.rings[self.keys[first[op]]]
                builder = Builder().before(op)
                builder.loc = op.loc
                builder.create(ttng.WaitBarrier, window_at(builder, ring.full, states[ring].slot), states[ring].parity)
            if isinstance(op, scf.For) and op in self.producer.loops:
                self._consume_loop(op, states)
        for group in here:
            ring = self.rings[self.keys[group]]
            for load, buffer in zip(group.loads, ring.buffers, strict=True):
                builder = Builder().before(load)
                read_from(load, buffer.at(builder, states[ring].slot))
        end = Builder().before(block.terminator)
        for group in here if isinstance(block.parent_op, scf.For) else ():
            ring = self.rings[self.keys[group]]
            ring.release(end, states[ring].slot)
            states[ring] = ring.next(end, states[ring])

    def _consume_loop(self, loop: scf.For, states: States) -> None:
        rings = self._rings_in(loop)
        inner, after = dict(states), dict[Ring, State]()
        for ring in rings:
            parts = [carry_also(loop, value) for value in states[ring]]
            inner[ring], after[ring] = (State(*(part[i] for part in parts)) for i in range(2))
        self._consume(loop.body.block, inner)
        yield_also(loop.body.block, [value for ring in rings for value in inner[ring]])
        states.update(after)

    def _rings_in(self, loop: scf.For) -> list[Ring]:
        return list(dict.fromkeys(self.rings[self.keys[g]] for g in self.producer.groups if loop in g.loops))

    # The producer

    def _produce(self, builder: Builder, ops: list[Operation], values: dict[Value, Value], states: States) -> None:
        """Write what the producer does of some operations."""
        last = {group.loads[-1]: group for group in self.producer.groups}
        for op in ops:
            if op in self.producer.ops:
                builder.insert(op.clone(values))
            elif isinstance(op, scf.For) and op in self.producer.loops:
                self._produce_loop(builder, op, values, states)
            elif isinstance(op, tt.DescriptorLoad) and op in last:
                ring = self.rings[self.keys[last[op]]]
                _fill(builder, last[op], ring, states[ring], values)
                states[ring] = ring.next(builder, states[ring])

    def _produce_loop(self, builder: Builder, loop: scf.For, values: dict[Value, Value], states: States) -> None:
        rings, kept = self._rings_in(loop), sorted(self.producer.carried[loop])
        inits = [values.get(loop.inits[i], loop.inits[i]) for i in kept]
        inits += [value for ring in rings for value in states[ring]]
        body = Block([loop.counter.type, *(value.type for value in inits)])
        bounds = [values.get(bound, bound) for bound in (loop.lower, loop.upper, loop.step)]
        inner = {**values, loop.counter: body.arguments[0]}
        inner |= {loop.carried[i]: argument for i, argument in zip(kept, body.arguments[1:], strict=False)}
        inside = dict(states) | _states(rings, body.arguments[1 + len(kept) :])
        with builder.inside(body):
            self._produce(builder, loop.body.block.ops, inner, inside)
            ends = [loop.body.block.terminator.operands[i] for i in kept]
            yielded = [inner.get(end, end) for end in ends] + [value for ring in rings for value in inside[ring]]
            builder.create(scf.Yield, yielded, result_types=[])
        types = [value.type for value in inits]
        made = builder.create(scf.For, *bounds, inits, result_types=types, regions=[Region([body])])
        values |= {loop.results[i]: result for i, result in zip(kept, made.results, strict=False)}
        states.update(_states(rings, made.results[len(kept) :]))


def _states(rings: list[Ring], values: Sequence[Value]) -> States:
    return {ring: State(*values[2 * i : 2 * i + 2]) for i, ring in enumerate(rings)}


def _fill(builder: Builder, group: Group, ring: Ring, state: State, values: dict[Value, Value]) -> None:
    """Start the copies of a group."""
    with builder.at(group.loads[0].loc):
        barrier, windows = ring.fill(builder, state, _bytes(group))
        for load, there in zip(group.loads, windows, strict=True):
            indices = [values.get(index, index) for index in load.indices]
            builder.create(ttng.AsyncTMACopyGlobalToLocal, load.desc, indices, there, barrier, None)


def _kinds(key: _Key) -> tuple[MemDescType, ...]:
    return cast("tuple[MemDescType, ...]", key[0])


def _bytes(group: Group) -> int:
    return sum(map(block_bytes, group.loads))


def _split(body: Block) -> tuple[list[Operation], list[Operation]]:
    """The operations that both sides may use, scalars computed of scalars, and all others but the end."""
    shared, rest, known = list[Operation](), list[Operation](), set[Value](body.arguments)
    for op in body.ops[:-1]:
        values = (*op.operands, *op.results)
        scalar = op.pure and not op.regions and not any(isinstance(value.type, TensorType) for value in values)
        if scalar and all(operand in known for operand in op.operands):
            shared.append(op)
            known.update(op.results)
        else:
            rest.append(op)
    return shared, rest
