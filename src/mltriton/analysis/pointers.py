"""Where pointers point: the parameters a pointer may be based on, and whether two accesses may touch the same memory.

Level: tt to warp. Takes values of a function; changes nothing. A pointer that is read from memory, or made from an
integer that is no pointer of the kernel, may be based on anything (`ANYTHING`). Guarantees: a parameter that
is not named is never reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from mltriton.dialects import arith, tt, ttng
from mltriton.dialects.scf_flow import handed_from
from mltriton.ir.operation import BlockArgument, Operation, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import PointerType, TensorDescType, element_type


class Anything(Enum):
    """The type of `ANYTHING`."""

    ANYTHING = auto()


ANYTHING: Final = Anything.ANYTHING
Base = BlockArgument | Anything
_ADDRESSES: dict[type[Operation], str] = {
    tt.Load: "ptr",
    tt.Store: "ptr",
    tt.AtomicRMW: "ptr",
    tt.AtomicCAS: "ptr",
    tt.DescriptorLoad: "desc",
    tt.DescriptorStore: "desc",
}


class Alias(Enum):
    """Whether two accesses touch the same memory."""

    NEVER = auto()
    MAYBE = auto()
    ALWAYS = auto()


@dataclass
class PointerBases:
    """The bases of pointers, remembered."""

    def __post_init__(self) -> None:
        self._found: dict[Value, frozenset[Base]] = {}

    def of(self, pointer: Value) -> frozenset[Base]:
        """The parameters that a pointer, block of pointers, block pointer or descriptor may be based on."""
        if pointer not in self._found:
            self._found[pointer] = self._search(pointer)
        return self._found[pointer]

    def _search(self, pointer: Value) -> frozenset[Base]:
        found = reached([pointer], lambda value: _sources(value) or ())
        return frozenset(_base(value) for value in found if _sources(value) is None) or frozenset([ANYTHING])

    def alias(self, a: Operation, b: Operation, distinct_parameters: bool = False) -> Alias:
        """Whether two memory operations may touch the same memory.

        In Triton two pointer parameters may point into one array; `distinct_parameters` is the promise that the
        memory reached through different ones does not overlap.
        """
        first, second = address_of(a), address_of(b)
        if first is None or second is None:
            return Alias.MAYBE
        if first is second and list(_indices(a)) == list(_indices(b)):
            return Alias.ALWAYS
        bases = self.of(first), self.of(second)
        if distinct_parameters and ANYTHING not in bases[0] | bases[1] and not bases[0] & bases[1]:
            return Alias.NEVER
        return Alias.MAYBE


def address_of(op: Operation) -> Value | None:
    """The pointer or descriptor through which an operation accesses memory; None where it has none."""
    name = _ADDRESSES.get(type(op))
    return None if name is None else getattr(op, name)


def _indices(op: Operation) -> list[Value]:
    return list(op.indices) if isinstance(op, tt.DescriptorLoad | tt.DescriptorStore) else []


def _base(value: Value) -> Base:
    """What a value that comes from no other is based on."""
    is_address = isinstance(element_type(value.type), PointerType | TensorDescType)
    return value if is_address and isinstance(value, BlockArgument) else ANYTHING


def _sources(value: Value) -> Sequence[Value] | None:
    """The values that an address may come from in one step; None where it is a parameter or may come from anywhere."""
    handed, op = handed_from(value), value.defining_op
    if handed is not None or op is None:
        return handed
    if isinstance(op, arith.Select):
        return [op.true_value, op.false_value]
    if not op.pure or op.regions:
        return None
    if isinstance(op, tt.AddPtr | tt.Advance | tt.MakeTensorPtr | tt.MakeTensorDesc | ttng.TensorMap):
        return [op.operands[0]]
    return op.operands
