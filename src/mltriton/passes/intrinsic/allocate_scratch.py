"""allocate-scratch: parts of a thread's scratch memory overlap where they can.

Level: intrinsic, targets whose blocks live in memory. Gives each `tile.scratch` its offset, and the module
`tile.scratch_bytes`. A part is needed from the first to the last operation that accesses memory through its address, or
through an address that was stored in memory of which that is so. Where a loop accesses it and something outside of that
loop does too, it is needed for the whole loop; a part that only one loop accesses is new in each iteration, unless it
is `kept`. Guarantees: parts that are needed at the same time do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mltriton.analysis.placement import Placement, place
from mltriton.dialects import scf, tile, tt
from mltriton.ir.attributes import IntegerAttr
from mltriton.ir.module import Module
from mltriton.ir.operation import Operation, Value
from mltriton.ir.passes import Pass
from mltriton.ir.reaching import reached
from mltriton.ir.types import I32

Loop = scf.For | scf.While


class AllocateScratch(Pass):
    """Say where each part of scratch memory is."""

    name = "allocate-scratch"

    def run(self, module: Module) -> Module:
        total = max((_allocate(op) for op in module.body.block.ops if isinstance(op, tt.Func)), default=0)
        module.attributes["tile.scratch_bytes"] = IntegerAttr(total, I32)
        return module


def _allocate(function: tt.Func) -> int:
    """Place the parts of one function, the largest first; gives the bytes needed in all."""
    parts = [op for op in function.body.block.ops if isinstance(op, tile.Scratch)]
    if not parts:
        return 0
    times = _Times(function)
    needed = {op: Placement(op.bytes, *times.needed(list(_accesses(op.result)), kept=op.kept)) for op in parts}
    total = place(sorted(needed.values(), key=lambda block: -block.bytes))
    for op, block in needed.items():
        op.offset = block.offset
    return total


class _Times:
    """When operations run: numbers in the order of the text."""

    def __init__(self, function: tt.Func) -> None:
        self.function = function
        self.numbers = {op: number for number, op in enumerate(function.walk())}
        self._ends: dict[Operation, int] = {}

    def needed(self, accesses: Sequence[Operation], *, kept: bool) -> tuple[int, int]:
        """The first and the last time at which memory is needed that these operations access."""
        if not accesses:
            return 0, 0
        paths = [self._path(access) for access in accesses]
        common = 0 if kept else min(_shared(paths[0], path) for path in paths)
        holders = {path[common] for path in paths}
        return min(map(self.numbers.__getitem__, holders)), max(map(self._end, holders))

    def _path(self, op: Operation) -> list[Operation]:
        """The loops around an operation, outermost first, and the operation itself."""
        path = [op]
        parent = op.parent_op
        while parent is not None and parent is not self.function:
            if isinstance(parent, Loop):
                path.append(parent)
            parent = parent.parent_op
        return path[::-1]

    def _end(self, op: Operation) -> int:
        """The time of the last operation inside."""
        if not op.regions:
            return self.numbers[op]
        if op not in self._ends:
            self._ends[op] = max(map(self.numbers.__getitem__, op.walk()))
        return self._ends[op]


def _accesses(address: Value) -> Iterator[Operation]:
    """The operations that access memory through an address, or through what is computed from it."""
    for value in reached([address], lambda value: [each for user in value.users for each in _leads_to(user, value)]):
        for user in value.users:
            if not _leads_to(user, value) and not user.pure and not isinstance(user, tile.Prefetch):
                yield user


def _leads_to(user: Operation, value: Value) -> Sequence[Value]:
    """The values by which an operation that has an address lets others access the same memory."""
    if user.pure:
        return user.results
    if isinstance(user, tt.Store | tile.Store):
        return [_part(user.operands[0])] if user.value is value else []
    op = user.parent_op if user.terminator else user
    if isinstance(op, scf.If) and user.terminator:
        return [result for result, given in zip(op.results, user.operands, strict=True) if given is value]
    if isinstance(op, Loop):
        carried = [argument for region in op.regions for argument in region.block.arguments]
        return [each for each in (*carried, *op.results) if each.type is value.type]
    return []


def _part(address: Value) -> Value:
    """The part of scratch memory that an address is computed from."""
    while not isinstance(address.defining_op, tile.Scratch):
        assert address.defining_op is not None, "addresses of scratch memory are stored in scratch memory"
        address = address.defining_op.operands[0]
    return address


def _shared(path: Sequence[Operation], other: Sequence[Operation]) -> int:
    """How many loops two operations have in common."""
    count = 0
    while min(len(path), len(other)) > count + 1 and path[count] is other[count]:
        count += 1
    return count
