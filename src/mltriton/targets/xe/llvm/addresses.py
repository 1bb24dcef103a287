"""Which 2D block accesses of a loop have an address of their own.

Level: intrinsic -> llvm. The address of an access is a register: a matrix, and a place in it. For accesses at a
constant distance from each other Intel's compiler keeps one. Where the hardware adds no distance
(`Device.distances`), each access then takes a copy, an addition and, as the copy's register is in use, up to four
instructions that wait. Of places whose distance it does not know (in a warp's program: of other variables) it keeps
one address each, of which an iteration writes one coordinate. Guarantees: places stay the same numbers; there are no
more such addresses than a loop has registers for.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from mltriton.analysis.registers import RegisterEstimate
from mltriton.dialects import scf, tt, ttg
from mltriton.ir.operation import Operation
from mltriton.ir.types import TensorType
from mltriton.targets.base import TargetSpec
from mltriton.targets.llvm.types import Value as LLVMValue
from mltriton.targets.llvm.writer import Function
from mltriton.targets.xe.llvm import calls

# Registers for what a loop loads, of which Intel's compiler keeps a part at a time: with 67 paged attention spills
# where it has 128 registers; no other kernel of the library needs as many.
FOR_LOADS = 70


@dataclass
class Addresses:
    """The addresses of one loop: how many are `left`, and the places that have one, by matrix and kind of access."""

    left: int = 0
    _places: dict[Hashable, list[Hashable]] = field(default_factory=dict[Hashable, list[Hashable]])

    def number(self, kind: Hashable, place: Hashable) -> int:
        """Which address of its kind a place has. The first, 0, is there anyway; places that there is no other for have
        it too.
        """
        places = self._places.setdefault(kind, [])
        if place not in places:
            if places and not self.left:
                return 0
            self.left -= bool(places)
            places.append(place)
        return places.index(place)


def told_apart(f: Function, kept: LLVMValue, number: int) -> LLVMValue:
    """The coordinate of a place that a loop does not change, at no known distance from that of another number."""
    return f.add(kept, f.mul(_nothing(f), number)) if number else kept


def _nothing(f: Function) -> LLVMValue:
    """0, which the compiler does not know: there are fewer than 2**31 programs along a dimension. (Of a function of the
    warp, like a broadcast, nothing is known either; but kernels with such are not compiled again where they spill.)
    """
    return f.lshr(calls.program(f, 0), 31)


def addresses_of_loops(function: Operation, spec: TargetSpec, registers: int) -> dict[Operation, int]:
    """For how many addresses there are registers in each innermost loop of a function, whose warps have so many. None
    in loops whose lanes access elements by themselves: the addresses of these take the registers.
    """
    estimate = RegisterEstimate(function, spec, loaded=False)
    free = registers - FOR_LOADS
    return {
        loop: max(0, free - estimate.within(loop)) for loop in scf.innermost_loops(function) if not _lanes_access(loop)
    }


def _lanes_access(loop: Operation) -> bool:
    """Whether lanes access shared memory, or blocks of pointers."""
    for op in loop.walk():
        if isinstance(op, ttg.LocalLoad | ttg.LocalGather | ttg.LocalStore):
            return True
        if isinstance(op, tt.Load | tt.Store) and isinstance(op.ptr.type, TensorType):
            return True
    return False
