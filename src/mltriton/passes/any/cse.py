"""cse: equal computations are done once.

Level: tt to intrinsic. Takes any program and changes it in place. An operation is replaced by an earlier one that
dominates it and has the same class, operands (in any order where it is commutative), attributes, result types and
regions. Loads count as equal while nothing in between may write, or waits by a volatile load. Guarantees: effects stay,
in their order.
"""

from __future__ import annotations

from collections.abc import Hashable

from mltriton.analysis.effects import is_pure, writes_memory
from mltriton.ir.module import Module
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.passes import Pass

VOLATILE = "volatile"


class CommonSubexpressions(Pass):
    """Let equal operations be one."""

    name = "cse"

    def run(self, module: Module) -> Module:
        for function in module.body.block.ops:
            _Scopes().regions(function)
        return module


class _Scopes:
    """What is known where: `known` holds the operations that dominate the place, `epoch` changes with every write."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Operation] = {}
        self.epoch = 0

    def regions(self, op: Operation) -> None:
        """Visit the blocks of an operation; what they define is forgotten afterwards."""
        for block in op.blocks:
            self.block(block)

    def block(self, block: Block) -> None:
        added: list[Hashable] = []
        kept: list[Operation] = []
        for op in block.ops:
            if op.regions and not op.pure:
                self.control_flow(op)
                kept.append(op)
                continue
            key = self.key(op)
            known = self.known.get(key) if key is not None else None
            if known is not None:
                _replace(op, known)
                continue
            if op.writes or op.attributes.get(VOLATILE):
                self.epoch += 1
            if key is not None:
                self.known[key] = op
                added.append(key)
            kept.append(op)
        block.ops[:] = kept
        for key in added:
            del self.known[key]

    def control_flow(self, op: Operation) -> None:
        """A loop or branch: what it may write is written before its first load as well as after its last."""
        writes = writes_memory(op) or any(inner.attributes.get(VOLATILE) for inner in op.walk())
        self.epoch += writes
        self.regions(op)
        self.epoch += writes

    def key(self, op: Operation) -> Hashable | None:
        """What identifies the values of an operation; None where it must be done where it stands."""
        if op.pure:
            return None if op.regions and not is_pure(op) else structure(op, {})
        if op.reads and not op.writes and not op.attributes.get(VOLATILE):
            return structure(op, {}), self.epoch
        return None


def structure(op: Operation, inner: dict[Value, int]) -> Hashable:
    """What makes two operations compute the same; `inner` numbers the values defined in a region around them."""
    operands: list[Hashable] = [inner.get(value, value) for value in op.operands] if inner else list(op.operands)
    if op.commutative:
        operands.sort(key=id)
    attributes = frozenset(op.attributes.items()) if op.attributes else None
    types = tuple([result.type for result in op.results])
    if not op.regions:
        return type(op), tuple(operands), attributes, types, op.segments
    blocks = tuple(_block_structure(block, inner) for block in op.blocks)
    return type(op), tuple(operands), attributes, types, op.segments, blocks


def _block_structure(block: Block, outer: dict[Value, int]) -> Hashable:
    inner = dict(outer)
    for argument in block.arguments:
        inner[argument] = len(inner)
    made: list[Hashable] = [tuple(argument.type for argument in block.arguments)]
    for op in block.ops:
        made.append(structure(op, inner))
        for result in op.results:
            inner[result] = len(inner)
    return tuple(made)


def _replace(op: Operation, known: Operation) -> None:
    for old, new in zip(op.results, known.results, strict=True):
        old.replace_by(new)
        new.hint = new.hint or old.hint
    op.block = None
    op.drop_operands()
