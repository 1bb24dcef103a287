"""Block pointers that a loop only advances: what of them it has to carry.

Level: intrinsic -> llvm. Base, sizes and strides stay, and so do offsets along which a pointer does not move.
Guarantees: offsets that start at a constant distance from each other and move by the same steps are carried as one, so
that the pieces of a block have one counter; what divides an offset in all iterations is promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from mltriton.dialects import tt
from mltriton.ir.operation import Value as IRValue
from mltriton.targets.llvm.types import I32, Value, constant
from mltriton.targets.simt.context import Emitter
from mltriton.targets.simt.lanes import BlockPointer

Steps = tuple[IRValue | int, ...]  # by what an offset moves in an iteration
Part = tuple[IRValue, IRValue, IRValue]  # a loop's argument, its first value, and what the next iteration is given


@dataclass(frozen=True)
class _Offset:
    """One offset: carried number `number`, plus `distance`."""

    number: int
    distance: int


class Moving:
    """The block pointers among a loop's arguments that are only advanced; `start` is what the loop carries for them."""

    def __init__(self, e: Emitter, parts: Sequence[Part]) -> None:
        self._e = e
        self.start: list[Value] = []
        self.pointers: dict[IRValue, tuple[BlockPointer, list[_Offset | None]]] = {}
        self._carriers: list[tuple[IRValue, int]] = []  # whose offset along which dimension each carried value is
        self._divisors: list[int] = []
        self._known: dict[tuple[str | None, Steps], tuple[int, int]] = {}
        for argument, init, following in parts:
            found, moves = e.any(init), _advances(following, argument)
            if isinstance(found, BlockPointer) and moves is not None:
                offsets = [self._offset(argument, found, dim, moves) for dim in range(len(found.offsets))]
                self.pointers[argument] = found, offsets

    def _offset(
        self, argument: IRValue, pointer: BlockPointer, dim: int, moves: Sequence[tt.Advance]
    ) -> _Offset | None:
        """How an offset is carried; None where it stays."""
        steps = tuple(self._step(move.offsets[dim]) for move in moves)
        if not any(steps):
            return None
        first = pointer.offsets[dim]
        term = self._e.affine.term(first)
        key = (term.root.text if term.root else None, steps)
        if key not in self._known:
            self._known[key] = (len(self.start), term.constant)
            self.start.append(first)
            self._carriers.append((argument, dim))
            self._divisors.append(gcd(self._e.affine.divisor(first), *(self._divisor(step) for step in steps)))
        number, constant_part = self._known[key]
        return _Offset(number, term.constant - constant_part)

    def _step(self, value: IRValue) -> IRValue | int:
        known = self._e.find(value)
        return int(known.literal) if isinstance(known, Value) and known.literal is not None else value

    def _divisor(self, step: IRValue | int) -> int:
        if isinstance(step, int):
            return step & -step
        known = self._e.find(step)
        return self._e.affine.divisor(known) if isinstance(known, Value) else 1

    def put(self, values: Sequence[Value], *, inside: bool) -> None:
        """Say what stands for the arguments, where the carried values are `values`: inside the loop, or after it."""
        for value, divisor in zip(values, self._divisors, strict=True):
            self._e.affine.promise(value, divisor)
        for argument, (pointer, offsets) in self.pointers.items():
            moved = [
                old if offset is None else self._e.affine.add(values[offset.number], constant(I32, offset.distance))
                for old, offset in zip(pointer.offsets, offsets, strict=True)
            ]
            staying = tuple(offset is None for offset in offsets) if inside else None
            self._e.put(argument, pointer._replace(offsets=moved, staying=staying))

    def following(self, yielded: Mapping[IRValue, IRValue]) -> list[Value]:
        """What the next iteration is given."""
        return [self._e.block_pointer(yielded[argument]).offsets[dim] for argument, dim in self._carriers]


def _advances(value: IRValue, argument: IRValue) -> list[tt.Advance] | None:
    """The operations that make `value` of `argument`; None where there are others."""
    found: list[tt.Advance] = []
    while isinstance(op := value.defining_op, tt.Advance):
        found.append(op)
        value = op.ptr
    return found if value is argument else None
