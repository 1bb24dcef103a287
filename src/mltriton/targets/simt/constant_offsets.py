"""Integers and addresses as a root and a constant, so that what lies next to each other in memory is seen to.

Level: `llvm`. The registers of a lane often differ by constants alone: `pid * 64 + lane + 16 r`. Sums and products made
here keep the constant outermost; all registers then share the rest. Also kept: a number that divides a value, and the
bits that it may have.
Guarantees: integer results are what LLVM's own instructions give. Addresses follow the rule of all levels that
arithmetic on offsets in i32 does not wrap inside one block.
"""

from __future__ import annotations

from math import gcd

from mltriton.records import NamedTuple
from mltriton.targets.llvm.types import I8, I64, Type, Value, constant
from mltriton.targets.llvm.writer import Function

HIGHEST = 1 << 30  # the power of two that divides 0, as far as anyone asks


class Term(NamedTuple):
    """`root` + `constant`; no root: 0. Constants of addresses count bytes."""

    root: Value | None
    constant: int


class Affine:
    """What is known of the values of one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._terms: dict[str, Term] = {}
        self._narrow: dict[str, Value] = {}
        self._divisors: dict[str, int] = {}
        self._bits: dict[str, int] = {}

    def term(self, value: Value) -> Term:
        """A value as root and constant."""
        if value.literal is not None:
            return Term(None, int(value.literal))
        return self._terms.get(value.text) or Term(value, 0)

    def divisor(self, value: Value) -> int:
        """A power of two that divides a value (an address: in bytes)."""
        term = self.term(value)
        known = HIGHEST if term.root is None else self._divisors.get(term.root.text, 1)
        return gcd(known, term.constant) if term.constant else known

    def promise(self, value: Value, divisor: int) -> None:
        """Say that a value is a multiple of `divisor`."""
        root, number = self.term(value)
        if root is not None and divisor != 1:
            power = gcd(divisor & -divisor if divisor else HIGHEST, number)
            self._divisors[root.text] = max(self._divisors.get(root.text, 1), min(power, HIGHEST))

    def promise_bits(self, value: Value, bits: int) -> None:
        """Say that a value has no other bits than these, and that its sign is not one of them."""
        if value.literal is None:
            self._bits[value.text] = bits
            self.promise(value, bits & -bits)

    def divided(self, value: Value, divisor: int) -> tuple[Value, Value] | None:
        """Quotient and remainder by a power of two where no bit of the root is one of the constant's; else None."""
        root, number = self.term(value)
        bits = self._bits.get(root.text) if root is not None else None
        if root is None or bits is None or number < 0 or bits & number:
            return None
        parts: list[Value] = []
        for kept, shift in ((~(divisor - 1), divisor.bit_length() - 1), (divisor - 1, 0)):
            part: Value | None = None
            if bits & kept:
                part = root if bits & kept == bits else self._function.and_(root, bits & kept)
                part = self._function.lshr(part, shift) if shift else part
                self.promise_bits(part, (bits & kept) >> shift)
            parts.append(self._sum(part, (number & kept) >> shift, value.type))
        return parts[0], parts[1]

    def add(self, a: Value, b: Value) -> Value:
        """a + b."""
        x, y = self.term(a), self.term(b)
        if x.root is None or y.root is None:
            return self._sum(x.root or y.root, x.constant + y.constant, a.type)
        root = self._function.add(x.root, y.root)
        self.promise(root, gcd(self.divisor(x.root), self.divisor(y.root)))
        return self._sum(root, x.constant + y.constant, a.type)

    def sub(self, a: Value, b: Value) -> Value:
        """a - b."""
        x, y = self.term(a), self.term(b)
        if y.root is None:
            return self._sum(x.root, x.constant - y.constant, a.type)
        root = self._function.sub(x.root or constant(a.type, 0), y.root)
        self.promise(root, gcd(self.divisor(x.root) if x.root else HIGHEST, self.divisor(y.root)))
        return self._sum(root, x.constant - y.constant, a.type)

    def mul(self, a: Value, b: Value) -> Value:
        """a * b: a constant factor is multiplied through."""
        x, y = self.term(a), self.term(b)
        if x.root is None:
            (x, y), (a, b) = (y, x), (b, a)
        if y.root is None and x.root is not None:
            root = self._function.mul(x.root, y.constant)
            self.promise(root, self.divisor(x.root) * (y.constant & -y.constant))
            return self._sum(root, x.constant * y.constant, a.type)
        product = self._function.mul(a, b)
        self.promise(product, self.divisor(a) * self.divisor(b))
        return product

    def floor(self, value: Value, divisor: int) -> Value:
        """A value to compare with a multiple of `divisor`, a power of two: the largest multiple that is not above it,
        as far as its constant part says. Values between the same multiples become one.
        """
        term = self.term(value)
        known = divisor if term.root is None else self._divisors.get(term.root.text, 1)
        # The least number of a type is a multiple of all smaller powers: what is below stays in the type's range.
        power = gcd(divisor, known, 1 << value.type.bits - 1)
        left = term.constant % power
        return self._sum(term.root, term.constant - left, value.type) if left else value

    def widen(self, value: Value, to: Type) -> Value:
        """The value with its sign extended. The part of its constant that cannot wrap around, as what it is added to is
        a multiple of more, stays apart.
        """
        low = value if value.literal is not None else self.floor(value, 1 << value.type.bits - 1)
        wide = self._function.cast("sext", low, to)
        if wide.literal is not None:
            return wide
        is_index = value.type.bits >= 32  # what has fewer bits wraps in addresses, too
        if wide.text != low.text:
            if is_index:
                self._narrow[wide.text] = low
            self.promise(wide, self.divisor(low))
        above = self.term(value).constant - self.term(low).constant
        wide = self._sum(wide, above, to) if above else wide
        if is_index and wide.text != value.text:
            self._narrow[wide.text] = value
        return wide

    def address(self, pointer: Value, index: Value, element: Type) -> Value:
        """The address `index` elements behind `pointer`."""
        f = self._function
        start, offset = self.term(pointer), self.term(self._narrow.get(index.text, index))
        root = start.root
        assert root is not None
        if offset.root is not None:
            moved = f.gep(root, f.cast("sext", offset.root, I64), element)
            self.promise(moved, gcd(self.divisor(root), self.divisor(offset.root) * element.bytes))
            root = moved
        return self.displaced(root, start.constant + offset.constant * element.bytes)

    def displaced(self, pointer: Value, distance: int) -> Value:
        """The address `distance` bytes behind `pointer`."""
        term = self.term(pointer)
        assert term.root is not None
        total = term.constant + distance
        return self._known(self._function.gep(term.root, total, I8), term.root, total)

    def _sum(self, root: Value | None, number: int, type_: Type) -> Value:
        if root is None:
            return constant(type_, number)
        return self._known(self._function.add(root, number), root, number)

    def _known(self, value: Value, root: Value, number: int) -> Value:
        if value.text != root.text:
            self._terms[value.text] = Term(root, number)
        return value
