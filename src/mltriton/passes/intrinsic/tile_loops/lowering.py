"""One function from the warp level to loops over chunks: walks the program in order and collects loop nests.

Level: warp to intrinsic. Block values stay virtual; what needs a loop is added to the open loop nest, which is written
(`flush`) when something does not fit it. Guarantees: effects keep their order; a value that the rest of the program
needs after its nest has a tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from mltriton.analysis.aliasing import may_alias
from mltriton.dialects import tile
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import MemDescType, TensorType, shape_of
from mltriton.passes.intrinsic.tile_loops.emitter import Emitter, refuse, unknown_buffer
from mltriton.passes.intrinsic.tile_loops.evaluation import Evaluator
from mltriton.passes.intrinsic.tile_loops.footprints import Costs, Footprint
from mltriton.passes.intrinsic.tile_loops.loop_nest_writer import LoopNestWriter
from mltriton.passes.intrinsic.tile_loops.loop_nests import LoopNest, OtherUses
from mltriton.passes.intrinsic.tile_loops.members import (
    Fill,
    Member,
    StoreBlock,
)
from mltriton.passes.intrinsic.tile_loops.nest_regions import Membership
from mltriton.passes.intrinsic.tile_loops.operations import is_virtual, member_of, statement_of
from mltriton.passes.intrinsic.tile_loops.reuse import reuse_tiles
from mltriton.passes.intrinsic.tile_loops.tiles import Tile
from mltriton.targets.base import TargetSpec


class Known:
    """Values that evaluation does not look behind: they have a tile, or the open loop nest will compute them."""

    def __init__(self, e: Evaluator, nest: LoopNest) -> None:
        self.e, self.nest = e, nest

    def __contains__(self, value: Value) -> bool:
        return value in self.nest.produced or value in self.e.tiles or value in self.e.scalars


class Lowering:
    """State of one function: the evaluator, the open loop nest, and the tile that a value is meant for (`homes`).

    Operations with effects, and those that need a nest, are done where they stand (`operations.py`); others are
    evaluated where their results are used.
    """

    def __init__(self, spec: TargetSpec, memberships: Mapping[Operation, Membership]) -> None:
        self.spec = spec
        self.memberships = memberships
        self.membership: Membership | None = None  # of the operation at hand, in a `tile.nest`
        self.opened: Operation | None = None  # the `tile.nest` that the open loop nest began with
        self.e = Evaluator(Emitter(spec.lanes))
        self.nest = LoopNest()
        self.homes: dict[Value, Tile] = {}
        self.stored: set[Operation] = set()  # stores to shared memory whose values were computed there
        self.started: dict[Operation, Tile] = {}  # dots whose sums were stored before them, and where
        self.first_sums: dict[Value, tuple[Value, Value]] = {}  # `first_sums.py`: accumulator -> (is written, zeros)
        self.packed: dict[Any, Any] = {}  # operands of dots in the form that the micro-kernels take

    # Walking

    def block(self, block: Block) -> None:
        """Lower a block's operations but the terminator, into the innermost scope."""
        self.e.block_depth[block] = self.e.emitter.level
        for op in block.ops[:-1]:
            with self.e.located(op.loc):
                self.membership = self.memberships.get(op)
                self.operation(op)
                self.membership = None

    def operation(self, op: Operation) -> None:
        """Lower one operation."""
        rule = statement_of(op.__class__)
        if op.regions:
            for result in op.results:
                if isinstance(result.type, MemDescType):
                    raise unknown_buffer(result)
        if self.membership is None and member_of(op) is not None:
            raise refuse(op, f"{op.name} stands in no loop nest: form-nests comes before match-target-size")
        if rule is not None:
            rule(self, op)
        elif not (op.pure and (is_virtual(op) or not op.regions)):
            raise refuse(op, f"{op.name} is not supported on a target whose blocks live in memory")

    # Nests

    def footprint(self, member: Member) -> Footprint:
        """What a member reads."""
        found = Footprint(aliases=self.e.aliases)
        known = Known(self.e, self.nest)
        for value, coordinates in member.inputs():
            found.follow(value, coordinates, known)
        return found

    def reads(self, value: Value) -> Footprint:
        """What the evaluation of a value reads."""
        found = Footprint(aliases=self.e.aliases)
        found.follow(value, tuple(range(len(shape_of(value.type)))), Known(self.e, self.nest))
        return found

    def add(self, member: Member) -> None:
        """Append to the open loop nest, or to a new one: what stands in a `tile.nest` goes to that one, what dots and
        control flow store to the open one if it fits there.
        """
        footprint, membership = self.footprint(member), self.membership
        self.enter()
        if not self.nest.accepts(member, footprint):
            if membership is not None:
                raise refuse(membership.nest, "members of a loop nest do not share their rows")
            self.flush()
        self.nest.add(member, footprint)
        if membership is not None:
            first, self.nest.levels[-1] = self.nest.levels[-1], membership.loop
            if first > membership.loop:
                message = "a member of a loop nest runs too early: in loop {} of a row, not in loop {}"
                raise refuse(membership.nest, message.format(membership.loop, first))

    def fits(self, member: Member) -> bool:
        """Whether a member can do what it does in the loops of its `tile.nest`."""
        self.enter()
        footprint, membership = self.footprint(member), self.membership
        fits = self.nest.accepts(member, footprint)
        return membership is None or (fits and self.nest.level(member, footprint) <= membership.loop)

    def enter(self) -> None:
        """Begin the `tile.nest` in which the operation at hand stands."""
        if self.membership is not None and self.membership.nest is not self.opened:
            self.flush()
            self.opened = self.membership.nest

    def keep(self, op: tile.Fill) -> None:
        """Let a loop of the nest in which the operation at hand stands keep a block for later loops of a row."""
        assert self.membership is not None
        self.enter()
        lane = len(self.nest.outer) if self.nest.members else -1
        if op.row.count(lane) != 1 or max(op.row) > lane:
            raise refuse(op, "what is kept for a row follows the loops of the members before it")
        self.nest.kept.append((op.source, op.row, self.membership.loop))

    def flush(self) -> None:
        """Write the open loop nest."""
        nest, self.nest, self.opened = self.nest, LoopNest(), None
        if not nest.members:
            return
        self._save_results(nest)
        reuse_tiles(self, nest)
        self._write(nest)
        for member in nest.members:
            if isinstance(member, Fill) and member.saves:
                self.settle(member.value, member.tile)

    def _write(self, nest: LoopNest) -> None:
        """The loops of a nest, in two versions where masks are expensive and loops are not split where they end."""
        writer = LoopNestWriter(self.e, nest)
        if self.spec.cheap_masks or writer.splits_loops:
            writer.write()
            return
        scalars = [v for member in nest.members for v in member.produces if not isinstance(v.type, TensorType)]
        accesses = [load for footprint in nest.prints for load, _ in footprint.loads]
        accesses += [member.op for member in nest.members if isinstance(member, StoreBlock)]

        def write() -> list[Value]:
            LoopNestWriter(self.e, nest).write()
            return [self.e.scalars[value] for value in scalars]

        from mltriton.passes.intrinsic.tile_loops.fast_paths import with_and_without_masks  # Not where masks are cheap.

        results = with_and_without_masks(self, accesses, write)
        self.e.scalars.update(zip(scalars, results, strict=True))

    def settle(self, value: Value, tile: Tile) -> None:
        """A tile holds `value` from now on, and nothing else."""
        if tile.owner is not None and tile.owner is not value and self.e.tiles.get(tile.owner) is tile:
            del self.e.tiles[tile.owner]
        tile.owner = value
        self.e.tiles[value] = tile

    def _save_results(self, nest: LoopNest) -> None:
        """Give tiles to what the nest computes and others need."""
        others = OtherUses(nest.members)
        for member in nest.members:
            if isinstance(member, Fill):
                continue
            for value in member.produces:
                if not isinstance(value.type, TensorType) or value in member.saves or not value.users:
                    continue
                if not member.in_rows or not others.are_none(value):
                    member.saves[value] = self.e.scratch.tile(value.type.shape, value.type.element, value)

    # Materialising

    def tile_of(self, value: Value) -> Tile | None:
        """The tile that holds `value` once the open loop nest is written, if there is one."""
        if value in self.nest.produced:
            return self.nest.members[self.nest.produced[value]].saves.get(value)
        return self.e.tiles.get(value)

    def force(self, value: Value) -> Tile:
        """A tile that holds `value` once the open loop nest is written."""
        value = self.e.aliases.get(value, value)
        found = self.e.tiles.get(value)
        if found is not None:
            return found
        type = cast(TensorType, value.type)
        tile = self.e.scratch.tile(type.shape, type.element, value)
        if value in self.nest.produced:
            return self.nest.members[self.nest.produced[value]].saves.setdefault(value, tile)
        self.add(Fill(value, tile, self.e.emitter.loc, is_new=True))
        return tile

    def costs(self) -> Costs:
        """Costs as things stand."""
        return Costs(self.e.tiles)

    def finish(self, values: Iterable[Value]) -> None:
        """Write the open loop nest if one of the values needs what it computes."""
        if self.nest.members and any(self.awaits(self.reads(value)) for value in values):
            self.flush()

    def awaits(self, found: Footprint) -> bool:
        """Whether what is read is still to be computed by the open loop nest."""
        return any(leaf in self.nest.produced for leaf, _ in found.leaves)

    def needs_flush(self, op: Operation) -> bool:
        """Whether a scalar operation must wait for the open loop nest."""
        if not self.nest.members:
            return False
        if any(member.store is not None and may_alias(op, member.store) for member in self.nest.members):
            return True
        found = [self.reads(operand) for operand in op.operands]
        if any(map(self.awaits, found)):
            return True
        stores = [member.store for member in self.nest.members if member.store is not None]
        return any(may_alias(load, store) for print in found for load, _ in print.loads for store in stores)
