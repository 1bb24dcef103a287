"""form-nests: what of a program shares loops, and which blocks are stored.

Level: warp, targets whose blocks lie in memory. Takes one warp's program and puts operations that walk over blocks
(stores, reductions, atomics, assertions) into `tile.nest`s, in program order, as long as each may run row by row with
those before it; numbers the loops of a row. Blocks that cannot be computed where they are needed, or would be computed
too often, are stored by `tile.fill`: loads whose memory changes before they are used, expensive blocks that others pick
elements of or that every iteration of a loop needs, long chains that are needed again, and what dots take computed.
Guarantees: operations that write memory keep their order. What control flow stores is still to come: it may join the
nest before, which `match-target-size` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mltriton.analysis.aliasing import may_alias
from mltriton.dialects import scf, tile, tt, ttg, ttig
from mltriton.ir.attributes import DenseArrayAttr
from mltriton.ir.location import Location
from mltriton.ir.module import Module
from mltriton.ir.nesting import is_defined_inside, is_inside
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I32, TensorType, Type, shape_of
from mltriton.passes.intrinsic.tile_loops.directions import Direction, Directions
from mltriton.passes.intrinsic.tile_loops.footprints import EXPENSIVE, Costs, Footprint, killed_loads
from mltriton.passes.intrinsic.tile_loops.loop_nests import LoopNest
from mltriton.passes.intrinsic.tile_loops.members import Fill, Member, StoreBlock, fill_of
from mltriton.passes.intrinsic.tile_loops.nest_regions import Stretch, enclose
from mltriton.passes.intrinsic.tile_loops.operations import is_virtual, member_of, statement_of
from mltriton.passes.intrinsic.tile_loops.recomputed import needed_again
from mltriton.targets.registry import spec_in_memory

if TYPE_CHECKING:
    from mltriton.targets.base import TargetSpec

# Where a member reads by so many values, those it takes are stored: the next one need not go as far again.
LONGEST = 1024
# Operations with effects that no nest waits for.
UNORDERED = (tt.Load, tt.DescriptorLoad, ttg.LocalAlloc, ttg.LocalLoad, tt.Assume, ttig.Prefetch)


class FormNests(Pass):
    """Put what shares loops into loop nests, and say which blocks are stored."""

    name = "form-nests"

    def run(self, module: Module) -> Module:
        spec = spec_in_memory(module, self.name)
        for function in module.body.block.ops:
            assert isinstance(function, tt.Func)
            former = _Former(function, spec)
            former.block(function.body.block)
            for block, stretches in former.stretches.items():
                enclose(block, stretches)
        return module


class _Former:
    """State of one function: the open nest, what is stored, and the nests that are done by their block."""

    def __init__(self, function: tt.Func, spec: TargetSpec) -> None:
        self.spec = spec
        self.directions = Directions(function, spec.lanes, self.reads)
        self.nest = LoopNest()
        self.stretch = Stretch()
        self.stored: set[Value] = set()
        self.converted: set[tuple[Value, Type]] = set()  # blocks that are stored as other elements, too
        self.aliases: dict[Value, Value] = {}  # carried block that never changes -> the initial one
        self.stretches: dict[Block, list[Stretch]] = {}
        self.current = function.body.block
        self.ops: list[Operation] = []  # of the block at hand, with those that store
        self.moved: set[Operation] = set()  # in front of a dot that another one's operand is stored for

    # Walking

    def block(self, block: Block) -> None:
        """Decide for the operations of a block."""
        outer = self.current, self.ops
        self.current, self.ops = block, []
        killed = killed_loads(block)
        for op in block.ops[:-1]:
            if op not in self.moved:
                self._operation(op)
            if op in killed:
                self._store(op.results[0], op.loc)
        self._close()
        block.ops[:-1] = self.ops
        self.current, self.ops = outer

    def _operation(self, op: Operation) -> None:
        for number in op.encodings.free if op.encodings and op.rearranges else ():  # Read where an index says.
            if Costs(self.stored).of(op.operands[number]) >= EXPENSIVE:
                self._store(op.operands[number], op.loc)
        member = member_of(op)
        if member is not None:
            self._add(op, self._at_its_lanes(member))
            return
        if isinstance(op, tt.Dot):
            self._store_for(op)
        if self._must_wait(op):
            self._close()
        if isinstance(op, scf.For | scf.While):
            self._store_before(op)
        if isinstance(op, scf.For):
            self._same_blocks(op)
        if isinstance(op, scf.For | scf.If | scf.While):
            for block in op.blocks:
                self._region(block)
        self.ops.append(op)

    def _region(self, block: Block) -> None:
        """What is stored in a region is not known to be behind it."""
        stored, converted = set(self.stored), set(self.converted)
        self.block(block)
        self.stored, self.converted = stored, converted

    def _same_blocks(self, loop: scf.For) -> None:
        """Blocks that a loop carries and never changes are the initial ones."""
        ends = loop.body.block.terminator.operands
        for init, argument, end, result in zip(loop.inits, loop.carried, ends, loop.results, strict=True):
            if end is argument and isinstance(init.type, TensorType):
                self.aliases[argument] = self.aliases[result] = self.aliases.get(init, init)

    def _must_wait(self, op: Operation) -> bool:
        """Whether an operation comes after all that the open nest does."""
        if not isinstance(op, UNORDERED):
            return statement_of(op.__class__) is not None
        if not isinstance(op, tt.Load) or isinstance(op.result.type, TensorType):
            return False
        found = [self.reads(operand) for operand in op.operands]
        loads = [op, *(load for print in found for load, _ in print.loads)]
        stores = [member.store for member in self.nest.members if member.store is not None]
        return any(map(self._awaits, found)) or any(may_alias(load, store) for load in loads for store in stores)

    # Nests

    def reads(self, value: Value) -> Footprint:
        """What the evaluation of a value reads."""
        return self._footprint([(value, tuple(range(len(shape_of(value.type)))))])

    def _footprint(self, inputs: Sequence[tuple[Value, tuple[int, ...]]]) -> Footprint:
        found = Footprint(aliases=self.aliases)
        for value, coordinates in inputs:
            found.follow(value, coordinates, self)
        return found

    def __contains__(self, value: Value) -> bool:
        """Whether evaluation does not look behind a value: it is stored, or the open nest computes it."""
        return value in self.stored or value in self.nest.produced

    def _awaits(self, found: Footprint) -> bool:
        return any(leaf in self.nest.produced for leaf, _ in found.leaves)

    def _add(self, op: Operation, member: Member) -> None:
        """Append to the open nest, or to a new one where the member does not fit."""
        footprint = self._footprint(member.inputs())
        if not isinstance(member, Fill):
            footprint = self._shortened(member, footprint)
        if not self.nest.accepts(member, footprint):
            self._close()
        self.nest.add(member, footprint)
        self.stretch.members.append(op)
        self.stretch.direction = member.direction if isinstance(member, _StoreElsewhere) else None
        self.ops.append(op)

    def _shortened(self, member: Member, footprint: Footprint) -> Footprint:
        """What a member reads once parts of it are stored that would be computed too often."""
        again = needed_again(footprint, self._is_recomputed, self.reads)
        if again:
            footprint = self._after_storing(again, member)
        if len(footprint.visited) > LONGEST and self.nest.members:
            blocks = [value for value, _ in member.inputs() if isinstance(value.type, TensorType)]
            footprint = self._after_storing(blocks, member)
        return footprint

    def _after_storing(self, values: Iterable[Value], member: Member) -> Footprint:
        for value in values:
            self._store(value, member.loc)
        return self._footprint(member.inputs())

    def _close(self) -> None:
        """The open nest is done."""
        if self.nest.members:
            self.stretch.loops = list(self.nest.levels)
            self._plan_rows()
            self.stored.update(v for member in self.nest.members if isinstance(member, Fill) for v in member.produces)
            self.stretches.setdefault(self.current, []).append(self.stretch)
            self.nest, self.stretch = LoopNest(), Stretch()

    def _plan_rows(self) -> None:
        """Say what the loops of a row do for later ones."""
        loops, stretch = self.nest.loops(), self.stretch
        if len(loops) < 2:
            return
        from mltriton.passes.intrinsic.tile_loops.row_plans import kept_values, prefetched  # Many programs have one.

        op_of = dict(zip(self.nest.members, stretch.members, strict=True))
        for value, coordinates, level, user in kept_values(
            loops, self.nest, Costs(self.stored), self.aliases, self.spec.lanes
        ):
            op = tile.Fill([value], (), {"row": DenseArrayAttr(coordinates, I32)}, (), self.nest.members[0].loc)
            number = stretch.members.index(op_of[user])
            stretch.members.insert(number, op)
            stretch.loops.insert(number, level)
            self.ops.insert(self.ops.index(op_of[user]), op)
        stretch.prefetched = [stretch.members.index(op_of[m]) for m in prefetched(loops, self.nest.produced)]

    # Stored blocks

    def _store(self, value: Value, loc: Location) -> None:
        """Let the open nest store a block."""
        value = self.aliases.get(value, value)
        if value not in self:
            op = tile.Fill([value], loc=loc)
            self._add(op, fill_of(op))

    def _store_for(self, dot: tt.Dot) -> None:
        """Let the open nest store what a dot takes computed."""
        from mltriton.passes.intrinsic.tile_loops.dot_fills import fills_of, place_of_sum  # For dots only.

        for op, later in fills_of(self, dot):
            for made in later:
                if made not in self.moved:
                    self._operation(made)
                    self.moved.add(made)
            self._fill(op, place_of_sum(dot.result) if op.start else None)

    def _fill(self, op: tile.Fill, owner: Value | None = None) -> None:
        """Let the open nest store what a dot takes; `owner` is what may be where its sum is stored."""
        if op.defines:
            self._store(op.source, op.loc)
            return
        self._add(op, fill_of(op, owner))
        if op.element is not None:
            self.converted.add((op.source, op.element))

    def is_stored(self, value: Value, element: Type | None = None) -> bool:
        """Whether a block is in memory, as its own elements or as others."""
        value = self.aliases.get(value, value)
        return value in self if element is None else (value, element) in self.converted

    def contiguous_dim(self, value: Value) -> int:
        """The dimension along which the memory runs from which a block is computed."""
        return self.directions.contiguous_dim(value)

    def costs(self) -> Costs:
        """Costs as things stand."""
        return Costs(self.stored)

    def _is_recomputed(self, value: Value) -> bool:
        """Whether a block is computed, in the block of operations at hand, wherever it is needed."""
        op = value.defining_op
        if op is None or op.block is not self.current or not op.elementwise:
            return False
        return isinstance(value.type, TensorType) and value not in self

    def _store_before(self, loop: Operation) -> None:
        """Compute once, before a loop, what is expensive and what every iteration would compute again."""
        operands = [operand for inner in loop.walk() for operand in inner.operands]
        outside = [
            value
            for value in dict.fromkeys(operands)
            if not is_defined_inside(value, loop) and value not in self.stored
        ]
        costs = Costs(self.stored)
        for value in outside:
            if not isinstance(value.type, TensorType):
                continue
            users = [user for user in value.users if is_inside(user, loop)]
            dots = [user for user in users if isinstance(user, tt.Dot) and value is not user.c]
            if users and len(dots) == len(users):
                self._store_left(value, dots)
            elif _is_computed(value) and costs.of(value) >= EXPENSIVE:
                self._store(value, loop.loc)
        self._close()

    def _store_left(self, value: Value, dots: Sequence[tt.Dot]) -> None:
        """Let the open nest store what dots of a loop that does not change it take on the left."""
        from mltriton.passes.intrinsic.tile_loops.dot_fills import left_fill  # For dots only.

        for dot in dots:
            op = left_fill(self, dot) if dot.a is value else None
            if op is not None:
                self._fill(op)

    # Stores along another dimension than the last

    def _at_its_lanes(self, member: Member) -> Member:
        """A store whose memory runs along another dimension than its last one has a nest of its own."""
        if not isinstance(member, StoreBlock) or len(member.shape) == 1:
            return member
        if self._awaits(self.reads(member.op.operands[0])):
            self._close()
        direction = self.directions.of_store(member.op)
        return member if direction is None else _StoreElsewhere(member.op, direction)


class _StoreElsewhere(StoreBlock):
    alone = True

    def __init__(self, op: tt.Store | tt.DescriptorStore, direction: Direction) -> None:
        super().__init__(op)
        self.direction = direction


def _is_computed(value: Value) -> bool:
    op = value.defining_op
    return op is not None and is_virtual(op)
