"""Loads, stores and atomics through pointers. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute
from mltriton.ir.checks import axis, require, require_type
from mltriton.ir.constants import make_constant, splat_of
from mltriton.ir.definition import boolean, enum, integers, operand, optional
from mltriton.ir.operation import ALIKE, Operation, Value
from mltriton.ir.types import I1, FloatType, IntegerType, PointerType, TensorType, Type, element_type, like, pointee

__all__ = ["AddPtr", "AtomicCAS", "AtomicRMW", "Load", "Store", "loaded_type"]


class AddPtr(Operation, name="tt.addptr", pure=True, elementwise=True):
    """`tt.addptr %p, %offset`: pointers moved by `offset` elements (i32 or i64, scalar with scalar, tensor with
    tensor).
    """

    syntax = "$ptr `,` $offset attr-dict `:` type($ptr, result) `,` type($offset)"
    ptr = operand()
    offset = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[0].type]

    def verify(self) -> None:
        pointers(self, self.ptr)
        offset = element_type(self.offset.type)
        require(self, isinstance(offset, IntegerType), "the offset is an integer", "i32 or i64", self.offset.type)
        require_type(self, "the result", self.result.type, self.ptr.type)
        same_form = isinstance(self.ptr.type, TensorType) == isinstance(self.offset.type, TensorType)
        require(self, same_form, "pointer and offset are scalars or blocks", self.ptr.type, self.offset.type)

    def fold(self) -> Value | Attribute | None:
        return self.ptr if splat_of(self.offset) == 0 else None


class _Memory(Operation):
    """Base of loads and stores: hints that never change the result."""

    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")
    volatile = boolean(text="isVolatile")

    def _verify_access(self, ptr: Value, value: Type, mask: Value | None, checked: Sequence[int]) -> None:
        """`value` is what the pointer points to; masks go with pointers, boundary checks with block pointers."""
        pointers(self, ptr)
        require_type(self, "the value", value, loaded_type(ptr.type))
        if is_block_pointer(ptr.type):
            require(self, mask is None, "a block pointer takes no mask")
            for dim in checked:
                axis(self, dim, cast(TensorType, value).rank)
            return
        require(self, not checked, "boundary checks need a block pointer", "!tt.ptr<tensor<...>>", ptr.type)
        if mask is not None:
            require_type(self, "the mask", mask.type, like(ptr.type, I1))


class Load(_Memory, name="tt.load", reads=True, encodings=ALIKE):
    """Load from a pointer, a tensor of pointers (mask: i1, false elements become `other` or unspecified), or a block
    pointer (`boundary_check` lists the dimensions that are checked; elements outside become 0, or NaN with
    `padding`).
    """

    syntax = (
        "$ptr (`,` $mask^)? (`,` $other^)? "
        "any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    old_syntax = ("$ptr (`,` $mask^)? (`,` $other^)? attr-dict `:` type(inferred)",)
    ptr = operand()
    mask = optional()
    other = optional()
    boundary_check = integers(text="boundaryCheck")
    padding = enum("padding")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [loaded_type(operands[0].type)]

    def verify(self) -> None:
        self._verify_access(self.ptr, self.result.type, self.mask, self.boundary_check)
        if self.other is not None:
            require(self, self.mask is not None, "`other` needs a mask")
            require_type(self, "other", self.other.type, self.result.type)

    def fold(self) -> Value | Attribute | None:
        known = splat_of(self.mask) if self.mask is not None else None
        if known == 1:
            self.set_operands([self.ptr], (1, 0, 0))
        elif known == 0 and not self.volatile:
            return self.other or make_constant(self.result.type, (0,))
        return None


class Store(_Memory, name="tt.store", writes=True, encodings=ALIKE):
    """Store to a pointer, a tensor of pointers (where the mask is true), or a block pointer (inside the tensor, along
    `boundary_check`).
    """

    syntax = (
        "$ptr `,` $value (`,` $mask^)? "
        "any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    old_syntax = ("$ptr `,` $value (`,` $mask^)? attr-dict `:` type($value)",)
    ptr = operand()
    value = operand()
    mask = optional()
    boundary_check = integers(text="boundaryCheck")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []

    def verify(self) -> None:
        self._verify_access(self.ptr, self.value.type, self.mask, self.boundary_check)

    def fold(self) -> Value | Attribute | None:
        if self.mask is not None and splat_of(self.mask) == 1:
            self.set_operands([self.ptr, self.value], (1, 1, 0))
        return None


def pointers(op: Operation, value: Value) -> None:
    """The value is a pointer or a tensor of pointers."""
    is_pointer = isinstance(element_type(value.type), PointerType)
    require(op, is_pointer, "works on pointers", "!tt.ptr<...> or tensor<...x!tt.ptr<...>>", value.type)


def is_block_pointer(type: Type) -> bool:
    """Whether a pointer points to a block."""
    return isinstance(type, PointerType) and isinstance(type.pointee, TensorType)


def loaded_type(pointer: Type) -> Type:
    """What a load from a value of type `pointer` gives."""
    return like(pointer, pointee(pointer))


FLOAT_ATOMICS = ("fadd", "max", "min", "exch")


class AtomicRMW(Operation, name="tt.atomic_rmw", reads=True, writes=True, encodings=ALIKE):
    """`tt.atomic_rmw fadd, acq_rel, gpu, %ptr, %value, %mask`: gives the old value (unspecified where masked off)."""

    syntax = (
        "$kind `,` $sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` functional-type(operands, results)"
    )
    kind = enum("rmw", text="atomic_rmw_op")
    sem = enum("sem", "acq_rel")
    scope = enum("scope", "gpu")
    ptr = operand()
    value = operand()
    mask = optional()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[1].type]

    def verify(self) -> None:
        pointers(self, self.ptr)
        require_type(self, "the value", self.value.type, loaded_type(self.ptr.type))
        require_type(self, "the result", self.result.type, self.value.type)
        if self.mask is not None:
            require_type(self, "the mask", self.mask.type, like(self.ptr.type, I1))
        is_float = isinstance(element_type(self.value.type), FloatType)
        fits = self.kind in FLOAT_ATOMICS if is_float else self.kind != "fadd"
        require(self, fits, f"{self.kind} does not work on these elements", found=self.value.type)


class AtomicCAS(Operation, name="tt.atomic_cas", reads=True, writes=True, encodings=ALIKE):
    """`tt.atomic_cas acq_rel, gpu, %ptr, %cmp, %value`: gives the old value."""

    syntax = "$sem `,` $scope `,` $ptr `,` $cmp `,` $value attr-dict `:` functional-type(operands, results)"
    sem = enum("sem", "acq_rel")
    scope = enum("scope", "gpu")
    ptr = operand()
    cmp = operand()
    value = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[2].type]

    def verify(self) -> None:
        pointers(self, self.ptr)
        for what, value in (("the compared value", self.cmp), ("the value", self.value), ("the result", self.result)):
            require_type(self, what, value.type, loaded_type(self.ptr.type))
