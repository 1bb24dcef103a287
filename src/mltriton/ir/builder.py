"""Builder: creates operations at an insertion point, carrying the current source location.

Level: all. `emit` returns the single result, `create` the operation. Result types come from `result_types=` or from
the class's `infer`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from mltriton.ir.attributes import Attribute
from mltriton.ir.definition import parts_of
from mltriton.ir.location import UNKNOWN, Location
from mltriton.ir.operation import Block, Operation, OpResult, Region, Value
from mltriton.ir.types import Type

OperationT = TypeVar("OperationT", bound=Operation)
Operands = Value | Sequence[Value] | None


class Infers(Protocol):
    """A class that knows its result types from its operands and attributes."""

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        """Types of the results."""
        ...


class Builder:
    """Creates operations at the end of `block`, or before `anchor` when one is set."""

    def __init__(self, block: Block | None = None, loc: Location = UNKNOWN) -> None:
        self._block = block
        self.anchor: Operation | None = None
        self.loc = loc

    @property
    def block(self) -> Block:
        """The block that is being filled."""
        assert self._block is not None, "the builder has no insertion point"
        return self._block

    def at_end(self, block: Block) -> Builder:
        """Insert at the end of `block` from now on."""
        self._block, self.anchor = block, None
        return self

    def before(self, op: Operation) -> Builder:
        """Insert right before `op` from now on, with its location."""
        self._block, self.anchor, self.loc = op.block, op, op.loc
        return self

    @contextmanager
    def inside(self, block: Block) -> Generator[Block]:
        """Insert at the end of `block` within the `with` statement, then go on where it was."""
        saved = self._block, self.anchor
        self._block, self.anchor = block, None
        try:
            yield block
        finally:
            self._block, self.anchor = saved

    @contextmanager
    def at(self, loc: Location) -> Generator[None]:
        """Give operations created within the `with` statement the location `loc`."""
        saved, self.loc = self.loc, loc
        try:
            yield
        finally:
            self.loc = saved

    def insert(self, op: OperationT) -> OperationT:
        """Insert an operation that exists already."""
        if self.anchor is not None:
            self.block.insert_before(self.anchor, op)
        else:
            self.block.append(op)
        return op

    def create(
        self,
        cls: type[OperationT],
        *operands: Operands,
        result_types: Sequence[Type] | None = None,
        regions: Sequence[Region] | None = None,
        **attributes: Any,
    ) -> OperationT:
        """Create and insert an operation. One argument for each declared operand group: a value, None for a missing
        optional one, or a list.

        Attribute keywords take Python values (`axis=0`) or attributes; None leaves one unset.
        """
        parts = parts_of(cls)
        flat, segments = _flatten(operands)
        coded: dict[str, Attribute] = {}
        for name, value in attributes.items():
            part = parts.attributes.get(name)
            encoded = part.encode(value) if part is not None else cast("Attribute | None", value)
            if encoded is not None:
                coded[name] = encoded
        types = result_types if result_types is not None else cast("type[Infers]", cls).infer(flat, coded)
        made = regions if regions is not None else [Region() for _ in parts.regions]
        return self.insert(cls(flat, types, coded, made, self.loc, None if parts.is_fixed else segments))

    def emit(self, cls: type[Operation], *operands: Operands, **keywords: Any) -> OpResult:
        """Create an operation with one result and return the result."""
        return self.create(cls, *operands, **keywords).result


def _flatten(operands: Sequence[Operands]) -> tuple[list[Value], tuple[int, ...]]:
    flat: list[Value] = []
    segments: list[int] = []
    for group in operands:
        values = [] if group is None else [group] if isinstance(group, Value) else list(group)
        flat.extend(values)
        segments.append(len(values))
    return flat, tuple(segments)
