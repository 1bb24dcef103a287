"""Writing the program of one warp: loops over the warps, and buffers between them.

Level: warp. Takes a function, its pieces and the plan for what they need (`plan.py`). Guarantees: operations that are
the same for all warps stand outside the loops; buffers are allocated at the start of the function.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from mltriton.analysis.effects import is_needed
from mltriton.dialects import arith, gpu, scf, tt, ttg, ttig
from mltriton.ir.builder import Builder
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.types import I1, I32, INDEX, MemDescType, TensorType
from mltriton.layouts import tiling
from mltriton.passes.warp.serialize.buffers import Buffer
from mltriton.passes.warp.serialize.carrying import carry_sums
from mltriton.passes.warp.serialize.grid import Axis, Grid, grid_of, is_shareable
from mltriton.passes.warp.serialize.plan import Plan
from mltriton.passes.warp.serialize.prefetching import prefetches_of
from mltriton.passes.warp.serialize.sharing import cut_of
from mltriton.passes.warp.serialize.units import Cut, ForkUnit, Piece
from mltriton.passes.warp.serialize.varying import Varying
from mltriton.targets.base import TargetSpec

Values = dict[Value, Value]


def serialized(function: tt.Func, warps: int, spec: TargetSpec) -> tt.Func:
    """A function whose `warps` warps take turns."""
    body = function.body.block
    allocations = _take_allocations(body)
    _one_id(body)
    cut = cut_of(function, warps, spec)
    varying = Varying(cut, body)
    plan = Plan(cut, varying)
    prefetches = prefetches_of(plan)
    plan.place()
    return Writer(cut, plan, prefetches, grid_of(body, warps), warps).function(function, allocations)


def _take_allocations(body: Block) -> list[ttg.LocalAlloc]:
    """Take the allocations out of a function; initial values are stored where they stood."""
    found = [op for inner in body.ops for op in inner.walk() if isinstance(op, ttg.LocalAlloc)]
    for op in found:
        if op.init is not None:
            type = op.result.type
            assert isinstance(type, MemDescType)
            op.result.type = MemDescType(type.shape, type.element, type.encoding)
            Builder().before(op).create(ttg.LocalStore, op.init, op.result)
            op.set_operands([], (0,))
        op.detach()
    return found


def _one_id(body: Block) -> None:
    """Let one operation, at the start of the function, give the warp's id, and one its i32."""
    found = [op for inner in body.ops for op in inner.walk() if isinstance(op, gpu.SubgroupId)]
    if not found:
        return
    builder = Builder().before(body.ops[0])
    index = builder.emit(gpu.SubgroupId)
    number = builder.emit(arith.IndexCast, index, result_types=[I32])
    for op in found:
        for user in list(op.result.users):
            if isinstance(user, arith.IndexCast) and user.result.type is I32:
                user.replace_by([number])
        op.replace_by([index])


class Writer:
    """Writes one function; `outside` maps old values that are the same for all warps to new ones."""

    def __init__(
        self, cut: Cut, plan: Plan, prefetches: dict[Piece, list[tt.Store]], grid: Grid | None, warps: int
    ) -> None:
        self.cut = cut
        self.grid = grid
        self.plan = plan
        self.prefetches = prefetches
        self.warps = warps
        self.builder = Builder()
        self.outside: Values = {}
        self.start = Block()
        self.memory: dict[Buffer, Value] = {}

    def function(self, function: tt.Func, allocations: Sequence[ttg.LocalAlloc]) -> tt.Func:
        """The new function."""
        old = function.body.block
        new = Block([argument.type for argument in old.arguments])
        self._map(old.arguments, new.arguments)
        for op in allocations:
            self.start.append(op.clone(self.outside))
        with self.builder.inside(new):
            self._block(old)
            self.builder.insert(old.terminator.clone(self.outside))
        for op in self.start.ops:
            op.block = new
        new.ops[:0] = self.start.ops
        carry_sums(new)
        return tt.Func((), (), function.attributes, [Region([new])], function.loc)

    def _map(self, old: Sequence[Value], new: Sequence[Value]) -> None:
        for before, after in zip(old, new, strict=True):
            self.outside[before] = after
            after.hint = after.hint or before.hint

    def _block(self, old: Block) -> None:
        """All units of a block but its terminator."""
        for unit in self.cut.units[old]:
            if isinstance(unit, Piece):
                self._piece(unit)
            else:
                self._fork(unit)

    # Pieces

    def _piece(self, piece: Piece) -> None:
        """What is the same for all warps, then a loop over the warps for the rest."""
        for op in piece.ops:
            if self.plan.varying.is_uniform(op, piece):
                self.builder.insert(op.clone(self.outside))
        work = self.plan.work(piece)
        copies = self.plan.copies.get(piece, [])
        if not copies and not any(is_needed(op) or self._keeps(op) for op in work):
            return
        loc = work[0].loc if work else piece.block.terminator.loc
        with self.builder.at(loc):
            if self.warps == 1:
                self._turn(piece, work, self._number(0))
                return
            outer = self.grid.outer_axis(piece, self.plan.varying, self.plan.kept) if self.grid else None
            if self.grid is not None and outer is not None and piece.block.parent_op not in self.cut.dealt:
                self._grid(piece, work, self.grid, outer)
                return
            with self._count("warp", self.warps) as warp:
                self._turn(piece, work, warp)

    @contextmanager
    def _count(self, hint: str, count: int) -> Generator[Value]:
        """A loop from 0 to `count`."""
        body = Block([I32])
        body.arguments[0].hint = hint
        bounds = [self._number(0), self._number(count), self._number(1)]
        with self.builder.inside(body):
            yield body.arguments[0]
            self.builder.create(scf.Yield, [], result_types=[])
        self.builder.create(scf.For, *bounds, [], result_types=[], regions=[Region([body])])

    def _grid(self, piece: Piece, work: Sequence[Operation], grid: Grid, outer: Axis) -> None:
        """A piece for columns (or rows) of warps: what is the same for a column's warps, then a loop over them."""
        varying, kept = self.plan.varying, self.plan.kept
        sizes = {Axis.COLUMN: grid.columns, Axis.ROW: grid.rows}
        inner = Axis.BOTH & ~outer
        with self._count(f"warp_{outer.name}".lower(), sizes[outer]) as first:
            shared = {**self.outside, **{number: first for number, axis in grid.numbers.items() if axis is outer}}
            for value in self.plan.needs.get(piece, ()):
                if grid.axis(value, varying, kept) is outer:
                    self._fetch(value, shared, first)
            for op in work:
                if is_shareable(op, varying) and all(grid.axis(v, varying, kept) is outer for v in op.results):
                    self._copy(op, shared, first)
            with self._count(f"warp_{inner.name}".lower(), sizes[inner]) as second:
                row, column = (second, first) if outer is Axis.COLUMN else (first, second)
                above = self.builder.emit(arith.MulI, row, self._number(grid.columns))
                warp = self.builder.emit(arith.AddI, above, column)
                mine = {number: second for number, axis in grid.numbers.items() if axis is inner}
                self._one_turn(piece, work, warp, {**shared, **mine})

    def _keeps(self, op: Operation) -> bool:
        return any(result in self.plan.kept for result in op.results)

    def _turn(self, piece: Piece, work: Sequence[Operation], warp: Value) -> None:
        """A piece as one warp does it; of a loop that counts for all warps, if the warp has an iteration left."""
        loop = piece.block.parent_op
        if not isinstance(loop, scf.For) or loop not in self.cut.dealt:
            self._one_turn(piece, work, warp, dict(self.outside))
            return
        ahead = self.builder.emit(arith.MulI, warp, self._number(self.cut.dealt[loop]))
        counter = self.builder.emit(arith.AddI, self.outside[loop.counter], ahead)
        counter.hint = loop.counter.hint
        is_left = self.builder.emit(arith.CmpI, counter, self.outside[loop.upper], predicate="slt", result_types=[I1])
        then = Block()
        with self.builder.inside(then):
            self._one_turn(piece, work, warp, {**self.outside, loop.counter: counter})
            self.builder.create(scf.Yield, [], result_types=[])
        self.builder.create(scf.If, is_left, result_types=[], regions=[Region([then]), Region([])])

    def _one_turn(self, piece: Piece, work: Sequence[Operation], warp: Value, values: Values) -> None:
        """A piece as one warp does it: what it needs is fetched first, and what others need is stored last."""
        for value in self.plan.needs.get(piece, ()):
            self._fetch(value, values, warp)
        for store in self.prefetches.get(piece, ()):
            with self.builder.at(store.loc):
                self._fetch(store.ptr, values, warp)
                self.builder.create(ttig.Prefetch, values[store.ptr], None, result_types=[], write=True)
        for op in work:
            if not op.results or op.results[0] not in values:
                self._copy(op, values, warp)
        for result in (result for op in work for result in op.results):
            buffer = self.plan.kept.get(result)
            if buffer is not None:
                self._store(values[result], buffer, warp)
        copies = self.plan.copies.get(piece, [])
        for copy in copies:
            self._store(values[copy.source], self.plan.kept[copy.slot], warp)

    def _copy(self, op: Operation, values: Values, warp: Value) -> None:
        """An operation, for a warp."""
        with self.builder.at(op.loc):
            if isinstance(op, gpu.SubgroupId):
                values[op.result] = self.builder.emit(arith.IndexCast, warp, result_types=[INDEX])
            elif isinstance(op, arith.IndexCast) and isinstance(op.operands[0].defining_op, gpu.SubgroupId):
                values[op.result] = warp
            else:
                self.builder.insert(op.clone(values))

    def _fetch(self, value: Value, values: Values, warp: Value) -> None:
        """A value of another piece: from its buffer, or computed again."""
        if value in values:
            return
        buffer = self.plan.kept.get(value)
        if buffer is not None and value not in self.plan.only_written:
            values[value] = self._load(value, buffer, warp)
            return
        op = value.defining_op
        assert op is not None
        for operand in op.operands:
            self._fetch(operand, values, warp)
        self._copy(op, values, warp)

    # Buffers

    def _number(self, number: int) -> Value:
        return arith.integer(self.builder, number)

    def _window(self, buffer: Buffer, warp: Value) -> Value:
        """A warp's part of a buffer; one element for a scalar."""
        root = buffer.root
        type = root.type
        shape = type.shape if isinstance(type, TensorType) else (1,)
        element = type.element if isinstance(type, TensorType) else type
        if root not in self.memory:
            whole = MemDescType((self.warps, *shape), element)
            self.memory[root] = Builder(self.start, self.builder.loc).emit(ttg.LocalAlloc, None, result_types=[whole])
        offsets = [warp, *(self._number(0) for _ in shape)]
        return self.builder.emit(
            ttg.MemDescSubview, self.memory[root], offsets, result_types=[MemDescType(shape, element)]
        )

    def _load(self, value: Value, buffer: Buffer, warp: Value) -> Value:
        window = self._window(buffer, warp)
        if isinstance(value.type, TensorType):
            return self.builder.emit(ttg.LocalLoad, window, result_types=[value.type])
        block = self.builder.emit(ttg.LocalLoad, window, result_types=[_one(value)])
        return self.builder.emit(tt.Unsplat, block, result_types=[value.type])

    def _store(self, value: Value, buffer: Buffer, warp: Value) -> None:
        if not isinstance(value.type, TensorType):
            value = self.builder.emit(tt.Splat, value, result_types=[_one(value)])
        self.builder.create(ttg.LocalStore, value, self._window(buffer, warp))

    # Forks

    def _fork(self, fork: ForkUnit) -> None:
        op = fork.op
        with self.builder.at(op.loc):
            if isinstance(op, scf.For):
                self._for(fork, op)
            elif isinstance(op, scf.While):
                self._while(fork, op)
            else:
                self._if(fork, op)

    def _same_for_all(self, value: Value, needs: Piece) -> Value:
        """A scalar on which all warps agree; asked of warp 0 where it is computed for each."""
        if value in self.outside:
            return self.outside[value]
        values, zero = dict(self.outside), self._number(0)
        for needed in self.plan.needs.get(needs, ()):
            self._fetch(needed, values, zero)
        return values[value]

    def _uniform(self, values: Sequence[Value]) -> list[int]:
        """Which of some values are carried as they are."""
        return [number for number, value in enumerate(values) if value not in self.plan.varying]

    def _ends(self, values: Sequence[Value], kept: Sequence[int]) -> list[Value]:
        return [self.outside[values[number]] for number in kept]

    def _inside(self, old: Block, kept: Sequence[int], first: int = 0) -> Block:
        """A new block with the first arguments of an old one and some of the others."""
        arguments = [*old.arguments[:first], *(old.arguments[first + number] for number in kept)]
        new = Block([argument.type for argument in arguments])
        self._map(arguments, new.arguments)
        return new

    def _for(self, fork: ForkUnit, op: scf.For) -> None:
        bounds = [self._same_for_all(bound, fork.needs) for bound in (op.lower, op.upper, op.step)]
        kept = self._uniform(op.carried)
        old = op.body.block
        body = self._inside(old, kept, 1)
        inits = self._ends(op.inits, kept)
        with self.builder.inside(body):
            self._block(old)
            self.builder.create(scf.Yield, self._ends(old.terminator.operands, kept), result_types=[])
        types = [value.type for value in inits]
        made = scf.For([*bounds, *inits], types, op.attributes, [Region([body])], op.loc, (1, 1, 1, len(inits)))
        self.builder.insert(made)
        self._map([op.results[number] for number in kept], made.results)

    def _if(self, fork: ForkUnit, op: scf.If) -> None:
        condition = self._same_for_all(op.condition, fork.needs)
        kept = self._uniform(op.results)
        regions: list[Region] = []
        for region in op.regions:
            made = Region([])
            for old in region.blocks:
                side = made.add(Block())
                with self.builder.inside(side):
                    self._block(old)
                    self.builder.create(scf.Yield, self._ends(old.terminator.operands, kept), result_types=[])
            regions.append(made)
        types = [op.results[number].type for number in kept]
        new = self.builder.insert(scf.If([condition], types, op.attributes, regions, op.loc, op.segments))
        self._map([op.results[number] for number in kept], new.results)

    def _while(self, fork: ForkUnit, op: scf.While) -> None:
        first, second = op.before.block, op.after.block
        carried, passed = self._uniform(first.arguments), self._uniform(second.arguments)
        inits = self._ends(op.inits, carried)
        before, after = self._inside(first, carried), self._inside(second, passed)
        condition, *values = first.terminator.operands
        with self.builder.inside(before):
            self._block(first)
            go_on = self._same_for_all(condition, self.cut.conditions[first])
            self.builder.create(scf.Condition, go_on, self._ends(values, passed), result_types=[])
        with self.builder.inside(after):
            self._block(second)
            self.builder.create(scf.Yield, self._ends(second.terminator.operands, carried), result_types=[])
        types = [value.type for value in after.arguments]
        regions = [Region([before]), Region([after])]
        made = self.builder.insert(scf.While(inits, types, op.attributes, regions, op.loc, (len(inits),)))
        self._map([op.results[number] for number in passed], made.results)


def _one(value: Value) -> TensorType:
    """The type of a block that holds a scalar."""
    return TensorType((1,), value.type, tiling.replicated((1,), 1))
