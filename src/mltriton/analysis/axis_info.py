"""Axis info: how regular the integers and pointers of a block are along each dimension.

Level: tt to warp. Takes a function; changes nothing; nothing is computed before the first question. For each dimension
of a value (a scalar has one of size 1): elements come in groups of `contiguity` in which each is one more than the one
before (pointers: one element further); the first of each group is a multiple of `divisibility` (pointers: bytes); and
elements come in groups of `constancy` that are equal. `number` is the value where all elements are one known number.
Parameters and operations may promise more (`tt.divisibility`, `tt.contiguity`, `tt.constancy`). Guarantees: what is
said holds in every iteration of every loop. Source: upstream's AxisInfo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mltriton.analysis.axis_rules import RULES, promised, same_constancy
from mltriton.analysis.regularity import AxisInfo, gcds, unknown
from mltriton.dialects import scf, tile, tt
from mltriton.ir.attributes import ArrayAttr, DictAttr
from mltriton.ir.operation import Block, Operation, Value
from mltriton.ir.types import byte_width, pointee


class AxisInfoAnalysis:
    """The axis info of the values of one function."""

    def __init__(self, function: tt.Func) -> None:
        self.function = function
        self._infos: dict[Value, AxisInfo] = {}
        self._done = False

    def of(self, value: Value) -> AxisInfo:
        """What is known of a value."""
        if not self._done:
            self._done = True
            self._parameters()
            self._block(self.function.body.block)
        return self._infos.get(value) or unknown(value.type)

    def contiguous_bytes(self, pointers: Value, dim: int) -> int:
        """How many bytes from the first of a group of neighbouring pointers along a dimension are in one run."""
        return self.of(pointers).contiguity[dim] * byte_width(pointee(pointers.type))

    def alignment(self, pointers: Value) -> int:
        """Bytes of which the first pointer of every group is a multiple."""
        return max(self.of(pointers).divisibility)

    def _parameters(self) -> None:
        attributes = self.function.arg_attrs
        for argument, attrs in zip(
            self.function.body.block.arguments,
            attributes.elements if isinstance(attributes, ArrayAttr) else (),
            strict=False,
        ):
            if isinstance(attrs, DictAttr):
                self._infos[argument] = promised(unknown(argument.type), dict(attrs.entries), argument.type)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if op.regions:
                self._control_flow(op)
            elif len(op.results) == 1:
                rule = RULES.get(type(op))
                infos = [self._infos.get(value) or unknown(value.type) for value in op.operands]
                info = rule(op, infos) if rule is not None else same_constancy(op, infos)
                self._infos[op.results[0]] = (
                    promised(info, op.attributes, op.results[0].type) if op.attributes else info
                )

    def _control_flow(self, op: Operation) -> None:
        if isinstance(op, scf.For):
            self._infos[op.counter] = self._counter(op)
            block = op.body.block
            self._until_stable(list(zip(op.carried, op.inits, strict=True)), [block], lambda: block.terminator.operands)
            self._join_results(op, [op.inits, block.terminator.operands])
        elif isinstance(op, scf.While):
            before, after = op.before.block, op.after.block
            pairs = list(zip(before.arguments, op.inits, strict=True))
            self._until_stable(pairs, [before, after], lambda: after.terminator.operands)
            self._join_results(op, [before.terminator.operands[1:]])
        elif isinstance(op, scf.If):
            blocks = op.blocks
            for block in blocks:
                self._block(block)
            self._join_results(op, [block.terminator.operands for block in blocks])
        elif isinstance(op, tile.Nest):
            self._block(op.body.block)
            self._join_results(op, [op.body.block.terminator.operands])

    def _counter(self, op: scf.For) -> AxisInfo:
        lower, step = (self._infos.get(value) or unknown(value.type) for value in (op.lower, op.step))
        info = AxisInfo((1,), gcds(lower.divisibility, step.divisibility), (1,))
        return promised(info, op.attributes, op.lower.type)

    def _until_stable(
        self, carried: Sequence[tuple[Value, Value]], blocks: Sequence[Block], yielded: Callable[[], Sequence[Value]]
    ) -> None:
        """Start from the initial values and weaken until an iteration hands on what it got."""
        for argument, init in carried:
            self._infos[argument] = self._infos.get(init) or unknown(init.type)
        changed = True
        while changed:
            for number, block in enumerate(blocks):
                if number:
                    for argument, value in zip(block.arguments, blocks[0].terminator.operands[1:], strict=True):
                        self._infos[argument] = self._infos.get(value) or unknown(value.type)
                self._block(block)
            changed = False
            for (argument, _), value in zip(carried, yielded(), strict=True):
                old = self._infos[argument]
                joined = old.joined(self._infos.get(value) or unknown(value.type))
                changed = changed or joined != old
                self._infos[argument] = joined

    def _join_results(self, op: Operation, sources: Sequence[Sequence[Value]]) -> None:
        for result, *values in zip(op.results, *sources, strict=True):
            infos = [self._infos.get(value) or unknown(value.type) for value in values]
            info = infos[0]
            for other in infos[1:]:
                info = info.joined(other)
            self._infos[result] = info


# Rules: from the operands' infos to the result's.
