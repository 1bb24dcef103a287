"""Which 2D block accesses of a loop have an address of their own.

Level: intrinsic -> llvm. The address of an access is a register: a matrix, and a place in it. For accesses at a
constant distance from each other Intel's compiler keeps one. Where the hardware adds no distance
(`Device.distances`), each access then takes a copy, an addition and, as the copy's register is in use, up to four
instructions that wait. Of places whose distance it does not know it keeps one address each, of which an iteration
writes one coordinate. Guarantees: places stay the same numbers; there are no more such addresses than a loop has
registers for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from mltriton.analysis.registers import RegisterEstimate
from mltriton.dialects import scf, tt, ttg
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType
from mltriton.layouts.encodings import Encoding
from mltriton.layouts.hardware import warp_layout
from mltriton.targets.base import TargetSpec
from mltriton.targets.llvm.types import Value as LLVMValue
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.llvm import calls

# Registers for what a loop loads, of which Intel's compiler keeps a part at a time: with 67 paged attention spills
# where it has 128 registers; no other kernel of the library needs as many.
FOR_LOADS = 70
LOOPS = (scf.For, scf.While)


@dataclass
class Addresses:
    """The addresses of one loop: how many are `left`, and the places that have one, by matrix and kind of access."""

    left: int = 0
    _places: dict[Hashable, list[Hashable]] = field(default_factory=dict[Hashable, list[Hashable]])

    def own(self, f: Function, kind: Hashable, place: Hashable, kept: LLVMValue) -> LLVMValue:
        """The coordinate of a place that a loop does not change, at no known distance from that of other places. The
        first place of a kind has an address anyway.
        """
        places = self._places.setdefault(kind, [])
        if place not in places:
            if places and not self.left:
                return kept
            self.left -= bool(places)
            places.append(place)
        number = places.index(place)
        return f.add(kept, f.mul(_nothing(f), number)) if number else kept


def _nothing(f: Function) -> LLVMValue:
    """0, which the compiler does not know: there are fewer than 2**31 programs along a dimension. (Of a function of the
    warp, like a broadcast, nothing is known either; but kernels with such are not compiled again where they spill.)
    """
    return f.lshr(calls.program(f, 0), 31)


def addresses_of_loops(function: Operation, spec: TargetSpec, registers: int) -> dict[Operation, int]:
    """For how many addresses there are registers in each innermost loop of a function, whose warps have so many."""
    estimate = RegisterEstimate(function, spec, loaded=False)
    free = registers - FOR_LOADS
    return {loop: max(0, free - estimate.within(loop) - _of_lanes(loop)) for loop in _innermost(function)}


def _innermost(function: Operation) -> Iterator[Operation]:
    for op in function.walk():
        if isinstance(op, scf.For) and not any(isinstance(inner, LOOPS) for inner in op.walk() if inner is not op):
            yield op


def _of_lanes(loop: Operation) -> int:
    """Registers for the addresses of elements that lanes access by themselves: one for each register of a block."""
    return sum(_registers(value) for op in loop.walk() for value in _accessed(op))


def _accessed(op: Operation) -> list[Value]:
    match op:
        case ttg.LocalLoad():
            return [op.result]
        case ttg.LocalStore():
            return [op.value]
        case tt.Load() | tt.Store():
            return [op.ptr]
        case _:
            return []


def _registers(value: Value) -> int:
    """How many registers have elements of a block; those of a block that a pointer points to have none."""
    type_ = value.type
    if not isinstance(type_, TensorType) or not isinstance(type_.encoding, Encoding):
        return 0
    return warp_layout(type_.encoding, type_.shape).count("register")
