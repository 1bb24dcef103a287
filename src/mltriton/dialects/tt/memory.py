"""Loads, stores and atomics through pointers. Part of the `tt` dialect (see the package)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mltriton.ir.attributes import Attribute
from mltriton.ir.definition import boolean, enum, integers, operand, optional
from mltriton.ir.operation import Operation, Value
from mltriton.ir.types import PointerType, TensorType, Type


class AddPtr(Operation):
    """`tt.addptr %p, %offset`: pointers moved by `offset` elements (i32 or i64, scalar with scalar, tensor with
    tensor).
    """

    name = "tt.addptr"
    syntax = "$ptr `,` $offset attr-dict `:` type($ptr, result) `,` type($offset)"
    pure = True
    elementwise = True
    ptr = operand()
    offset = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[0].type]


class _Memory(Operation):
    """Base of loads and stores: hints that never change the result."""

    cache = enum("cache", "none")
    evict = enum("evict", "evict_normal")
    volatile = boolean(text="isVolatile")


class Load(_Memory):
    """Load from a pointer, a tensor of pointers (mask: i1, false elements become `other` or unspecified), or a block
    pointer (`boundary_check` lists the dimensions that are checked; elements outside become 0, or NaN with
    `padding`).
    """

    name = "tt.load"
    syntax = (
        "$ptr (`,` $mask^)? (`,` $other^)? "
        "any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    old_syntax = ("$ptr (`,` $mask^)? (`,` $other^)? attr-dict `:` type(inferred)",)
    reads = True
    ptr = operand()
    mask = optional()
    other = optional()
    boundary_check = integers(text="boundaryCheck")
    padding = enum("padding")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [loaded_type(operands[0].type)]


class Store(_Memory):
    """Store to a pointer, a tensor of pointers (where the mask is true), or a block pointer (inside the tensor, along
    `boundary_check`).
    """

    name = "tt.store"
    syntax = (
        "$ptr `,` $value (`,` $mask^)? "
        "any-order(`cacheModifier` `=` $cache^ | `evictionPolicy` `=` $evict^) "
        "attr-dict `:` type($ptr)"
    )
    old_syntax = ("$ptr `,` $value (`,` $mask^)? attr-dict `:` type($value)",)
    writes = True
    ptr = operand()
    value = operand()
    mask = optional()
    boundary_check = integers(text="boundaryCheck")

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return []


def loaded_type(pointer: Type) -> Type:
    """What a load from a value of type `pointer` gives."""
    if isinstance(pointer, TensorType):
        return pointer.with_element(cast(PointerType, pointer.element).pointee)
    return cast(PointerType, pointer).pointee


class AtomicRMW(Operation):
    """`tt.atomic_rmw fadd, acq_rel, gpu, %ptr, %value, %mask`: gives the old value (unspecified where masked off)."""

    name = "tt.atomic_rmw"
    syntax = (
        "$kind `,` $sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` functional-type(operands, results)"
    )
    reads = True
    writes = True
    kind = enum("rmw", text="atomic_rmw_op")
    sem = enum("sem", "acq_rel")
    scope = enum("scope", "gpu")
    ptr = operand()
    value = operand()
    mask = optional()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[1].type]


class AtomicCAS(Operation):
    """`tt.atomic_cas acq_rel, gpu, %ptr, %cmp, %value`: gives the old value."""

    name = "tt.atomic_cas"
    syntax = "$sem `,` $scope `,` $ptr `,` $cmp `,` $value attr-dict `:` functional-type(operands, results)"
    reads = True
    writes = True
    sem = enum("sem", "acq_rel")
    scope = enum("scope", "gpu")
    ptr = operand()
    cmp = operand()
    value = operand()

    @classmethod
    def infer(cls, operands: Sequence[Value], attributes: dict[str, Attribute]) -> Sequence[Type]:
        return [operands[2].type]
