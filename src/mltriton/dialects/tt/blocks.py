"""Block pointers and tensor descriptors. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute
from mltriton.ir.definition import enum, integers, operand, variadic
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import TensorDescType, Type


class MakeTensorPtr(Operation):
    """`tt.make_tensor_ptr %base, [%shape], [%strides], [%offsets] {order}`: a block pointer. Shape and strides are
    i64, offsets i32, all in elements.
    """

    name = "tt.make_tensor_ptr"
    syntax = "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` short<tt.ptr>(result)"
    pure = True
    base = operand()
    shape = variadic()
    strides = variadic()
    offsets = variadic()
    order = integers()


class Advance(Operation):
    """`tt.advance %p, [%offsets]`: a block pointer moved by i32 offsets in elements."""

    name = "tt.advance"
    syntax = "$ptr `,` `[` $offsets `]` attr-dict `:` short<tt.ptr>($ptr, result)"
    pure = True
    ptr = operand()
    offsets = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[0].type]


class MakeTensorDesc(Operation):
    """`tt.make_tensor_descriptor %base, [%shape], [%strides]`: shape i32, strides i64 in elements (the last one is
    1); `padding` for elements outside.
    """

    name = "tt.make_tensor_descriptor"
    syntax = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` "
        "short<tt.ptr>($base) `,` short<tt.tensordesc>(result)"
    )
    pure = True
    base = operand()
    shape = variadic()
    strides = variadic()
    padding = enum("padding", "pad_zero")


class DescriptorLoad(Operation):
    """`tt.descriptor_load %desc[%indices]`: the block at i32 `indices`; elements outside the tensor are the padding."""

    name = "tt.descriptor_load"
    old_names = ("tt.experimental_descriptor_load",)
    syntax = (
        "$desc `[` $indices `]` any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($desc) `->` type(result)"
    )
    reads = True
    desc = operand()
    indices = variadic()
    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [cast(TensorDescType, operands[0].type).block]


class DescriptorStore(Operation):
    """`tt.descriptor_store %desc[%indices], %value`: elements outside the tensor are dropped."""

    name = "tt.descriptor_store"
    old_names = ("tt.experimental_descriptor_store",)
    syntax = "$desc `[` $indices `]` `,` $value attr-dict `:` type($desc) `,` type($value)"
    writes = True
    desc = operand()
    value = operand()
    indices = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []
