"""guard-block-io: where a running kernel alone can judge matrices, code with 2D block accesses and code without.

Level: intrinsic, targets with 2D block accesses, after normalize-block-pointers. What a target leaves to the kernel
(`RunTimeChecks.guards`: of addresses and sizes that are loaded, or differ from program to program) is computed as soon
as all numbers are there. What follows in the same body, up to the last access concerned, becomes a branch: the accesses
of its first region that have nothing left to check get `ttig.block_io`, those without it go element by element.
Guarantees: no loop checks what is known before it; both regions compute the same; where warps meet in a function, all
take the same region: what differs between them is not asked, and the access goes element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from mltriton.analysis.block_io import BlockOperation
from mltriton.analysis.warp_uniformity import OWN
from mltriton.dialects import arith, gpu, scf, tt, ttig
from mltriton.dialects.scf_flow import decided_by, handed_from
from mltriton.dialects.ttig import BLOCK_IO
from mltriton.ir.attributes import IntegerAttr, UnitAttr
from mltriton.ir.builder import Builder
from mltriton.ir.module import Module, is_warp_level
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.passes import Pass
from mltriton.ir.types import I1, I64, MemDescType
from mltriton.passes.intrinsic.hoist_block_offsets import Hoisting
from mltriton.targets.base import MatrixGuard, Relation
from mltriton.targets.registry import num_warps_of, spec_of

_Guards = frozenset[MatrixGuard]
_NONE: _Guards = frozenset()
_MAKERS = (tt.MakeTensorPtr, tt.MakeTensorDesc)
_ORDERS = {Relation.MULTIPLE: "eq", Relation.AT_LEAST: "sge", Relation.AT_MOST: "sle"}


class GuardBlockIO(Pass):
    """Ask of matrices while the kernel runs."""

    name = "guard-block-io"

    def run(self, module: Module) -> Module:
        limits = spec_of(module).block_load
        if limits is None or limits.run_time_checks is None:
            return module
        own = (gpu.SubgroupId, *OWN) if is_warp_level(module) else (gpu.SubgroupId,)
        for function in module.body.block.ops:
            if isinstance(function, tt.Func):
                checks_of = limits.run_time_checks(function, num_warps_of(module))
                found = {op: checks_of(op, None).guards for op in function.walk() if isinstance(op, BlockOperation)}
                guards: dict[Operation, Sequence[MatrixGuard]] = {
                    op: checked for op, checked in found.items() if checked
                }
                if ttig.meets(function):
                    guards = {op: checked for op, checked in guards.items() if not _differ(checked, own)}
                if guards:
                    _Versions(guards).block(function.body.block, _NONE, _NONE)
        return module


def _differ(guards: Sequence[MatrixGuard], own: tuple[type[Operation], ...]) -> bool:
    """Whether what is asked depends on the warp that asks: on what one of the operations `own` gives."""
    found = [value for guard in guards for value in guard.values]
    seen = set(found)
    while found:
        value = found.pop()
        if isinstance(value.defining_op, own):
            return True
        inputs = [other for other in (*decided_by(value), *(handed_from(value) or ())) if other not in seen]
        found += inputs
        seen.update(inputs)
    return False


class _Versions:
    """Rewrites the blocks of one function; `guards` are those of each access."""

    def __init__(self, guards: dict[Operation, Sequence[MatrixGuard]]) -> None:
        self.guards = guards

    def block(self, block: Block, held: _Guards, broken: _Guards) -> None:
        """Where the guards `held` hold and `broken` do not."""
        number = 0
        while number < len(block.ops):
            op = block.ops[number]
            if self.askable(block.ops[number:], [op], held, broken):
                number = self.split(block, number, held, broken)
                continue
            if isinstance(op, BlockOperation) and op in self.guards and held.issuperset(self.guards[op]):
                op.attributes = op.attributes | {BLOCK_IO: UnitAttr()}
            for inner in op.blocks:
                self.block(inner, held, broken)
            number += 1

    def askable(
        self, behind: Sequence[Operation], ops: Iterable[Operation], held: _Guards, broken: _Guards
    ) -> tuple[Sequence[MatrixGuard], Hoisting] | None:
        """What accesses in `ops` still need checked that can be computed in front of the operations `behind`."""
        asking = (self.guards.get(inner, ()) for op in ops for inner in op.walk())
        waiting = dict.fromkeys(guard for guards in asking if broken.isdisjoint(guards) for guard in guards)
        hoisting = Hoisting(behind if waiting else ())
        reached = [guard for guard in waiting if guard not in held and all(map(hoisting.reaches, guard.values))]
        return (reached, hoisting) if reached else None

    def split(self, block: Block, first: int, held: _Guards, broken: _Guards) -> int:
        """Make two versions of what follows; gives the number of the operation behind them."""
        found = self.askable(block.ops[first:], block.ops[first:], held, broken)
        assert found is not None
        checked, hoisting = found
        last = max(i for i in range(first, len(block.ops)) if self._checks(block.ops[i], checked))
        if any(isinstance(value.type, MemDescType) for value in _used_later(block.ops[first : last + 1])):
            last = len(block.ops) - 2  # No branch gives a block in shared memory.
        ops, after = block.ops[first : last + 1], block.ops[last + 1]
        for value in _used_later(ops):
            hoisting.reaches(value)
        hoisting.move_before(ops[0])
        ops = block.ops[block.position(ops[0]) : block.position(after)]
        results = _behind(ops, after)
        builder = Builder().before(ops[0])
        holds = reduce(lambda x, y: builder.emit(arith.AndI, x, y), [_holds(builder, guard) for guard in checked])
        regions = [self.version(ops, results) for _ in range(2)]
        types = [value.type for value in results]
        made = builder.insert(scf.If([holds], types, {}, regions, ops[0].loc))
        for old, new in zip(results, made.results, strict=True):
            new.hint = old.hint
            old.replace_by(new)
        for op in reversed(ops):
            op.erase()
        self.block(regions[0].block, held.union(checked), broken)
        self.block(regions[1].block, held, broken.union(checked))
        return block.ops.index(made) + 1

    def _checks(self, op: Operation, checked: Sequence[MatrixGuard]) -> bool:
        return any(guard in checked for inner in op.walk() for guard in self.guards.get(inner, ()))

    def version(self, ops: Sequence[Operation], results: Sequence[Value]) -> Region:
        """A copy of operations that gives their results; the copies of accesses need the same of the copies' values."""
        values: dict[Value, Value] = {}
        builder = Builder().at_end(Block())
        for op in ops:
            copy = builder.insert(op.clone(values))
            for old, new in zip(op.walk(), copy.walk(), strict=True):
                if old in self.guards:
                    self.guards[new] = [guard.of(values) for guard in self.guards[old]]
        builder.create(scf.Yield, [values[value] for value in results], result_types=[])
        return Region([builder.block])


def _behind(ops: Sequence[Operation], after: Operation) -> list[Value]:
    """The results of operations that are used later. Block pointers and descriptors are made again behind them."""
    needed = _used_later(ops)
    while maker := next((op for value in needed if isinstance(op := value.defining_op, _MAKERS)), None):
        maker.result.replace_by(Builder().before(after).insert(maker.clone({})).result)
        needed = _used_later(ops)
    return needed


def _used_later(ops: Sequence[Operation]) -> list[Value]:
    """Results of operations in one block that others use."""
    inside = {inner for op in ops for inner in op.walk()}
    return [value for op in ops for value in op.results if not inside.issuperset(value.users)]


# What is checked.


def _holds(builder: Builder, guard: MatrixGuard) -> Value:
    """Whether the hardware takes a matrix, an i1."""
    row, column = (-1, -2) if guard.transposed else (-2, -1)
    numbers, size = _Numbers(builder), guard.size
    fields = {
        "base": lambda: builder.emit(tt.PtrToInt, guard.base, result_types=[I64]),
        "width": lambda: numbers.times(guard.shape[column], size),
        "height": lambda: numbers.times(guard.shape[row], 1),
        "pitch": lambda: numbers.times(guard.strides[row], size),
    }
    holds: list[Value] = []
    for field, relation, bound in guard.limits:
        checked = [fields[field]()]
        if field == "base":  # The matrices of a tensor start so many bytes apart.
            checked += [numbers.times(stride, size) for stride in guard.strides[:-2]]
        for number in checked:
            holds.append(numbers.related(number, relation, fields[bound]() if isinstance(bound, str) else bound))
    holds += [numbers.related(numbers.times(at, 1), Relation.MULTIPLE, guard.step) for at in guard.columns]
    return reduce(lambda x, y: builder.emit(arith.AndI, x, y), holds)


class _Numbers:
    """Arithmetic in 64 bits, each product and constant once."""

    def __init__(self, builder: Builder) -> None:
        self._emit = builder.emit
        self._made: dict[object, Value] = {}

    def _constant(self, number: int) -> Value:
        if number not in self._made:
            self._made[number] = self._emit(arith.Constant, value=IntegerAttr(number, I64))
        return self._made[number]

    def times(self, value: Value, factor: int) -> Value:
        if (value, factor) not in self._made:
            wide = value if value.type is I64 else self._emit(arith.ExtSI, value, result_types=[I64])
            made = wide if factor == 1 else self._emit(arith.MulI, wide, self._constant(factor))
            self._made[value, factor] = made
        return self._made[value, factor]

    def related(self, value: Value, relation: Relation, bound: Value | int) -> Value:
        if relation is Relation.MULTIPLE:
            assert isinstance(bound, int)
            value, bound = self._emit(arith.AndI, value, self._constant(bound - 1)), 0
        end = self._constant(bound) if isinstance(bound, int) else bound
        return self._emit(arith.CmpI, value, end, predicate=_ORDERS[relation], result_types=[I1])
