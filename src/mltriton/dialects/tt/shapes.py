"""Operations that rearrange elements and compute nothing. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute, DenseArrayAttr, IntegerAttr
from mltriton.ir.definition import boolean, integer, integers, operand
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorType, Type, element_type, like


class Splat(Operation):
    """`tt.splat %x : i32 -> tensor<128xi32>`: a scalar as every element."""

    name = "tt.splat"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()


class Unsplat(Operation):
    """`tt.unsplat %x : tensor<1xi32>`: the only element."""

    name = "tt.unsplat"
    syntax = "$source attr-dict `:` type($source)"
    pure = True
    source = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [element_type(operands[0].type)]


class ExpandDims(Operation):
    """`tt.expand_dims %x {axis = 1 : i32}`: a new dimension of size 1."""

    name = "tt.expand_dims"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()
    axis = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        axis = cast(IntegerAttr, attributes["axis"]).value
        return [TensorType((*source.shape[:axis], 1, *source.shape[axis:]), source.element)]


class Broadcast(Operation):
    """`tt.broadcast %x : tensor<128x1xi32> -> tensor<128x64xi32>`: dimensions of size 1 are repeated."""

    name = "tt.broadcast"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()


class Reshape(Operation):
    """`tt.reshape %x`: the same elements in row-major order in another shape (`allow_reorder`: in any order)."""

    name = "tt.reshape"
    syntax = "$source (`allow_reorder` $allow_reorder^)? attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()
    allow_reorder = boolean()


class Trans(Operation):
    """`tt.trans %x {order = array<i32: 1, 0>}`: dimension i of the result is dimension order[i] of the source."""

    name = "tt.trans"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    old_syntax = ("$source attr-dict `:` functional-type($source, results)",)
    pure = True
    source = operand()
    order = integers()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        order = cast(DenseArrayAttr, attributes["order"]).values
        return [TensorType(tuple(source.shape[i] for i in order), source.element)]


class Join(Operation):
    """`tt.join %a, %b`: a new last dimension of size 2."""

    name = "tt.join"
    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs) `->` type(result)"
    pure = True
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        return [TensorType((*source.shape, 2), source.element)]


class Split(Operation):
    """`tt.split %x`: the two halves of the last dimension, which has size 2."""

    name = "tt.split"
    syntax = "$source attr-dict `:` type($source) `->` type(result)"
    pure = True
    source = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        source = cast(TensorType, operands[0].type)
        return [TensorType(source.shape[:-1], source.element)] * 2


class Cat(Operation):
    """`tt.cat %a, %b`: one after the other along dimension 0 (elements of 1D blocks may come in any order in
    upstream; here in order).
    """

    name = "tt.cat"
    syntax = "$lhs `,` $rhs attr-dict `:` type($lhs, $rhs) `->` type(result)"
    pure = True
    lhs = operand()
    rhs = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        lhs, rhs = (cast(TensorType, value.type) for value in operands)
        return [TensorType((lhs.shape[0] + rhs.shape[0], *lhs.shape[1:]), lhs.element)]


class Gather(Operation):
    """`tt.gather %src[%indices] {axis}`: element [.., i, ..] is src[.., indices[.., i, ..], ..] along the axis."""

    name = "tt.gather"
    syntax = "$source `[` $indices `]` attr-dict `:` functional-type(operands, results)"
    pure = True
    source = operand()
    indices = operand()
    axis = integer()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [like(operands[1].type, element_type(operands[0].type))]
