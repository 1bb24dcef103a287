"""What a block value is along the lanes of one chunk, and integer arithmetic on that.

Level: intrinsic. A `Form` is `Affine` (base + const + stride * lane: integers and pointers, uniform when the stride is
0), `Uniform` (one scalar of another type) or `Vector` (a chunk). Indices of blocks are tuples of forms as well: an i32
form says where along a dimension the lanes stand. Guarantees: sums and products wrap as the types do; an extension of
i32 assumes that the numbers of one chunk do not wrap, as those of places do not (docs/architecture.md, "Semantics").
"""

from __future__ import annotations

from typing import cast

from mltriton.dialects import arith, tt
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import I1, I32, I64, IntegerType, PointerType, Type
from mltriton.passes.intrinsic.tile_loops.emitter import Emitter, wrapped
from mltriton.records import NamedTuple


class Affine(NamedTuple):
    """base + const + stride * lane, of an integer or pointer type; no base is 0. Pointers count elements."""

    type: Type
    base: Value | None
    const: int
    stride: int | Value


class Uniform(NamedTuple):
    """The same scalar in every lane."""

    value: Value


class Vector(NamedTuple):
    """A chunk."""

    value: Value


Form = Affine | Uniform | Vector
Index = tuple[Form, ...]


def constant_index(number: int) -> Affine:
    """A known coordinate along a dimension."""
    return Affine(I32, None, number, 0)


def is_uniform(form: Form) -> bool:
    """Whether all lanes are the same."""
    if form.__class__ is Affine:
        return cast(Affine, form).stride == 0
    return form.__class__ is Uniform


def is_integer(type: Type) -> bool:
    """Whether values of the type have affine forms: integers but booleans, and pointers to elements."""
    return (isinstance(type, IntegerType) and type is not I1) or isinstance(type, PointerType)


class FormArithmetic:
    """Arithmetic on forms, written by an emitter."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter

    # Between forms and values

    def wrap(self, value: Value) -> Form:
        """The form of a scalar."""
        if not is_integer(value.type):
            return Uniform(value)
        known = self.emitter.integers.get(value)
        return Affine(value.type, value, 0, 0) if known is None else Affine(value.type, None, known, 0)

    def scalar(self, form: Form) -> Value:
        """The scalar of a uniform form; of an affine one, what lane 0 has."""
        if not isinstance(form, Affine):
            return form.value
        type, base, const, _ = form
        if isinstance(type, PointerType):
            assert base is not None
            return self.emitter.pure(tt.AddPtr, (base, self._offset(const)), type) if const else base
        if base is None:
            return self.emitter.integer(const, type)
        return self.emitter.pure(arith.AddI, (base, self.emitter.integer(const, type)), type) if const else base

    def _offset(self, const: int) -> Value:
        return self.emitter.integer(const, I32 if abs(const) < 1 << 31 else I64)

    def chunk(self, form: Form, lanes: int) -> Value:
        """All lanes as a chunk."""
        emitter = self.emitter
        if isinstance(form, Vector):
            return form.value
        if is_uniform(form) or not isinstance(form, Affine):
            return emitter.splat(self.scalar(form), lanes)
        type = emitter.chunk_type(form.type, lanes)
        if isinstance(form.type, PointerType):
            offsets = self._steps(form.stride, I64 if isinstance(form.stride, Value) else I32, lanes, 0)
            return emitter.pure(tt.AddPtr, (emitter.splat(self.scalar(form), lanes), offsets), type)
        assert isinstance(form.type, IntegerType)
        steps = self._steps(form.stride, form.type, lanes, form.const)
        return steps if form.base is None else emitter.pure(arith.AddI, (emitter.splat(form.base, lanes), steps), type)

    def _steps(self, stride: int | Value, type: IntegerType, lanes: int, start: int) -> Value:
        """start + stride * lane."""
        emitter = self.emitter
        chunk = emitter.chunk_type(type, lanes)
        if stride == 1 and type is I32 and abs(start) < 1 << 30:
            return emitter.lane_numbers(lanes, start)
        numbers = emitter.lane_numbers(lanes)
        if type is not I32:
            numbers = emitter.pure(arith.ExtSI if type.width > 32 else arith.TruncI, (numbers,), chunk)
        if isinstance(stride, Value):
            numbers = emitter.pure(arith.MulI, (numbers, emitter.splat(stride, lanes)), chunk)
        elif stride != 1:
            numbers = emitter.pure(arith.MulI, (numbers, emitter.number(stride, chunk)), chunk)
        return emitter.pure(arith.AddI, (numbers, emitter.number(start, chunk)), chunk) if start else numbers

    def depth(self, form: Form) -> int:
        """The outermost scope in which the form exists."""
        if not isinstance(form, Affine):
            return self.emitter.depth[form.value]
        depth = 0 if form.base is None else self.emitter.depth[form.base]
        return max(depth, self.emitter.depth[form.stride]) if isinstance(form.stride, Value) else depth

    # Arithmetic; None where the result is not affine

    def add(self, a: Affine, b: Affine) -> Affine:
        """a + b."""
        if a.base is None or b.base is None:
            base = b.base if a.base is None else a.base
        else:
            base = self.emitter.pure(arith.AddI, (a.base, b.base), a.type)
        return Affine(a.type, base, a.const + b.const, self._sum(a.stride, b.stride))

    def subtract(self, a: Affine, b: Affine) -> Affine:
        """a - b."""
        return self.add(a, self.times(b, Affine(b.type, None, -1, 0))) if b.base is None else self._difference(a, b)

    def _difference(self, a: Affine, b: Affine) -> Affine:
        assert b.base is not None
        minuend = self.emitter.integer(0, a.type) if a.base is None else a.base
        base = self.emitter.pure(arith.SubI, (minuend, b.base), a.type)
        negative = self._product(b.stride, -1)
        return Affine(a.type, base, a.const - b.const, self._sum(a.stride, negative))

    def times(self, a: Affine, factor: Affine) -> Affine:
        """a * factor, where the factor is uniform."""
        if factor.base is None:
            base = a.base
            if base is not None and factor.const != 1:
                base = self.emitter.pure(arith.MulI, (base, self.emitter.integer(factor.const, a.type)), a.type)
            if factor.const == 0:
                base = None
            return Affine(a.type, base, a.const * factor.const, self._product(a.stride, factor.const))
        if a.base is None and a.const == 0:
            return Affine(a.type, None, 0, self._scaled(a.stride, self.scalar(factor)))
        if a.base is None and a.const == 1 and a.stride == 0:
            return factor
        scale = self.scalar(factor)
        base = self.emitter.pure(arith.MulI, (self.scalar(a), scale), a.type)
        return Affine(a.type, base, 0, self._scaled(a.stride, scale))

    def multiply(self, a: Affine, b: Affine) -> Affine | None:
        """a * b, where one of them is uniform."""
        if is_uniform(b):
            return self.times(a, b)
        return self.times(b, a) if is_uniform(a) else None

    def move(self, pointer: Affine, offset: Affine) -> Affine:
        """A pointer moved by a number of elements."""
        base = pointer.base
        assert base is not None
        if offset.base is not None:
            base = self.emitter.pure(tt.AddPtr, (base, offset.base), pointer.type)
        stride = self._sum(self._wide(pointer.stride), self._wide(offset.stride))
        return Affine(pointer.type, base, pointer.const + offset.const, stride)

    def resize(self, a: Affine, type: IntegerType) -> Affine | None:
        """The same numbers in another width, signed."""
        assert isinstance(a.type, IntegerType)
        if a.type.width < type.width and not self._extends(a, a.type):
            return None
        cls = arith.ExtSI if a.type.width < type.width else arith.TruncI
        base = None if a.base is None else self.emitter.pure(cls, (a.base,), type)
        stride = self.emitter.pure(cls, (a.stride,), type) if isinstance(a.stride, Value) else a.stride
        return Affine(type, base, wrapped(a.const, a.type.width), stride)

    def _extends(self, a: Affine, type: IntegerType) -> bool:
        """Whether base, constant and steps can be extended one by one: the numbers of a chunk lie close together, as
        places in memory do, and those of less than 32 bits are known.
        """
        if a.base is None and a.stride == 0:
            return True
        if is_uniform(a) or isinstance(a.stride, Value) or (type.width < 32 and a.base is not None):
            return False
        return abs(a.const) + 64 * abs(a.stride) < 1 << min(20, type.width - 1)

    def _wide(self, stride: int | Value) -> int | Value:
        if isinstance(stride, int) or stride.type is I64:
            return stride
        return self.emitter.pure(arith.ExtSI, (stride,), I64)

    def _sum(self, a: int | Value, b: int | Value) -> int | Value:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        first, second = self._pair(a, b)
        return self.emitter.pure(arith.AddI, (first, second), first.type)

    def _product(self, stride: int | Value, factor: int) -> int | Value:
        if isinstance(stride, int):
            return stride * factor
        if factor in (0, 1):
            return stride if factor else 0
        return self._binary(arith.MulI, stride, factor)

    def _scaled(self, stride: int | Value, factor: Value) -> int | Value:
        if stride == 0:
            return 0
        return factor if stride == 1 else self._binary(arith.MulI, stride, factor)

    def _binary(self, cls: type[Operation], a: int | Value, b: int | Value) -> Value:
        first, second = self._pair(a, b)
        return self.emitter.pure(cls, (first, second), first.type)

    def _pair(self, a: int | Value, b: int | Value) -> tuple[Value, Value]:
        if isinstance(a, Value):
            return a, b if isinstance(b, Value) else self.emitter.integer(b, a.type)
        assert isinstance(b, Value)
        return self.emitter.integer(a, b.type), b
