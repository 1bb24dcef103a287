"""warp_uniformity: what differs between the warps of a program, and what some warps do not have.

Level: tt, of a warp-level kernel. For each value a `Fact`: the constant that it is on each warp, where that is known
(every operation is folded once for each warp id); which operation makes it differ between warps, if one does; and on
which warps it is missing, because a result across warps goes to others only (`dst_warps`). Facts follow operands and
control flow: what is assigned under a condition that depends on the warp depends on it, too. `analyse` calls a visitor
for each operation with its `Context`: the warps that may come there, and the condition or loop that not all warps pass
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

from mltriton.dialects import arith, gpu, scf, tt, ttg
from mltriton.ir.attributes import Attribute, DenseAttr, IntegerAttr
from mltriton.ir.constants import constant_of
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import INDEX, IndexType, IntegerType, element_type
from mltriton.records import record

Missing = Mapping[int, Operation]  # warp -> the operation across warps whose result it does not receive


@record(frozen=True)
class Fact:
    """What is known of a value; a tuple has an entry for each warp.

    `varies`: the operation that makes the value differ between warps; None where all warps have the same.
    """

    constants: tuple[Attribute | None, ...]
    varies: Operation | None = None
    missing: Missing = field(default_factory=dict[int, Operation])

    def is_uniform(self, warps: Iterable[int]) -> bool:
        """Whether these warps have the same value."""
        if self.varies is None:
            return True
        found = {self.constants[warp] for warp in warps}
        return len(found) <= 1 and None not in found

    def number(self, warp: int) -> int | None:
        """The integer that the value is on a warp (for a block, that every element is); None where it is not known."""
        constant = self.constants[warp]
        if isinstance(constant, IntegerAttr):
            return constant.value
        if isinstance(constant, DenseAttr) and constant.is_splat:
            return int(constant.splat)
        return None


@record(frozen=True)
class Context:
    """Where control flow stands: the warps that may come here; the operation after whose condition not all of the
    program's warps do the same, and what made that condition differ.
    """

    active: frozenset[int]
    divergent: Operation | None = None
    cause: Operation | None = None

    def under(self, op: Operation, condition: Fact) -> Context:
        """Inside a region of `op`."""
        if self.divergent is not None or condition.is_uniform(self.active):
            return self
        return replace(self, divergent=op, cause=condition.varies)


Facts = dict[Value, Fact]
Visitor = Callable[[Operation, Context, Facts], None]


def analyse(function: tt.Func, num_warps: int, visit: Visitor) -> None:
    """Find the facts of a function's values and visit its operations, in order."""
    walk = _Walk(num_warps, visit)
    for argument in function.body.block.arguments:
        walk.facts[argument] = walk.unknown()
    walk.block(function.body.block, Context(frozenset(range(num_warps))))


class _Walk:
    """Walks blocks in order. Inside a loop it goes round without visiting until the facts stay as they are."""

    def __init__(self, num_warps: int, visit: Visitor) -> None:
        self.num_warps = num_warps
        self.visit = visit
        self.visiting = True
        self.facts: Facts = {}

    def unknown(self, varies: Operation | None = None, missing: Missing | None = None) -> Fact:
        """A value of which nothing is known but these."""
        return Fact((None,) * self.num_warps, varies, missing or {})

    def block(self, block: Block, context: Context) -> None:
        """The operations of a block, the terminator included."""
        for op in block.ops:
            if self.visiting:
                self.visit(op, context, self.facts)
            flow = FLOW.get(type(op))
            if flow is not None:
                flow(self, op, context)
            else:
                for result in op.results:
                    self.facts[result] = self.of_result(op)

    def of(self, values: Sequence[Value]) -> list[Fact]:
        """The facts of values."""
        return [self.facts[value] for value in values]

    def of_result(self, op: Operation) -> Fact:
        """What an operation without control flow gives."""
        source = SOURCES.get(type(op))
        if source is not None:
            return source(self, op)
        operands = self.of(op.operands)
        varies = next((fact.varies for fact in operands if fact.varies is not None), None)
        missing = _selected(op, operands) if isinstance(op, arith.Select) else _union(operands)
        constants = self.folded(op, operands, varies)
        return Fact(constants, None if _all_equal(constants) else varies, missing)

    def folded(self, op: Operation, operands: Sequence[Fact], varies: Operation | None) -> tuple[Attribute | None, ...]:
        """What the operation gives on each warp, where its operands are known there."""
        if isinstance(op, arith.Constant):
            return (constant_of(op.result),) * self.num_warps
        kind = element_type(op.results[0].type) if len(op.results) == 1 else None
        if not op.pure or op.regions or not operands or not isinstance(kind, IntegerType | IndexType):
            return (None,) * self.num_warps
        if varies is None:
            return (_folded(op, [fact.constants[0] for fact in operands]),) * self.num_warps
        return tuple(_folded(op, [fact.constants[warp] for fact in operands]) for warp in range(self.num_warps))

    # Control flow

    def settle(self, arguments: Sequence[Value], inits: Sequence[Fact], once: Callable[[], Sequence[Fact]]) -> None:
        """Go round a loop until the facts of its arguments hold for every iteration."""
        visiting, self.visiting = self.visiting, False
        current = list(inits)
        while True:
            self.facts.update(zip(arguments, current, strict=True))
            joined = [join(a, b) for a, b in zip(current, once(), strict=True)]
            if joined == current:
                break
            current = joined
        self.visiting = visiting
        self.facts.update(zip(arguments, current, strict=True))

    def for_loop(self, op: scf.For, context: Context) -> None:
        bounds = self.of(op.operands[:3])
        trips = next((fact for fact in bounds if not fact.is_uniform(context.active)), self.unknown())
        inside = context.under(op, trips)
        body = op.body.block
        self.facts[op.counter] = self.unknown(trips.varies, _union(bounds))
        inits = self.of(op.inits)

        def once() -> Sequence[Fact]:
            self.block(body, inside)
            return self.of(body.terminator.operands)

        self.settle(op.carried, inits, once)
        ends = once()
        for result, init, end in zip(op.results, inits, ends, strict=True):
            self.facts[result] = self.tainted(join(init, end), trips)

    def while_loop(self, op: scf.While, context: Context) -> None:
        before, after = op.before.block, op.after.block
        inits = self.of(op.inits)

        def once(inside: Context = context) -> Sequence[Fact]:
            self.block(before, inside)
            self.facts.update(zip(after.arguments, self.of(before.terminator.operands[1:]), strict=True))
            self.block(after, inside)
            return self.of(after.terminator.operands)

        self.settle(before.arguments, inits, once)
        condition = self.facts[before.terminator.operands[0]]
        inside = context.under(op, condition)
        once(inside)
        for result, passed in zip(op.results, self.of(before.terminator.operands[1:]), strict=True):
            uniform = condition.is_uniform(context.active)
            self.facts[result] = passed if uniform else self.tainted(passed, condition)

    def branch(self, op: scf.If, context: Context) -> None:
        condition = self.facts[op.condition]
        inside = context.under(op, condition)
        ends: list[Sequence[Fact]] = []
        for wanted, region in zip((1, 0), op.regions, strict=True):
            taken = [warp for warp in context.active if condition.number(warp) in (None, wanted)]
            if region.blocks:
                self.block(region.block, replace(inside, active=frozenset(taken)))
                ends.append(self.of(region.block.terminator.operands))
        for index, result in enumerate(op.results):
            self.facts[result] = self.chosen(condition, ends[0][index], ends[1][index], context)

    def chosen(self, condition: Fact, then: Fact, otherwise: Fact, context: Context) -> Fact:
        """The value of a branch: on each warp that of the side it takes."""
        constants: list[Attribute | None] = []
        missing: dict[int, Operation] = {}
        for warp in range(self.num_warps):
            number = condition.number(warp)
            sides = [then, otherwise] if number is None else [then if number else otherwise]
            found = {side.constants[warp] for side in sides}
            constants.append(found.pop() if len(found) == 1 else None)
            origin = next((side.missing[warp] for side in sides if warp in side.missing), None)
            if origin is not None:
                missing[warp] = origin
        varies = then.varies or otherwise.varies
        if not condition.is_uniform(context.active):
            varies = condition.varies
        made = tuple(constants)
        return Fact(made, None if _all_equal(made) else varies, missing)

    def tainted(self, fact: Fact, by: Fact) -> Fact:
        """A value that warps which went round differently often take out of a loop."""
        if by.varies is None or _all_equal(fact.constants):
            return fact
        return self.unknown(fact.varies or by.varies, fact.missing)


def _folded(op: Operation, operands: Sequence[Attribute | None]) -> Attribute | None:
    """What an operation gives for operands of which some are constants, if its fold knows: 0 & x is 0."""
    made: dict[Value, Value] = {
        old: arith.Constant([], [old.type], {"value": constant}, [], op.loc).result
        for old, constant in zip(op.operands, operands, strict=True)
        if constant is not None
    }
    if not made:
        return None
    copy = op.clone(made)
    result = copy.fold()
    copy.drop_operands()
    return constant_of(result) if isinstance(result, Value) else result


def _all_equal(constants: Sequence[Attribute | None]) -> bool:
    return None not in constants and len(set(constants)) == 1


def _union(facts: Iterable[Fact]) -> Missing:
    return {warp: op for fact in facts for warp, op in fact.missing.items()}


def _selected(op: arith.Select, operands: Sequence[Fact]) -> Missing:
    """A selection lacks what the side that a warp takes lacks."""
    condition, *sides = operands
    taken = dict(condition.missing)
    for wanted, side in zip((1, 0), sides, strict=True):
        taken |= {warp: origin for warp, origin in side.missing.items() if condition.number(warp) in (None, wanted)}
    return taken


def join(a: Fact, b: Fact) -> Fact:
    """What holds of a value that is one or the other."""
    constants = tuple(x if x is y else None for x, y in zip(a.constants, b.constants, strict=True))
    varies = a.varies or b.varies
    return Fact(constants, varies, {**b.missing, **a.missing})


def _warp_id(walk: _Walk, op: Operation) -> Fact:
    return Fact(tuple(IntegerAttr(warp, INDEX) for warp in range(walk.num_warps)), op)


def _received(walk: _Walk, op: ttg.CrossWarpReduce) -> Fact:
    """All warps receive the same, or some receive nothing."""
    lacking = [warp for warp in range(walk.num_warps) if op.dst_warps and warp not in op.dst_warps]
    return walk.unknown(op if lacking else None, dict.fromkeys(lacking, op))


def _own(walk: _Walk, op: Operation) -> Fact:
    """Every warp gets a value of its own."""
    return walk.unknown(op)


OWN = (ttg.CrossWarpScan, tt.AtomicRMW, tt.AtomicCAS, tt.VolatileAsm)  # of which every warp gets a value of its own

# Where differences between warps come from; what every other operation gives follows from its operands.
SOURCES: dict[type[Operation], Callable[..., Fact]] = {
    gpu.SubgroupId: _warp_id,
    ttg.CrossWarpReduce: _received,
    **dict.fromkeys(OWN, _own),
}

FLOW: dict[type[Operation], Callable[..., None]] = {
    scf.For: _Walk.for_loop,
    scf.While: _Walk.while_loop,
    scf.If: _Walk.branch,
}
