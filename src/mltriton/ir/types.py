"""Types of values.

Level: all. Takes Python values; guarantees immutable interned objects (equality is identity), so types can be
compared with `is`. Text is MLIR's: `i32`, `f16`, `index`, `tensor<128x64xf16, #blocked>`, `!tt.ptr<f32>`,
`!tt.tensordesc<tensor<...>>`, `!ttg.memdesc<...>`.
"""

from __future__ import annotations

import math

from mltriton.ir.attributes import Attribute
from mltriton.ir.interned import InternedBase


class Type(InternedBase):
    """Base of all types."""

    __slots__ = ()

    def __str__(self) -> str:
        from mltriton.ir.printer import type_text  # Writing needs every type.

        return type_text(self)


class IntegerType(Type):
    """A signless integer of `width` bits; operations say whether they read it as signed. i1 is a boolean."""

    width: int


class FloatType(Type):
    """A floating-point type by its MLIR name; `width` in bits."""

    name: str
    width: int


class IndexType(Type):
    """MLIR's `index`: 64 bits here."""


class NoneType(Type):
    """The absence of a value."""


class PointerType(Type):
    """`!tt.ptr<pointee, address_space>`: to a scalar (1 = global memory, 3 = shared memory, 5 = thread-private
    scratch) or to a block.
    """

    pointee: Type
    address_space: int = 1


class TensorType(Type):
    """A ranked tensor of static shape; `encoding` says which warp owns what (None at the `tt` and `intrinsic`
    levels).
    """

    shape: tuple[int, ...]
    element: Type
    encoding: Attribute | None = None

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """What the elements take in memory."""
        return self.size * byte_width(self.element)

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """The same element and encoding with another shape."""
        return TensorType(shape, self.element, self.encoding)

    def with_element(self, element: Type) -> TensorType:
        """The same shape and encoding with another element."""
        return TensorType(self.shape, element, self.encoding)

    def with_encoding(self, encoding: Attribute | None) -> TensorType:
        """The same shape and element with another encoding."""
        return TensorType(self.shape, self.element, encoding)


class TensorDescType(Type):
    """`!tt.tensordesc<tensor<...>>`: describes a tensor in global memory from which blocks of type `block` are read."""

    block: TensorType


class MemDescType(Type):
    """`!ttg.memdesc<shape x element, encoding, #ttg.shared_memory, mutable>`: a block in shared memory."""

    shape: tuple[int, ...]
    element: Type
    encoding: Attribute | None = None
    mutable: bool = True


class TokenType(Type):
    """`!ttg.async.token`: what an asynchronous operation returns and a wait takes."""


class FunctionType(Type):
    """Parameters and results of a function."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]


I1, I8, I16, I32, I64 = (IntegerType(width) for width in (1, 8, 16, 32, 64))
F16, BF16, F32, F64 = FloatType("f16", 16), FloatType("bf16", 16), FloatType("f32", 32), FloatType("f64", 64)
F8E4M3, F8E5M2 = FloatType("f8E4M3FN", 8), FloatType("f8E5M2", 8)
INDEX = IndexType()
FLOATS: dict[str, FloatType] = {t.name: t for t in (F8E4M3, F8E5M2, F16, BF16, F32, F64)}


def element_type(type: Type) -> Type:
    """The element of a tensor; any other type is its own element."""
    return type.element if isinstance(type, TensorType) else type


def pointee(type: Type) -> Type:
    """What a pointer, or each pointer of a tensor, points to."""
    pointer = element_type(type)
    assert isinstance(pointer, PointerType)
    return pointer.pointee


def like(type: Type, element: Type) -> Type:
    """`element` in the shape and encoding of `type`: a tensor for a tensor, a scalar for a scalar."""
    return type.with_element(element) if isinstance(type, TensorType) else element


def block_of(type: Type) -> TensorType | None:
    """The block that a type is or points to; None for scalars, plain pointers and descriptors."""
    if isinstance(type, PointerType):
        type = type.pointee
    return type if isinstance(type, TensorType) else None


def shape_of(type: Type) -> tuple[int, ...]:
    """The shape of a tensor; () for a scalar."""
    return type.shape if isinstance(type, TensorType) else ()


def bit_width(type: Type) -> int:
    """Width in bits of a scalar type in memory (i1 takes 8, a pointer 64)."""
    if isinstance(type, IntegerType):
        return max(8, type.width)
    if isinstance(type, FloatType):
        return type.width
    if isinstance(type, PointerType | IndexType):
        return 64
    raise TypeError(f"{type} has no width")


def byte_width(type: Type) -> int:
    """Bytes that a scalar type takes in memory."""
    return bit_width(type) // 8
