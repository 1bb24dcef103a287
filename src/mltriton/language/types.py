"""Types of values as the language sees them: element types with signedness, pointers, blocks, descriptors.

Takes names and shapes; guarantees immutable types that compare by value, with upstream's names (`fp32`, `int8`, and
short as in signatures: `i8`, `u8`, `*fp16`). Signedness lives here only: IR integers are signless. Imports nothing
of the compiler (`to_ir` does, when it is called).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from mltriton.errors import ConstexprError, NameNotFoundError, PowerOfTwoError, TypeMismatchError
from mltriton.language.constants import unwrap

if TYPE_CHECKING:
    from mltriton.ir.types import Type

MAX_BLOCK_ELEMENTS = 1 << 20


class const:  # noqa: N801 - upstream's name
    """The annotation of a pointer parameter that the kernel must not write through."""


class Kind(IntEnum):
    """The order in which a Python scalar gives way to a tensor.

    A scalar of an equal or lower kind takes the tensor's dtype.
    """

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


class dtype:  # noqa: N801 - upstream's name
    """An element type, and the base of all types.

    `name` is upstream's (`int32`, `fp16`), `short` the signature's (`i32`, `fp16`), `bits` the width.
    """

    __slots__ = ("bits", "mantissa", "name", "short")

    SINT_TYPES: ClassVar[list[str]] = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar[list[str]] = ["int1", "uint8", "uint16", "uint32", "uint64"]
    STANDARD_FP_TYPES: ClassVar[list[str]] = ["fp16", "bf16", "fp32", "fp64"]
    FP_TYPES: ClassVar[list[str]] = ["fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", *STANDARD_FP_TYPES]
    OTHER_TYPES: ClassVar[list[str]] = ["void"]

    def __new__(cls, *args: Any, **named: Any) -> Self:
        if cls is dtype and len(args) + len(named) == 1:  # As programs say it: tl.dtype("fp32"), which is tl.float32,
            return cast(Self, _known(*map(unwrap, args), **named))  # since launches know a constant by what it is.
        return super().__new__(cls)

    def __init__(self, name: str, short: str | None = None, bits: int = 0, mantissa: int | None = None) -> None:
        if short is None:
            return
        self.name: str = name
        self.short: str = short
        self.bits: int = bits
        self.mantissa: int | None = mantissa

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other := unwrap(other), dtype) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"tl.{self.codegen_name()}"

    def codegen_name(self) -> str:
        """The name in `mltriton.language`: `float32` for `fp32`."""
        return self.name.replace("bf", "bfloat") if self.name == "bf16" else self.name.replace("fp", "float", 1)

    def mangle(self) -> str:
        """The name in signatures and symbol names."""
        return self.short

    @property
    def scalar(self) -> dtype:
        """The element type of a block; of anything else the type itself."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a block; () otherwise."""
        return ()

    @property
    def primitive_bitwidth(self) -> int:
        """Width in bits."""
        return self.scalar.bits

    @property
    def int_bitwidth(self) -> int:
        """Width in bits of an integer type."""
        return self.scalar.bits

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory; a bool takes one."""
        return max(8, self.scalar.bits) // 8

    @property
    def fp_mantissa_width(self) -> int:
        """Stored mantissa bits of a float type."""
        if self.mantissa is None:
            raise TypeMismatchError(f"{self} has no mantissa", expected="a floating-point dtype", found=str(self))
        return self.mantissa

    @property
    def exponent_bias(self) -> int:
        """What a float's stored exponent is above its own: half its range, unless the name says it (`fp8e4b15`)."""
        own = self.name.partition("b")[2] if self.is_packed() else ""
        return int(own or (1 << (self.scalar.bits - self.fp_mantissa_width - 2)) - 1)

    def with_element(self, element: dtype) -> dtype:
        """`element` in the shape of this type."""
        return element

    def is_floating(self) -> bool:
        """Whether it is a float of any width."""
        return self.mantissa is not None

    def is_standard_floating(self) -> bool:
        """Whether it is a float of 16 bits or more."""
        return self.mantissa is not None and self.bits >= 16

    def is_int(self) -> bool:
        """Whether it is an integer or a bool."""
        return self.is_int_signed() or self.is_int_unsigned()

    def is_int_signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.short[0] == "i" and self.bits > 1

    def is_int_unsigned(self) -> bool:
        """Whether it is an unsigned integer; a bool counts as one."""
        return self.short[0] == "u" or self.short == "i1"

    def is_bool(self) -> bool:
        """Whether it is int1."""
        return self.short == "i1"

    def is_ptr(self) -> bool:
        """Whether it is a pointer."""
        return False

    def is_const(self) -> bool:
        """Whether it is a pointer that must not be written through."""
        return False

    def is_block(self) -> bool:
        """Whether it is a block (a tensor of static shape)."""
        return False

    def is_void(self) -> bool:
        """Whether it is the type of nothing."""
        return self.name == "void"

    def is_fp8(self) -> bool:
        """Whether it is one of the 8-bit floats."""
        return self.mantissa is not None and self.bits == 8

    def is_packed(self) -> bool:
        """Whether it is an 8-bit float that the IR has no type for: a byte that converts (`packed_floats.py`)."""
        return self.short in ("fp8e4b8", "fp8e4b15", "fp8e5b16")

    def __getattr__(self, name: str) -> Callable[[], bool]:
        """`is_fp16()`, `is_int32()`, ...: upstream's test for each dtype."""
        if name.startswith("is_") and name[3:] in _BY_NAME:
            return partial(self._is_named, name[3:])
        raise AttributeError(f"a dtype has no attribute {name!r}")

    @staticmethod
    def is_dtype(name: str) -> bool:
        """Whether an element type has that name."""
        return name in _BY_NAME

    def _is_named(self, name: str) -> bool:
        return self.name == name

    def kind(self) -> Kind:
        """Bool, integer or float."""
        return Kind.FLOATING if self.is_floating() else Kind.BOOLEAN if self.is_bool() else Kind.INTEGRAL

    def get_int_min_value(self) -> int:
        """The smallest integer it holds."""
        return -(1 << (self.bits - 1)) if self.is_int_signed() else 0

    def get_int_max_value(self) -> int:
        """The largest integer it holds."""
        return (1 << (self.bits - 1)) - 1 if self.is_int_signed() else (1 << self.bits) - 1

    def to_ir(self) -> Type:
        """The IR type; `TypeMismatchError` for dtypes that the IR does not have."""
        from mltriton.ir.types import FLOATS, IntegerType  # A launch has types and needs no IR.

        if self.is_int():
            return IntegerType(self.bits)
        if self.is_packed():
            return IntegerType(8)
        if self.name not in _IR_FLOATS:
            message, expected = f"values of type {self} cannot be computed with", f"one of {', '.join(_IR_FLOATS)}"
            raise TypeMismatchError(message, expected=expected, found=str(self))
        return FLOATS[_IR_FLOATS[self.name]]


class pointer_type(dtype):  # noqa: N801
    """A pointer to `element_ty`: a scalar, or a block for a block pointer. `const` forbids stores."""

    __slots__ = ("address_space", "const", "element_ty")

    def __init__(self, element_ty: dtype, address_space: int = 1, const: bool = False) -> None:
        self.element_ty: dtype = unwrap(element_ty)
        self.address_space = address_space
        self.const = const
        if not isinstance(self.element_ty, dtype):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeMismatchError("a pointer must point to a dtype", expected="a dtype", found=repr(self.element_ty))
        prefix = "const_pointer" if const else "pointer"
        space = "" if address_space == 1 else f", {address_space}"
        super().__init__(f"{prefix}<{self.element_ty}{space}>", f"{'*k' if const else '*'}{self.element_ty.short}", 64)

    def __repr__(self) -> str:
        return self.name

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def to_ir(self) -> Type:
        from mltriton.ir.types import PointerType  # A launch has types and needs no IR.

        return PointerType(self.element_ty.to_ir(), self.address_space)


class block_type(dtype):  # noqa: N801
    """A block of static `shape`: every dimension a power of two, at most 2**20 elements (`PowerOfTwoError`)."""

    __slots__ = ("_shape", "element_ty")

    def __init__(self, element_ty: dtype, shape: Sequence[int]) -> None:
        self.element_ty: dtype = unwrap(element_ty)
        self._shape = checked_shape(shape)
        if not self._shape:
            raise PowerOfTwoError("a block needs at least one dimension", hint="a value without dimensions is a scalar")
        text = "x".join(map(str, self._shape))
        super().__init__(f"<{text}x{self.element_ty}>", f"{text}x{self.element_ty.short}", self.element_ty.bits)

    def __repr__(self) -> str:
        return self.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self._shape)

    def with_element(self, element: dtype) -> dtype:
        return block_type(element, self._shape)

    def is_int_signed(self) -> bool:
        return self.element_ty.is_int_signed()

    def is_int_unsigned(self) -> bool:
        return self.element_ty.is_int_unsigned()

    def is_bool(self) -> bool:
        return self.element_ty.is_bool()

    def is_floating(self) -> bool:
        return self.element_ty.is_floating()

    def is_block(self) -> bool:
        return True

    def to_ir(self) -> Type:
        from mltriton.ir.types import TensorType  # A launch has types and needs no IR.

        return TensorType(self._shape, self.element_ty.to_ir())


class tensor_descriptor_type(dtype):  # noqa: N801
    """A descriptor of a tensor in global memory, read and written in blocks of type `block`; what lies outside is
    read as `padding` (the IR's keyword).
    """

    __slots__ = ("block", "padding")

    def __init__(self, block: block_type, padding: str = "pad_zero") -> None:
        self.block = block
        self.padding = padding
        suffix = "" if padding == "pad_zero" else f", {padding}"
        super().__init__(f"tensor_descriptor{block.name}{suffix}", f"tensordesc<{block.short}>", 0)

    def __repr__(self) -> str:
        return self.name

    def to_ir(self) -> Type:
        from mltriton.ir.types import TensorDescType, TensorType  # A launch has types and needs no IR.

        return TensorDescType(cast(TensorType, self.block.to_ir()))


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """A block's shape as a tuple of integers; `PowerOfTwoError` if it cannot be one."""
    plain: object = unwrap(shape)
    if not isinstance(plain, tuple | list):
        raise PowerOfTwoError(
            "a block's shape is a tuple",
            expected="a tuple such as (128,) or (64, 64)",
            found=repr(plain),
            hint=f"write ({plain},)" if isinstance(plain, int) else None,
        )
    sizes = tuple(cast("Sequence[int]", plain))
    for i, size in enumerate(sizes):
        if not isinstance(size, int) or isinstance(size, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConstexprError(
                f"dimension {i} of a block's shape must be known when compiling",
                expected="an int or a tl.constexpr",
                found=str(size),
                hint="declare the kernel parameter as `NAME: tl.constexpr`",
                upstream=f"Shape element {i} must have type `constexpr[int]`, got `{type(size).__name__}`",
            )
        if size <= 0 or size & (size - 1):
            above = 1 << max(size, 1).bit_length()
            hint = f"use {above} and mask off what lies beyond {size} (triton.next_power_of_2 computes it)"
            raise PowerOfTwoError(
                f"dimension {i} of a block must be a power of two",
                upstream=f"Shape element {i} must be a power of 2",
                found=f"{size} in shape {list(sizes)}",
                hint=hint if size > 0 else None,
            )
    if math.prod(sizes) > MAX_BLOCK_ELEMENTS:
        raise PowerOfTwoError(
            "a block has too many elements",
            expected=f"at most {MAX_BLOCK_ELEMENTS}",
            found=f"{math.prod(sizes)} in shape {list(sizes)}",
            hint="use smaller blocks and a loop",
            upstream=f"numel ({math.prod(sizes)}) exceeds triton maximum tensor numel ({MAX_BLOCK_ELEMENTS})",
        )
    return sizes


void = dtype("void", "V", 0)
int1, int8, int16, int32, int64 = (dtype(f"int{bits}", f"i{bits}", bits) for bits in (1, 8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{bits}", f"u{bits}", bits) for bits in (8, 16, 32, 64))
float16, float32, float64 = dtype("fp16", "fp16", 16, 10), dtype("fp32", "fp32", 32, 23), dtype("fp64", "fp64", 64, 52)
bfloat16 = dtype("bf16", "bf16", 16, 7)
float8e4nv, float8e5 = dtype("fp8e4nv", "fp8e4nv", 8, 3), dtype("fp8e5", "fp8e5", 8, 2)
# Formats of single GPU generations: they are loaded, stored and converted, and have no arithmetic of their own.
float8e4b8, float8e4b15, float8e5b16 = (
    dtype(f"fp8{name}", f"fp8{name}", 8, 3 - (name[1] == "5")) for name in ("e4b8", "e4b15", "e5b16")
)
pi32_t = pointer_type(int32)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOATS = (float8e4nv, float8e5, float16, bfloat16, float32, float64)
DTYPES = (int1, *SIGNED, *UNSIGNED, *FLOATS, float8e4b8, float8e4b15, float8e5b16, void)
_BY_NAME: dict[str, dtype] = {item.name: item for item in DTYPES}
_BY_SHORT: dict[str, dtype] = {item.short: item for item in DTYPES}
_IR_FLOATS = {"fp8e4nv": "f8E4M3FN", "fp8e5": "f8E5M2", "fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64"}


def by_name(name: str) -> dtype:
    """The type with a signature's name (`fp32`, `i64`, `*bf16`, `*ki32`: read only); `NameNotFoundError` for others."""
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(by_name(name[2 if const else 1 :]), const=const)
    return _BY_NAME.get(name) or _known(name, _BY_SHORT)


def _known(name: str, names: dict[str, dtype] = _BY_NAME) -> dtype:
    """The element type of that name; `NameNotFoundError` where there is none."""
    if name not in names:
        raise NameNotFoundError(f"there is no dtype {name!r}", expected=f"one of {', '.join(names)}", found=name)
    return names[name]


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer dtype of that width and signedness."""
    return by_name(f"{'i' if signed or bitwidth == 1 else 'u'}{bitwidth}")
