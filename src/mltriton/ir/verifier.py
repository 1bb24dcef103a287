"""Checks that IR keeps the rules of SSA, of its operations and of its level.

Level: all. `verify` takes any operation, usually a module, and raises `VerificationError` with the operation's text
and location and what was expected and found. It checks in one walk: definitions come before uses and dominate them,
users are counted, regions and terminators are in place, operand groups and attribute kinds are as declared,
element-wise operations agree in shape and encoding, and `Operation.verify`. The rules of levels stand in
`passes/levels.py`, and hold in the same walk where they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

from mltriton.errors import VerificationError
from mltriton.ir.definition import (
    Parts,
    parts_of,
    segments_of,
)
from mltriton.ir.operation import Block, Operation, Region, Value
from mltriton.ir.rejection import OperationError, reject
from mltriton.ir.types import TensorType

Rule = Callable[[Operation], None]


def verify(root: Operation, rules: Sequence[Rule] = (), known: set[tuple[Any, ...]] | None = None) -> None:
    """Check an operation and everything in it, of each operation further `rules`, too. Raises `VerificationError`.

    Most operations are right or wrong by their own types and attributes alone. `known` are those that were right
    before, by the same rules, which need not be asked again; it grows.
    """
    try:
        _Walk(rules, set() if known is None else known).op(root)
    except VerificationError as error:
        if error.location is None:
            raise located(error, root) from None
        raise


def located(error: VerificationError, root: Operation) -> VerificationError:
    """The error with the text of its operation, named as in `root`, and its location."""
    if not isinstance(error, OperationError):
        return error
    made = VerificationError(error.message, expected=error.expected, found=error.found)
    made.hint = f"in: {_text_within(error.op, root)}"
    return made.at(error.op.loc.in_source)


def _text_within(op: Operation, root: Operation) -> str:
    from mltriton.ir.printer import text_within  # A program without errors needs no printer.

    return text_within(op, root) or op.name


_LIMITS = {"one": (1, 1), "optional": (0, 1), "variadic": (0, 1 << 30)}


def _obey_rules(op: Operation) -> None:
    """Check what the class itself asks. A rule that cannot be asked is broken: it relies on what others check."""
    try:
        op.verify()
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as failure:
        reject(op, f"its rules cannot be checked: {type(failure).__name__}: {failure}")


class _Declared:
    """What the walk asks of a class, looked up once."""

    def __init__(self, cls: type[Operation]) -> None:
        self.parts: Parts = parts_of(cls)
        self.count = len(self.parts.operands) if self.parts.is_fixed else -1
        self.segmented = self.parts.is_segmented
        self.limits = [_LIMITS[arity] for arity in self.parts.operands.values()]
        self.regions = len(self.parts.regions)
        self.kinds = {name: part.coder.kinds for name, part in self.parts.attributes.items()}
        self.elementwise = cls.elementwise
        self.has_rules = cls.verify is not Operation.verify or bool(cls.checks)
        self.is_alone = not (self.regions or cls.terminator or cls.looks_around)


@cache
def _declared(cls: type[Operation]) -> _Declared:
    return _Declared(cls)


def _form(op: Operation) -> tuple[Any, ...]:
    """All that the rules of an operation ask for which do not look around."""
    types = [value.type for value in (*op.operands, *op.results)]
    return (op.__class__, op.segments, len(op.operands), *op.attributes.items(), *types)


class _Walk:
    """One walk over the IR; `visible` are the values that dominate the current operation."""

    def __init__(self, rules: Sequence[Rule], known: set[tuple[Any, ...]]) -> None:
        self.visible: set[Value] = set()
        self.rules = rules
        self.known = known

    def op(self, op: Operation) -> None:
        declared = _declared(op.__class__)
        visible = self.visible
        for index, operand in enumerate(op.operands):
            if operand not in visible:
                self._undominated(op, index)
            if op not in operand.users:
                reject(op, f"operand {index} does not count this operation among its users")
        if declared.is_alone and not op.regions:
            form = _form(op)
            if form not in self.known:
                self._rules(op, declared)
                self.known.add(form)
        else:
            self._rules(op, declared)
        visible.update(op.results)

    def _rules(self, op: Operation, declared: _Declared) -> None:
        if len(op.operands) != declared.count:
            self._groups(op, declared)
        for name, value in op.attributes.items():
            kinds = declared.kinds.get(name)
            if kinds is not None and not isinstance(value, kinds):
                wanted = " or ".join(kind.__name__ for kind in kinds)
                reject(op, f"attribute {name} is of another kind", expected=wanted, found=type(value).__name__)
        if declared.elementwise:
            self._agreement(op)
        if op.regions or declared.regions:
            self._regions(op, declared)
        if declared.has_rules:
            _obey_rules(op)
        for rule in self.rules:
            rule(op)

    def _undominated(self, op: Operation, index: int) -> NoReturn:
        owner = op.operands[index].owner
        where = f"{owner.name}" if isinstance(owner, Operation) else "a block"
        reject(op, f"operand {index} is not defined before its use", found=f"a value of {where} that does not dominate")

    def _groups(self, op: Operation, declared: _Declared) -> None:
        if declared.segmented and op.segments is None:
            reject(op, "the sizes of the operand groups are not known")
        sizes = op.segments or segments_of(op)
        fits = len(sizes) == len(declared.limits) and sum(sizes) == len(op.operands)
        if not fits or any(not low <= size <= high for size, (low, high) in zip(sizes, declared.limits, strict=True)):
            groups = ", ".join(f"{name} ({arity})" for name, arity in declared.parts.operands.items()) or "none"
            reject(op, "wrong number of operands", expected=groups, found=f"{len(op.operands)} in groups {list(sizes)}")

    def _agreement(self, op: Operation) -> None:
        first: TensorType | None = None
        for value in (*op.results, *op.operands):
            type = value.type
            if not isinstance(type, TensorType):
                continue
            if first is None:
                first = type
            elif type.shape != first.shape or type.encoding is not first.encoding:
                reject(op, "blocks differ in shape or encoding", expected=str(first), found=str(type))

    def _regions(self, op: Operation, declared: _Declared) -> None:
        if len(op.regions) != declared.regions:
            reject(op, "wrong number of regions", expected=str(declared.regions), found=str(len(op.regions)))
        outer = self.visible
        if op.isolated:
            self.visible = set()
        for index, region in enumerate(op.regions):
            self._region(op, region, op.region_ends[index] if op.region_ends else "")
        self.visible = outer

    def _region(self, op: Operation, region: Region, end: str) -> None:
        if region.parent is not op:
            reject(op, "a region has another parent")
        if len(region.blocks) > 1:
            reject(op, "a region has several blocks", expected="one block", found=str(len(region.blocks)))
        for block in region.blocks:
            if block.region is not region:
                reject(op, "a block belongs to another region")
            self._block(op, block, end)

    def _block(self, op: Operation, block: Block, end: str) -> None:
        if end and not (block.ops and block.ops[-1].name == end):
            reject(op, "a region ends wrongly", expected=end, found=block.ops[-1].name if block.ops else "nothing")
        self.visible.update(block.arguments)
        for inner in block.ops:
            if inner.block is not block:
                reject(inner, "the operation stands in a block that it does not know")
            if inner.terminator and inner is not block.ops[-1]:
                reject(inner, "a terminator stands in the middle of a block")
            self.op(inner)
        self.visible.difference_update(block.arguments)
        for inner in block.ops:
            self.visible.difference_update(inner.results)
