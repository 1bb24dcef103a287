"""Operations that rearrange elements and compute nothing. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from mltriton.ir.attributes import Attribute, DenseArrayAttr, IntegerAttr
from mltriton.ir.checks import axis, permutation, require, require_type, tensor
from mltriton.ir.constants import constant_of, make_constant, reshaped, splat_of
from mltriton.ir.definition import boolean, integer, integers, operand
from mltriton.ir.operation import WHOLE, Coordinates, Elements, Encodings, Operation, Value
from mltriton.ir.types import IntegerType, TensorType, Type, element_type, like, shape_of

__all__ = ["Broadcast", "Cat", "ExpandDims", "Gather", "Join", "Reshape", "Splat", "Split", "Trans", "Unsplat"]


class Splat(Operation, name="tt.splat", pure=True):
    """`tt.splat %x : i32 -> tensor<128xi32>`: a scalar as every element."""

    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    source = operand()

    def verify(self) -> None:
        type = tensor(self, "the result", self.result)
        require_type(self, "an element of the result", type.element, self.source.type)

    def fold(self) -> Value | Attribute | None:
        return reshaped(constant_of(self.source), self.result.type)


class Unsplat(Operation, name="tt.unsplat", pure=True, encodings=WHOLE):
    """`tt.unsplat %x : tensor<1xi32>`: the only element."""

    syntax = "$source attr-dict `:` type($source)"
    source = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [element_type(operands[0].type)]

    def verify(self) -> None:
        type = tensor(self, "the source", self.source)
        require(self, type.size == 1, "the source has several elements", "1 element", type)
        require_type(self, "the result", self.result.type, type.element)

    def fold(self) -> Value | Attribute | None:
        source = self.source.defining_op
        if isinstance(source, Splat):
            return source.source
        number = splat_of(self.source)
        return None if number is None else make_constant(self.result.type, (number,))


class ExpandDims(Operation, name="tt.expand_dims", pure=True):
    """`tt.expand_dims %x {axis = 1 : i32}`: a new dimension of size 1."""

    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    source = operand()
    axis = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        axis = cast(IntegerAttr, attributes["axis"]).value
        return [TensorType((*source.shape[:axis], 1, *source.shape[axis:]), source.element)]

    def verify(self) -> None:
        source, result = tensor(self, "the source", self.source), tensor(self, "the result", self.result)
        at = axis(self, self.axis, source.rank + 1)
        require_shape(self, result, (*source.shape[:at], 1, *source.shape[at:]), source)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.source, (*at[: self.axis], *at[self.axis + 1 :]))]

    def fold(self) -> Value | Attribute | None:
        return reshaped(constant_of(self.source), self.result.type)


class Broadcast(Operation, name="tt.broadcast", pure=True):
    """`tt.broadcast %x : tensor<128x1xi32> -> tensor<128x64xi32>`: dimensions of size 1 are repeated."""

    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    source = operand()

    def verify(self) -> None:
        source, result = tensor(self, "the source", self.source), tensor(self, "the result", self.result)
        fits = source.rank == result.rank and all(
            old in (1, new) for old, new in zip(source.shape, result.shape, strict=True)
        )
        require(self, fits, "only dimensions of size 1 grow", source, result)
        require_type(self, "an element of the result", result.element, source.element)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        shape = shape_of(self.source.type)
        return [(self.source, tuple(first if extent == 1 else i for extent, i in zip(shape, at, strict=True)))]

    def fold(self) -> Value | Attribute | None:
        if self.source.type is self.result.type:
            return self.source
        inner = self.source.defining_op
        if isinstance(inner, Broadcast):
            self.set_operand(0, inner.source)
        return reshaped(constant_of(self.source), self.result.type)


class Reshape(Operation, name="tt.reshape", pure=True, encodings=WHOLE):
    """`tt.reshape %x`: the same elements in row-major order in another shape (`allow_reorder`: in any order)."""

    syntax = "$source (`allow_reorder` $allow_reorder^)? attr-dict `:` type($source) `->` type(result)"
    source = operand()
    allow_reorder = boolean()

    def verify(self) -> None:
        source, result = tensor(self, "the source", self.source), tensor(self, "the result", self.result)
        require(self, source.size == result.size, "the number of elements changes", source.size, result.size)
        require_type(self, "an element of the result", result.element, source.element)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        """Known where dimensions of size 1 come and go."""
        source, result = shape_of(self.source.type), shape_of(self.result.type)
        rest = [i for i, extent in zip(at, result, strict=True) if extent != 1]
        if [extent for extent in source if extent != 1] != [extent for extent in result if extent != 1]:
            return [(self.source, (other,) * len(source))]
        return [(self.source, tuple(first if extent == 1 else rest.pop(0) for extent in source))]

    def fold(self) -> Value | Attribute | None:
        if self.source.type is self.result.type:
            return self.source
        return reshaped(constant_of(self.source), self.result.type)


class Trans(Operation, name="tt.trans", pure=True):
    """`tt.trans %x {order = array<i32: 1, 0>}`: dimension i of the result is dimension order[i] of the source."""

    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    source = operand()
    order = integers()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        order = cast(DenseArrayAttr, attributes["order"]).values
        return [TensorType(tuple(source.shape[i] for i in order), source.element)]

    def verify(self) -> None:
        source, result = tensor(self, "the source", self.source), tensor(self, "the result", self.result)
        permutation(self, self.order, source.rank)
        require_shape(self, result, tuple(source.shape[dim] for dim in self.order), source)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.source, tuple(at[self.order.index(dim)] for dim in range(len(at))))]

    def fold(self) -> Value | Attribute | None:
        inner = self.source.defining_op
        if isinstance(inner, Trans):
            self.order = tuple(inner.order[dim] for dim in self.order)
            self.set_operand(0, inner.source)
        if self.order == tuple(range(len(self.order))) and self.source.type is self.result.type:
            return self.source
        return reshaped(constant_of(self.source), self.result.type)


class Join(Operation, name="tt.join", pure=True, encodings=WHOLE):
    """`tt.join %a, %b`: a new last dimension of size 2."""

    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs) `->` type(result)"
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        return [TensorType((*source.shape, 2), source.element)]

    def verify(self) -> None:
        source, result = tensor(self, "the left operand", self.lhs), tensor(self, "the result", self.result)
        require_type(self, "the right operand", self.rhs.type, source)
        require_shape(self, result, (*source.shape, 2), source)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.lhs, at[:-1]), (self.rhs, at[:-1])]


class Split(Operation, name="tt.split", pure=True, encodings=WHOLE):
    """`tt.split %x`: the two halves of the last dimension, which has size 2."""

    syntax = "$source attr-dict `:` type($source) `->` type(result, result)"
    source = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        return [TensorType(source.shape[:-1], source.element)] * 2

    def verify(self) -> None:
        source = tensor(self, "the source", self.source)
        require(self, source.shape[-1:] == (2,), "the last dimension has size 2", found=source)
        require(self, len(self.results) == 2, "a split has two results", 2, len(self.results))
        for result in self.results:
            require_shape(self, result.type, source.shape[:-1], source)
        require_type(self, "the second result", self.results[1].type, self.results[0].type)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.source, (*at, first))]


class Cat(Operation, name="tt.cat", pure=True):
    """`tt.cat %a, %b`: one after the other along dimension 0 (elements of 1D blocks may come in any order in
    upstream; here in order).
    """

    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs) `->` type(result)"
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        lhs, rhs = (cast(TensorType, value.type) for value in operands)
        return [TensorType((lhs.shape[0] + rhs.shape[0], *lhs.shape[1:]), lhs.element)]

    def verify(self) -> None:
        lhs, rhs = tensor(self, "the left operand", self.lhs), tensor(self, "the right operand", self.rhs)
        same = lhs.rank == rhs.rank and lhs.shape[1:] == rhs.shape[1:] and lhs.element is rhs.element
        require(self, same, "the operands differ in more than dimension 0", lhs, rhs)
        require_shape(self, self.result.type, (lhs.shape[0] + rhs.shape[0], *lhs.shape[1:]), lhs)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.lhs, (other, *at[1:])), (self.rhs, (other, *at[1:]))]


class Gather(Operation, name="tt.gather", pure=True, encodings=Encodings(free=(0,))):
    """`tt.gather %src[%indices] {axis}`: element [.., i, ..] is src[.., indices[.., i, ..], ..] along the axis."""

    syntax = "$source `[` $indices `]` attr-dict `:` functional-type(operands, results)"
    source = operand()
    indices = operand()
    axis = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [like(operands[1].type, element_type(operands[0].type))]

    def verify(self) -> None:
        source, indices = tensor(self, "the source", self.source), tensor(self, "the indices", self.indices)
        at = axis(self, self.axis, source.rank)
        require(self, isinstance(indices.element, IntegerType), "the indices are integers", found=indices)
        fits = indices.rank == source.rank and all(
            wanted <= there
            for d, (wanted, there) in enumerate(zip(indices.shape, source.shape, strict=True))
            if d != at
        )
        require(self, fits, "the indices are larger than the source", source, indices)
        require_shape(self, self.result.type, indices.shape, source)

    def source_elements(self, at: Coordinates, first: Any, other: Any) -> Elements:
        return [(self.indices, at), (self.source, (*at[: self.axis], other, *at[self.axis + 1 :]))]


def require_shape(op: Operation, found: Type, shape: tuple[int, ...], source: TensorType) -> None:
    """A result has a shape and the elements of its source; its encoding does not matter here."""
    same = shape_of(found) == shape and isinstance(found, TensorType) and found.element is source.element
    require(op, same, "the result has another type", TensorType(shape, source.element), found)
