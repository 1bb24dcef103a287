"""Where pointers point: the parameters that a pointer may be based on.

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
from mltriton.ir.operation import BlockArgument, Value
from mltriton.ir.reaching import reached
from mltriton.ir.types import PointerType, TensorDescType, element_type


class Anything(Enum):
    """The type of `ANYTHING`."""

    ANYTHING = auto()


ANYTHING: Final = Anything.ANYTHING
Base = BlockArgument | Anything


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
