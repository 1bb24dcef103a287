"""Which indices of a block matter: outside of them, an element may be anything without any effect of the program.

Level: tt to ttg. Takes a function; changes nothing. A store matters where its mask or boundary check holds; from there
indices are followed backwards through operations that keep them apart (element by element; rows of a product's left
operand, columns of its right one) and through loops and branches. Guarantees: an index that matters is within the
`bounds`, and what depends on it is only looked at where none of `facts` is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mltriton.analysis.affine.formula import Bound, varies_in
from mltriton.analysis.affine.formulas import Formulas
from mltriton.analysis.affine.polynomials import ONE, Polynomial
from mltriton.dialects import scf, tt, ttg
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import TensorType, shape_of


@dataclass(frozen=True)
class Observed:
    """Where a block is looked at; see the module's docstring."""

    bounds: frozenset[Bound] = frozenset()
    facts: frozenset[Polynomial] = frozenset()

    def joined(self, other: Observed) -> Observed:
        """What holds of both."""
        return Observed(self.bounds & other.bounds, self.facts & other.facts)

    def in_dims(self, dims: Sequence[int | None]) -> Observed:
        """The bounds of dimension d as those of `dims[d]`; None for a dimension that is gone."""
        moved = ((bound, dims[bound.dim]) for bound in self.bounds)
        return Observed(frozenset(bound._replace(dim=dim) for bound, dim in moved if dim is not None), self.facts)

    def before(self, loop: scf.For) -> Observed:
        """Without what differs between the iterations of a loop."""

        def stays(limit: Polynomial) -> bool:
            return not any(varies_in(value, loop) for value in limit.values)

        bounds = frozenset(bound for bound in self.bounds if stays(bound.limit))
        return Observed(bounds, frozenset(filter(stays, self.facts)))


EVERYWHERE = Observed()


def within(bounds: Iterable[Bound]) -> Observed:
    """Indices within bounds; that there is one says that upper bounds are positive."""
    bounds = frozenset(bounds)
    return Observed(bounds, frozenset(bound.limit - ONE for bound in bounds if bound.is_upper))


class ObservedIndices:
    """Where each block of a function matters. Nothing is computed before the first question."""

    def __init__(self, function: tt.Func, formulas: Formulas) -> None:
        self.function = function
        self.formulas = formulas
        self._found: dict[Value, Observed] | None = None

    def of(self, value: Value) -> Observed | None:
        """Where a block matters; None where it does nowhere."""
        if self._found is None:
            self._found = {}
            before = None
            while before != self._found:
                before = dict(self._found)
                self._block(self.function.body.block)
        return self._found.get(value)

    def _note(self, value: Value, where: Observed | None) -> None:
        assert self._found is not None
        if where is not None:
            known = self._found.get(value)
            self._found[value] = where if known is None else known.joined(where)

    def _block(self, block: Block) -> None:
        for op in reversed(block.ops):
            if isinstance(op, scf.For | scf.If):
                self._hand_back(op)
                for inner in op.blocks:
                    self._block(inner)
            elif not (isinstance(op, scf.Yield) and isinstance(op.parent_op, scf.For | scf.If)):
                self._operation(op)

    def _hand_back(self, op: scf.For | scf.If) -> None:
        """From results and arguments to what becomes them."""
        scalars = op.operands[:3] if isinstance(op, scf.For) else op.operands
        for value in scalars:
            self._note(value, EVERYWHERE)
        for number, result in enumerate(op.results):
            ends = [block.terminator.operands[number] for block in op.blocks]
            for end in ends:
                self._note(end, self.of(result))
            if isinstance(op, scf.For):
                next_one = self.of(op.carried[number])
                self._note(op.inits[number], self.of(result))
                self._note(op.inits[number], next_one and next_one.before(op))
                self._note(ends[0], next_one and next_one.before(op))

    def _operation(self, op: Operation) -> None:
        rule = _RULES.get(type(op), _elementwise if op.elementwise and op.pure and not op.regions else _everywhere)
        results = [self.of(result) for result in op.results]
        if results and not op.writes and not op.regions and all(where is None for where in results):
            return  # nobody looks at it, as far as is known yet
        where = next((where for where in results if where is not None), EVERYWHERE)
        for value, seen in zip(op.operands, rule(self, op, where), strict=True):
            self._note(value, seen)
        for inner in op.walk() if op.regions else ():
            for value in inner.operands:
                self._note(value, EVERYWHERE)


Rule = Callable[[ObservedIndices, Any, Observed], Sequence[Observed]]


def _everywhere(observed: ObservedIndices, op: Operation, where: Observed) -> Sequence[Observed]:
    return [EVERYWHERE] * len(op.operands)


def _elementwise(observed: ObservedIndices, op: Operation, where: Observed) -> Sequence[Observed]:
    rank = len(shape_of(op.results[0].type))
    return [where if len(shape_of(value.type)) == rank else EVERYWHERE for value in op.operands]


def _store(observed: ObservedIndices, op: tt.Store, where: Observed) -> Sequence[Observed]:
    seen = EVERYWHERE
    if op.mask is not None and isinstance(op.mask.type, TensorType):
        seen = within(observed.formulas.mask(op.mask).bounds)
    elif is_block_pointer(op.ptr.type) and isinstance(maker := op.ptr.defining_op, tt.MakeTensorPtr):
        seen = _inside(observed, maker.shape, maker.offsets, op.boundary_check)
    return [seen if value is op.value else EVERYWHERE for value in op.operands]


def _descriptor_store(observed: ObservedIndices, op: tt.DescriptorStore, where: Observed) -> Sequence[Observed]:
    maker, seen = op.desc.defining_op, EVERYWHERE
    if isinstance(maker, tt.MakeTensorDesc):
        seen = _inside(observed, maker.shape, op.indices, range(len(op.indices)))
    return [seen if value is op.value else EVERYWHERE for value in op.operands]


def _inside(
    observed: ObservedIndices, shape: Sequence[Value], offsets: Sequence[Value], checked: Iterable[int]
) -> Observed:
    scalar = observed.formulas.scalar
    return within(Bound(dim, True, scalar(shape[dim]) - scalar(offsets[dim])) for dim in checked)


def _dot(observed: ObservedIndices, op: tt.Dot, where: Observed) -> Sequence[Observed]:
    """Rows of the result need rows of the left operand, its columns those of the right one."""
    rank = len(shape_of(op.result.type))
    batch = list(range(rank - 2))
    rows, columns = where.in_dims([*batch, rank - 2, None]), where.in_dims([*batch, None, rank - 1])
    known = {op.a: rows, op.b: columns, op.c: where}
    if len(known) < 3:  # one value twice
        return _everywhere(observed, op, where)
    return [known.get(value, EVERYWHERE) for value in op.operands]


def _expanded(observed: ObservedIndices, op: tt.ExpandDims, where: Observed) -> Sequence[Observed]:
    rank = len(shape_of(op.result.type))
    return [where.in_dims([None if dim == op.axis else dim - (dim > op.axis) for dim in range(rank)])]


def _repeated(observed: ObservedIndices, op: tt.Broadcast, where: Observed) -> Sequence[Observed]:
    pairs = zip(shape_of(op.source.type), shape_of(op.result.type), strict=True)
    return [where.in_dims([dim if a == b else None for dim, (a, b) in enumerate(pairs)])]


def _transposed(observed: ObservedIndices, op: tt.Trans, where: Observed) -> Sequence[Observed]:
    return [where.in_dims(list(op.order))]


def _same(observed: ObservedIndices, op: ttg.ConvertLayout, where: Observed) -> Sequence[Observed]:
    return [where]


_RULES: dict[type[Operation], Rule] = {
    tt.Store: _store,
    tt.DescriptorStore: _descriptor_store,
    tt.Dot: _dot,
    tt.ExpandDims: _expanded,
    tt.Broadcast: _repeated,
    tt.Trans: _transposed,
    ttg.ConvertLayout: _same,
}
