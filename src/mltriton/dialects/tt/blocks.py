"""Block pointers and tensor descriptors. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import descriptor, permutation, pointer, require, require_type, scalars, tensor
from mltriton.ir.constants import splat_of
from mltriton.ir.definition import enum, integers, operand, variadic
from mltriton.ir.operation import ALIKE, Operation, Value
from mltriton.ir.rejection import reject
from mltriton.ir.types import I32, I64, FloatType, TensorDescType, TensorType, Type, element_type

__all__ = ["Advance", "DescriptorLoad", "DescriptorReduce", "DescriptorStore", "MakeTensorDesc", "MakeTensorPtr"]


class MakeTensorPtr(Operation, name="tt.make_tensor_ptr", pure=True, encodings=ALIKE):
    """`tt.make_tensor_ptr %base, [%shape], [%strides], [%offsets] {order}`: a block pointer. Shape and strides are
    i64, offsets i32, all in elements.
    """

    syntax = "$base `,` `[` $shape `]` `,` `[` $strides `]` `,` `[` $offsets `]` attr-dict `:` short<tt.ptr>(result)"
    base = operand()
    shape = variadic()
    strides = variadic()
    offsets = variadic()
    order = integers()

    def verify(self) -> None:
        base, result = pointer(self, "the base", self.base), pointer(self, "the result", self.result)
        if not isinstance(result.pointee, TensorType):
            reject(self, "the result points to no block", expected="!tt.ptr<tensor<...>>", found=str(result))
        rank = result.pointee.rank
        require_type(self, "an element of the block", result.pointee.element, base.pointee)
        scalars(self, "the sizes", self.shape, I64, rank)
        scalars(self, "the strides", self.strides, I64, rank)
        scalars(self, "the offsets", self.offsets, I32, rank)
        permutation(self, self.order, rank)


class Advance(Operation, name="tt.advance", pure=True, encodings=ALIKE):
    """`tt.advance %p, [%offsets]`: a block pointer moved by i32 offsets in elements."""

    syntax = "$ptr `,` `[` $offsets `]` attr-dict `:` short<tt.ptr>($ptr, result)"
    ptr = operand()
    offsets = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[0].type]

    def verify(self) -> None:
        type = pointer(self, "the pointer", self.ptr)
        require_type(self, "the result", self.result.type, type)
        if not isinstance(type.pointee, TensorType):
            reject(self, "advances block pointers", expected="!tt.ptr<tensor<...>>", found=str(type))
        scalars(self, "the offsets", self.offsets, I32, type.pointee.rank)

    def fold(self) -> Value | Attribute | None:
        return self.ptr if all(splat_of(offset) == 0 for offset in self.offsets) else None


class MakeTensorDesc(Operation, name="tt.make_tensor_descriptor", pure=True):
    """`tt.make_tensor_descriptor %base, [%shape], [%strides]`: shape i32, strides i64 in elements (the last one is
    1); `padding` for elements outside.
    """

    syntax = (
        "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` "
        "short<tt.ptr>($base) `,` short<tt.tensordesc>(result)"
    )
    base = operand()
    shape = variadic()
    strides = variadic()
    padding = enum("padding", "pad_zero")

    def verify(self) -> None:
        verify_shape_and_strides(self, self.base, self.shape, self.strides, self.result, I32)


class DescriptorLoad(Operation, name="tt.descriptor_load", reads=True, encodings=ALIKE):
    """`tt.descriptor_load %desc[%indices]`: the block at i32 `indices`; elements outside the tensor are the padding."""

    old_names = ("tt.experimental_descriptor_load",)
    syntax = (
        "$desc `[` $indices `]` any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($desc) `->` type(result)"
    )
    desc = operand()
    indices = variadic()
    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [cast(TensorDescType, operands[0].type).block]

    def verify(self) -> None:
        verify_descriptor_access(self, self.desc, self.indices, tensor(self, "the result", self.result))


class DescriptorStore(Operation, name="tt.descriptor_store", writes=True, encodings=ALIKE):
    """`tt.descriptor_store %desc[%indices], %value`: elements outside the tensor are dropped."""

    old_names = ("tt.experimental_descriptor_store",)
    syntax = "$desc `[` $indices `]` `,` $value attr-dict `:` type($desc) `,` type($value)"
    desc = operand()
    value = operand()
    indices = variadic()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []

    def verify(self) -> None:
        verify_descriptor_access(self, self.desc, self.indices, tensor(self, "the value", self.value))


# Atomic updates of a descriptor's blocks, as `tt.atomic_rmw` names those of integers; "add" is also of floats.
REDUCTIONS = ("add", "min", "max", "umin", "umax", "and", "or", "xor")


class DescriptorReduce(DescriptorStore, name="tt.descriptor_reduce"):
    """`tt.descriptor_reduce add, %desc[%indices], %value`: each element is combined with that of the tensor by a
    relaxed atomic update, which orders nothing; elements outside the tensor are dropped.
    """

    old_names = ("tt.experimental_descriptor_reduce",)
    syntax = "$kind `,` $desc `[` $indices `]` `,` $value attr-dict `:` type($desc) `,` type($value)"
    kind = enum("descriptor_reduce")

    def verify(self) -> None:
        super().verify()
        require(self, self.kind in REDUCTIONS, "no such update of a block", ", ".join(REDUCTIONS), self.kind)
        element = tensor(self, "the value", self.value).element
        floats = isinstance(element, FloatType)
        require(self, self.kind == "add" or not floats, f"{self.kind} does not work on these elements", found=element)

    @property
    def update(self) -> str:
        """The update of each element, as `tt.atomic_rmw` names it."""
        floats = isinstance(element_type(self.value.type), FloatType)
        return "fadd" if floats else self.kind


def verify_shape_and_strides(
    op: Operation, base: Value, shape: list[Value], strides: list[Value], result: Value, size: Type
) -> None:
    """The operands of what makes a descriptor: a size of that type and an i64 stride for each dimension."""
    found, block = pointer(op, "the base", base), descriptor(op, result)
    require_type(op, "an element of the block", block.element, found.pointee)
    scalars(op, "the sizes", shape, size, block.rank)
    scalars(op, "the strides", strides, I64, block.rank)


def verify_descriptor_access(op: Operation, desc: Value, indices: list[Value], found: TensorType) -> None:
    """The block is the descriptor's, maybe without first dimensions of size 1, or a part of it: one warp's."""
    block = descriptor(op, desc)
    dropped = block.rank - found.rank
    part = dropped >= 0 and block.shape[:dropped] == (1,) * dropped
    part = part and all(size <= whole for size, whole in zip(found.shape, block.shape[dropped:], strict=True))
    require(op, part and found.element is block.element, "the block is not the descriptor's", block, found)
    scalars(op, "the indices", indices, I32, block.rank)
