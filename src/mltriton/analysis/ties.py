"""Values that stand for each other and so have one type, encoding included: block pointers made of one another.

Level: tt to ttg. Takes a function; changes nothing. An encoding of a block pointer cannot be converted, so all that is
advanced from it, chosen of it or handed on by loops and branches has the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mltriton.dialects import arith, scf, tt
from mltriton.dialects.tt.memory import is_block_pointer
from mltriton.ir.operation import Operation, Value


class Ties:
    """Sets of values, joined two at a time."""

    def __init__(self) -> None:
        self._sets: dict[Value, list[Value]] = {}

    def of(self, value: Value) -> Sequence[Value]:
        """The set of a value; every one of its values gives the same object."""
        return self._sets.get(value) or self._sets.setdefault(value, [value])

    def join(self, a: Value, b: Value) -> None:
        """What stands for `a` stands for `b`, too."""
        one, other = self.of(a), self.of(b)
        if one is not other:
            joined = [*one, *other]
            self._sets.update(dict.fromkeys(joined, joined))


def tied_block_pointers(function: Operation) -> Ties:
    """The block pointers of a function that are made of one another."""
    ties = Ties()
    for op in function.walk():
        for one, other in _handed_on(op):
            if is_block_pointer(one.type):
                ties.join(one, other)
    return ties


def _handed_on(op: Operation) -> Iterator[tuple[Value, Value]]:
    """Values of an operation that have one type."""
    if isinstance(op, tt.Advance):
        yield op.ptr, op.result
    elif isinstance(op, arith.Select):
        yield op.true_value, op.result
        yield op.false_value, op.result
    elif isinstance(op, scf.For):
        for result, *values in zip(op.results, op.inits, op.carried, op.body.block.terminator.operands, strict=True):
            yield from ((value, result) for value in values)
    elif isinstance(op, scf.If):
        for region in op.regions:
            yield from zip(region.block.terminator.operands if region.blocks else (), op.results, strict=False)
    elif isinstance(op, scf.While):
        before, after = op.before.block, op.after.block
        yield from zip(op.inits, before.arguments, strict=True)
        yield from zip(after.terminator.operands, before.arguments, strict=True)
        yield from zip(before.terminator.operands[1:], after.arguments, strict=True)
        yield from zip(before.terminator.operands[1:], op.results, strict=True)
