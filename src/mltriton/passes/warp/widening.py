"""Blocks of several loop steps as one block: the values of `merge-k-steps`.

Level: warp (and tt). A block of step t with `extent` elements along a dimension becomes a block of `factor` times as
many: element u * extent + k of the wide block is element k of the block of step t + u. `wide` builds such blocks where
that can be proven and raises `NotMergeable` where it cannot. What is proven: integers and pointers grow along the
dimension by the same amount an element as they grow by `extent` elements in a step; comparisons compare two such
values, or two whose difference is one; everything else is element by element, a load, or the same in every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, cast

from mltriton.analysis.affine.motion import LoopAffine, Motion, dim_of, source_dim
from mltriton.analysis.affine.polynomials import Polynomial
from mltriton.dialects import arith, tt, ttg
from mltriton.dialects.tt.pointers import is_block_pointer
from mltriton.ir.attributes import Attribute, DenseAttr
from mltriton.ir.builder import Builder
from mltriton.ir.constants import splat_of
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import (
    I1,
    I32,
    I64,
    IntegerType,
    PointerType,
    TensorDescType,
    TensorType,
    Type,
    element_type,
)
from mltriton.layouts.encodings import BlockedEncoding, DotOperandEncoding, Encoding, Shape, SliceEncoding, same_cut
from mltriton.records import record


class NotMergeable(Exception):  # noqa: N818 - says what cannot be done; the pass that catches it leaves the loop alone
    """A value of several steps cannot be proven to be one wide value."""


@record()
class Widener:
    """Builds wide blocks.

    `builder` stands in the new body, `before` in front of the new loop. `values` maps what the old body uses without
    the dimension (the counter, carried scalars) to the new body's values.
    """

    affine: LoopAffine
    builder: Builder
    before: Builder
    extent: int
    factor: int
    values: dict[Value, Value]
    _wide: dict[tuple[Value, int], Value] = field(default_factory=dict[tuple[Value, int], Value])
    _narrow: dict[tuple[Value, int], Value] = field(default_factory=dict[tuple[Value, int], Value])

    def wide(self, value: Value, dim: int) -> Value:
        """The block of `factor` steps."""
        key = (value, dim)
        if key not in self._wide:
            with self.builder.at(value.defining_op.loc if value.defining_op else self.builder.loc):
                made = self._make_wide(value, dim)
            made.hint = made.hint or value.hint
            self._wide[key] = made
        return self._wide[key]

    def _make_wide(self, value: Value, dim: int) -> Value:
        motion = self.affine.motion(value, dim)
        if motion is not None and element_type(value.type) is not I1:
            if not self.is_even(motion):
                raise NotMergeable("an index does not go on from one step to the next")
            return self.extended(value, dim, motion)
        op = value.defining_op
        rule = _RULES.get(type(op)) if op is not None else None
        if rule is not None:
            return rule(self, op, dim)
        if op is None or not (op.elementwise and op.pure) or op.regions:
            raise NotMergeable(f"{op.name if op else 'a block argument'} is not pointwise")
        return self.each_element(op, dim)

    def is_even(self, motion: Motion) -> bool:
        """Whether a step is as much as `extent` elements."""
        return motion.per_step == motion.along.times(self.extent)

    def each_element(self, op: Operation, dim: int) -> Value:
        """An element-wise operation on wide blocks; scalars must be the same in every step."""
        operands = [
            self.wide(value, dim) if isinstance(value.type, TensorType) else self.same(value) for value in op.operands
        ]
        return self.copy(op, operands, self.wide_type(op.results[0].type, dim))

    def extended(self, value: Value, dim: int, motion: Motion) -> Value:
        """The first element along the dimension, as it is in the first step, and from there on in even strides."""
        first = self.narrow(value, dim)
        type = self.wide_type(value.type, dim)
        whole = self._broadcast(first, type)
        if motion.along.is_zero:
            return whole
        is_pointer = isinstance(element_type(value.type), PointerType)
        scalar = I64 if is_pointer else element_type(value.type)
        strides = self._broadcast(self._strides(type, dim, motion.along, scalar), type.with_element(scalar))
        return self.builder.emit(tt.AddPtr if is_pointer else arith.AddI, whole, strides)

    def _strides(self, type: TensorType, dim: int, along: Polynomial, scalar: Type) -> Value:
        """along * (0, 1, 2, ...) along the dimension, one element along all others."""
        line = self._line(type, dim)
        if scalar is not I32:
            widens = cast(IntegerType, scalar).width > 32
            element = cast(TensorType, line.type).with_element(scalar)
            line = self.builder.emit(arith.ExtSI if widens else arith.TruncI, line, result_types=[element])
        if along.number == 1:
            return line
        if any(value in self.affine.inside for value in along.values):
            raise NotMergeable("a stride is computed in the loop")
        stride = self.builder.emit(tt.Splat, along.emit(self.before, scalar), result_types=[line.type])
        return self.builder.emit(arith.MulI, line, stride)

    def _line(self, type: TensorType, dim: int) -> Value:
        """0, 1, 2, ... along the dimension of a block of `type`, one element along all others; i32."""
        others = [axis for axis in range(type.rank) if axis != dim]
        encodings: list[Attribute | None] = [type.encoding]
        for axis in reversed(others):
            outer = encodings[-1]
            encodings.append(SliceEncoding(axis, outer) if isinstance(outer, Encoding) else None)
        size = type.shape[dim]
        line: Value = self.builder.emit(
            tt.MakeRange, result_types=[TensorType((size,), I32, encodings.pop())], start=0, end=size
        )
        for count, axis in enumerate(others, start=1):
            shape = [1] * (count + 1)
            shape[sum(other < dim for other in others[:count])] = size
            made = TensorType(tuple(shape), I32, encodings.pop())
            line = self.builder.emit(tt.ExpandDims, line, axis=axis, result_types=[made])
        return line

    # What does not have the dimension

    def same(self, value: Value) -> Value:
        """A value without the dimension that is the same in every step."""
        if not self.affine.is_invariant(value):
            raise NotMergeable("a value changes from step to step")
        return self.first(value)

    def first(self, value: Value) -> Value:
        """A value without the dimension, as it is in the first of the steps."""
        if value not in self.affine.inside:
            return value
        if value not in self.values:
            op = value.defining_op
            if op is None or not op.pure or op.regions:
                raise NotMergeable(f"{op.name if op else 'a carried block'} cannot be repeated")
            made = self.copy(op, [self.first(operand) for operand in op.operands], *[r.type for r in op.results])
            self.values[value] = made
        return self.values[value]

    # The first element along the dimension

    def narrow(self, value: Value, dim: int) -> Value:
        """The block with its first element along the dimension only, as it is in the first of the steps."""
        key = (value, dim)
        if key not in self._narrow:
            self._narrow[key] = self._make_narrow(value, dim)
        return self._narrow[key]

    def _make_narrow(self, value: Value, dim: int) -> Value:
        op = value.defining_op
        if op is None or not op.pure or op.regions:
            raise NotMergeable("an index is not computed from ranges and scalars")
        type = self.narrow_type(value.type, dim)
        if isinstance(op, tt.MakeRange):
            return self._constant(type, op.start)
        if isinstance(op, arith.Constant) and (number := splat_of(value)) is not None:
            return self._constant(type, number)
        if isinstance(op, tt.Splat):
            return self.builder.emit(tt.Splat, self.first(op.source), result_types=[type])
        if isinstance(op, tt.Broadcast | tt.ExpandDims | tt.Trans):
            source = self._narrow_source(op, dim)
            return source if source.type is type else self._repeated(op, source, type)
        if not op.elementwise and not isinstance(op, ttg.ConvertLayout):
            raise NotMergeable(f"{op.name} is not element-wise")
        operands = [
            self.narrow(operand, dim) if dim_of(operand, dim) is not None else self.first(operand)
            for operand in op.operands
        ]
        return self.copy(op, operands, type)

    def _narrow_source(self, op: tt.Broadcast | tt.ExpandDims | tt.Trans, dim: int) -> Value:
        inner = source_dim(op, dim)
        if inner is not None:
            return self.narrow(op.source, inner)
        return self.retyped(self.first(op.source), op, dim)

    def retyped(self, source: Value, op: tt.Broadcast | tt.ExpandDims | tt.Trans, dim: int) -> Value:
        """A source without the dimension must have the encoding that the result has when it is wide."""
        wanted = self.wide_type(op.result.type, dim).encoding
        if isinstance(op, tt.ExpandDims) and isinstance(wanted, Encoding):
            wanted = SliceEncoding(op.axis, wanted)
        return self.encoded(source, wanted)

    def encoded(self, value: Value, encoding: Attribute | None) -> Value:
        """A block in another encoding that gives the warp the same part: computed again where that is cheap."""
        type = value.type
        if not isinstance(type, TensorType) or type.encoding is encoding:
            return value
        assert isinstance(encoding, Encoding) and isinstance(type.encoding, Encoding)
        op, made = value.defining_op, type.with_encoding(encoding)
        if isinstance(op, arith.Constant) and isinstance(op.value, DenseAttr):
            return self.builder.emit(arith.Constant, value=DenseAttr(op.value.values, made))
        if op is not None and op.pure and (op.elementwise or isinstance(op, _CHEAP)):
            inner = SliceEncoding(op.axis, encoding) if isinstance(op, tt.ExpandDims) else encoding
            return self.copy(op, [self.encoded(operand, inner) for operand in op.operands], made)
        if not same_cut(type.encoding, encoding, type.shape):
            raise NotMergeable("a block has an encoding that does not grow")
        return self.builder.emit(ttg.ConvertLayout, value, result_types=[made])

    # Types

    def narrow_type(self, type: Type, dim: int) -> TensorType:
        """The type with one element along the dimension, in the encoding of the wide type."""
        wide = self.wide_type(type, dim)
        return wide.with_shape(_with(wide.shape, dim, 1))

    def wide_type(self, type: Type, dim: int) -> TensorType:
        """The type with `factor` times as many elements along the dimension."""
        assert isinstance(type, TensorType)
        shape = _with(type.shape, dim, type.shape[dim] * self.factor)
        encoding = type.encoding
        if isinstance(encoding, Encoding):
            encoding = widened(encoding, type.shape, dim, shape[dim])
        return TensorType(shape, type.element, encoding)

    # Emitting

    def _broadcast(self, value: Value, type: TensorType) -> Value:
        made = type.with_element(element_type(value.type))
        if isinstance(value.defining_op, tt.Splat):
            return self.builder.emit(tt.Splat, value.defining_op.source, result_types=[made])
        return value if value.type is made else self.builder.emit(tt.Broadcast, value, result_types=[made])

    def _repeated(self, op: tt.Broadcast | tt.ExpandDims | tt.Trans, source: Value, type: TensorType) -> Value:
        """A copy of `op`; a splat in another shape is a splat."""
        if isinstance(source.defining_op, tt.Splat):
            return self.builder.emit(tt.Splat, source.defining_op.source, result_types=[type])
        return self.copy(op, [source], type)

    def _constant(self, type: Type, number: int | float) -> Value:
        return arith.filled(self.builder, number, type)

    def copy(self, op: Operation, operands: list[Value], *types: Type) -> Value:
        """The operation on other operands, or what it folds to."""
        made = type(op)(operands, types, op.attributes, (), op.loc, op.segments)
        folded = made.fold() if op.elementwise else None
        if isinstance(folded, Value):
            made.drop_operands()
            return folded
        if isinstance(folded, Attribute):
            made.drop_operands()
            return self.builder.emit(arith.Constant, value=folded)
        return self.builder.insert(made).results[0]


def widened(encoding: Encoding, shape: Shape, dim: int, size: int) -> Encoding:
    """The encoding of a block of one warp that grows to `size` along a dimension and stays in one warp."""
    wanted = _with(shape, dim, size)
    if encoding.per_warp_shape(wanted) == wanted:
        return encoding
    if isinstance(encoding, BlockedEncoding):
        made: Encoding = BlockedEncoding(
            _with(encoding.size_per_warp, dim, size), encoding.warps_per_cta, encoding.order
        )
    elif isinstance(encoding, SliceEncoding):
        outer = (*shape[: encoding.dim], 1, *shape[encoding.dim :])
        made = SliceEncoding(encoding.dim, widened(encoding.parent, outer, dim + (dim >= encoding.dim), size))
    elif isinstance(encoding, DotOperandEncoding):
        made = DotOperandEncoding(encoding.op_idx, widened(encoding.parent, shape, dim, size), encoding.k_width)
    else:
        raise NotMergeable(f"{encoding} does not grow")
    if made.per_warp_shape(wanted) != wanted:
        raise NotMergeable(f"{encoding} does not grow")
    return made


def _with(shape: Shape, dim: int, size: int) -> Shape:
    return (*shape[:dim], size, *shape[dim + 1 :])


# How other operations grow.


def _constant(w: Widener, op: arith.Constant, dim: int) -> Value:
    number = splat_of(op.result)
    if number is None:
        raise NotMergeable("a constant has different elements")
    return arith.filled(w.builder, number, w.wide_type(op.result.type, dim))


def _splat(w: Widener, op: tt.Splat, dim: int) -> Value:
    return w.builder.emit(tt.Splat, w.same(op.source), result_types=[w.wide_type(op.result.type, dim)])


def _moved(w: Widener, op: tt.Broadcast | tt.ExpandDims | tt.Trans, dim: int) -> Value:
    inner = source_dim(op, dim)
    if inner is None:
        source = w.retyped(w.same(op.source), op, dim)
    else:
        source = w.wide(op.source, inner)
    return w.copy(op, [source], w.wide_type(op.result.type, dim))


def _converted(w: Widener, op: ttg.ConvertLayout, dim: int) -> Value:
    return w.copy(op, [w.wide(op.source, dim)], w.wide_type(op.result.type, dim))


def _comparison(w: Widener, op: arith.CmpI, dim: int) -> Value:
    """Both sides may go on unevenly as long as their difference does not: k < K - start."""
    lhs, rhs = w.affine.motion(op.lhs, dim), w.affine.motion(op.rhs, dim)
    if lhs is None or rhs is None or (w.is_even(lhs) and w.is_even(rhs)):
        return w.each_element(op, dim)
    if op.predicate[0] == "u" or not w.is_even(lhs - rhs):
        raise NotMergeable("a mask does not go on from one step to the next")
    sides = [w.extended(op.lhs, dim, lhs), w.extended(op.rhs, dim, rhs)]
    return w.copy(op, sides, w.wide_type(op.result.type, dim))


def _load(w: Widener, op: tt.Load, dim: int) -> Value:
    if op.volatile:
        raise NotMergeable("a volatile load")
    if is_block_pointer(op.ptr.type):
        operands = [_block_pointer(w, op, dim)]
    else:
        operands = [w.wide(value, dim) for value in op.operands]
    return w.copy(op, operands, w.wide_type(op.result.type, dim))


def _block_pointer(w: Widener, op: tt.Load, dim: int) -> Value:
    maker = op.ptr.defining_op
    if not isinstance(maker, tt.MakeTensorPtr):
        raise NotMergeable("a block pointer that is not made in the loop")
    rest = [w.same(value) for value in (maker.base, *maker.shape, *maker.strides)]
    pointer = cast(PointerType, maker.result.type)
    made = PointerType(w.wide_type(pointer.pointee, dim), pointer.address_space)
    return w.copy(maker, [*rest, *_offsets(w, maker.offsets, dim)], made)


def _descriptor_load(w: Widener, op: tt.DescriptorLoad, dim: int) -> Value:
    maker = op.desc.defining_op
    if not isinstance(maker, tt.MakeTensorDesc):
        raise NotMergeable("a descriptor that the kernel does not make")
    type = w.wide_type(op.result.type, dim)
    made = TensorDescType(type.with_encoding(None))
    operands = [w.same(value) for value in maker.operands]
    desc = w.before.insert(tt.MakeTensorDesc(operands, [made], maker.attributes, (), maker.loc, maker.segments)).result
    desc.hint = op.desc.hint
    return w.copy(op, [desc, *_offsets(w, op.indices, dim)], type)


def _offsets(w: Widener, offsets: list[Value], dim: int) -> list[Value]:
    """Offsets of a block in memory: along the dimension a step further in each step, otherwise always the same."""
    motion = w.affine.motion(offsets[dim], None)
    if motion is None or motion.per_step != Polynomial.constant(w.extent):
        raise NotMergeable("a block does not go on from one step to the next")
    return [w.first(value) if axis == dim else w.same(value) for axis, value in enumerate(offsets)]


_CHEAP = (tt.MakeRange, tt.Splat, tt.ExpandDims, tt.Broadcast)
_RULES: dict[type[Operation], Callable[[Widener, Any, int], Value]] = {
    arith.Constant: _constant,
    tt.Splat: _splat,
    tt.Broadcast: _moved,
    tt.ExpandDims: _moved,
    tt.Trans: _moved,
    ttg.ConvertLayout: _converted,
    arith.CmpI: _comparison,
    tt.Load: _load,
    tt.DescriptorLoad: _descriptor_load,
}
