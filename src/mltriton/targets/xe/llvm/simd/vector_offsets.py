"""Integers and addresses of a warp as a root and a constant: those of one lane, with vectors beside scalars.

Level: `llvm`. A scalar is the same in all lanes; where it meets a vector it is put into every lane. Addresses are
integers: of 64 bits in global memory, of 32 bits in the memory that warps share.
"""

from __future__ import annotations

from math import gcd

from mltriton.targets.llvm.types import Type, Value, constant
from mltriton.targets.simt.constant_offsets import Affine


class VectorAffine(Affine):
    """What is known of the values of one warp's program."""

    def add(self, a: Value, b: Value) -> Value:
        """a + b."""
        return super().add(*self.alike(a, b))

    def sub(self, a: Value, b: Value) -> Value:
        """a - b."""
        return super().sub(*self.alike(a, b))

    def mul(self, a: Value, b: Value) -> Value:
        """a * b."""
        return super().mul(*self.alike(a, b))

    def alike(self, a: Value, b: Value) -> tuple[Value, Value]:
        """Two values with the same number of lanes."""
        lanes = max(a.type.lanes, b.type.lanes)
        return self.spread(a, lanes), self.spread(b, lanes)

    def spread(self, value: Value, lanes: int) -> Value:
        """A value in so many lanes; what is known of a scalar is known of its copies."""
        if value.type.lanes == lanes or value.literal is not None:
            return value if value.type.lanes == lanes else constant(value.type.with_lanes(lanes), value.literal or 0)
        term = self.term(value)
        assert term.root is not None
        root = self._function.splat(term.root, lanes)
        self.promise(root, self.divisor(term.root))
        return self._sum(root, term.constant, root.type) if term.constant else root

    def widen(self, value: Value, to: Type) -> Value:
        """The value with its sign extended, in as many lanes."""
        if value.literal is not None:
            return constant(to.with_lanes(value.type.lanes), value.literal)
        return super().widen(value, to.with_lanes(value.type.lanes))

    def narrow(self, value: Value, to: Type) -> Value:
        """The low bits of a value; of one that was widened, what it was."""
        known = self._narrow.get(value.text, value)
        return known if known.type == to else self._function.cast("trunc", value, to)

    def address(self, pointer: Value, index: Value, element: Type) -> Value:
        """The address `index` elements behind `pointer`."""
        start, offset = self.term(pointer), self.term(self._narrow.get(index.text, index))
        assert start.root is not None or pointer.literal is not None
        root = start.root
        if offset.root is not None:
            moved = self._scaled(offset.root, element.bytes, pointer.type)
            root = moved if root is None else self._function.add(*self.alike(root, moved))
            known = self.divisor(start.root) if start.root is not None else 0
            self.promise(root, gcd(known, self.divisor(offset.root) * element.bytes))
        distance = start.constant + offset.constant * element.bytes
        if root is None:
            return constant(pointer.type.with_lanes(index.type.lanes), distance)
        return self._sum(self.spread(root, max(root.type.lanes, index.type.lanes)), distance, root.type)

    def displaced(self, pointer: Value, distance: int) -> Value:
        """The address `distance` bytes behind `pointer`."""
        return self.add(pointer, constant(pointer.type, distance))

    def _scaled(self, index: Value, size: int, pointer: Type) -> Value:
        to = pointer.with_lanes(index.type.lanes)
        wide = self._function.cast("sext" if to.bits > index.type.bits else "trunc", index, to)
        return self._function.mul(wide, size)
