"""Types: names, widths, signedness, shapes, and their IR types."""

from __future__ import annotations

import copy
import pickle

import pytest

import mltriton.language as tl
from mltriton.errors import ConstexprError, NameNotFoundError, PowerOfTwoError, TypeMismatchError
from mltriton.language import types
from mltriton.language.types import by_name

# dtype: name, signature name, bits, bytes in memory, IR text.
FACTS = [
    (tl.int1, "int1", "i1", 1, 1, "i1"),
    (tl.int8, "int8", "i8", 8, 1, "i8"),
    (tl.uint8, "uint8", "u8", 8, 1, "i8"),
    (tl.int16, "int16", "i16", 16, 2, "i16"),
    (tl.uint16, "uint16", "u16", 16, 2, "i16"),
    (tl.int32, "int32", "i32", 32, 4, "i32"),
    (tl.uint32, "uint32", "u32", 32, 4, "i32"),
    (tl.int64, "int64", "i64", 64, 8, "i64"),
    (tl.uint64, "uint64", "u64", 64, 8, "i64"),
    (tl.float8e4nv, "fp8e4nv", "fp8e4nv", 8, 1, "f8E4M3FN"),
    (tl.float8e5, "fp8e5", "fp8e5", 8, 1, "f8E5M2"),
    (tl.float16, "fp16", "fp16", 16, 2, "f16"),
    (tl.bfloat16, "bf16", "bf16", 16, 2, "bf16"),
    (tl.float32, "fp32", "fp32", 32, 4, "f32"),
    (tl.float64, "fp64", "fp64", 64, 8, "f64"),
]


@pytest.mark.parametrize(("kind", "name", "short", "bits", "size", "text"), FACTS)
def test_dtype(kind: tl.dtype, name: str, short: str, bits: int, size: int, text: str):
    assert (str(kind), kind.mangle(), kind.primitive_bitwidth, kind.itemsize) == (name, short, bits, size)
    assert str(kind.to_ir()) == text
    assert by_name(short) is kind
    assert by_name(name) is kind
    assert repr(by_name("*" + short)) == f"pointer<{name}>"
    assert eval(repr(kind), {"tl": tl}) == kind
    assert str(tl.pointer_type(kind).to_ir()) == f"!tt.ptr<{text}>"
    assert str(tl.block_type(kind, (4, 8)).to_ir()) == f"tensor<4x8x{text}>"


def test_questions():
    assert [t.name for t in types.DTYPES if t.is_int_signed()] == ["int8", "int16", "int32", "int64"]
    assert [t.name for t in types.DTYPES if t.is_int_unsigned()] == ["int1", "uint8", "uint16", "uint32", "uint64"]
    floats = ["fp8e4nv", "fp8e5", "fp16", "bf16", "fp32", "fp64", "fp8e4b8", "fp8e4b15", "fp8e5b16"]
    assert [t.name for t in types.DTYPES if t.is_floating()] == floats
    assert [t.name for t in types.DTYPES if t.is_standard_floating()] == ["fp16", "bf16", "fp32", "fp64"]
    assert [t.name for t in types.DTYPES if t.is_fp8()] == [name for name in floats if "fp8" in name]
    assert tl.float32.is_fp32() and not tl.float32.is_fp16() and tl.uint8.is_uint8() and tl.int1.is_int1()
    assert not hasattr(tl.float32, "is_fp31")
    assert (tl.int8.get_int_min_value(), tl.int8.get_int_max_value(), tl.uint8.get_int_max_value()) == (-128, 127, 255)
    assert (tl.float16.fp_mantissa_width, tl.bfloat16.fp_mantissa_width) == (10, 7)
    assert tl.get_int_dtype(16, signed=False) == tl.uint16
    assert str(tl.dtype(tl.constexpr("uint16"))) == "uint16" and tl.dtype(tl.constexpr("fp32")) == tl.float32


def test_equality():
    assert tl.float32 == tl.constexpr(tl.float32) and tl.constexpr(tl.float32) == tl.float32
    assert tl.block_type(tl.int8, [4]) == tl.block_type(tl.int8, (tl.constexpr(4),)) != tl.block_type(tl.uint8, [4])
    assert tl.pointer_type(tl.int8) != tl.pointer_type(tl.int8, const=True)
    assert len({tl.pointer_type(tl.int8), tl.pointer_type(tl.int8), tl.int8}) == 2
    assert pickle.loads(pickle.dumps(tl.float16)) == copy.deepcopy(tl.float16) == tl.float16


def test_pointers_and_descriptors():
    const = by_name("*kfp16")
    assert const.is_const() and const.is_ptr() and const.mangle() == "*kfp16" and not const.is_int()
    assert str(tl.pointer_type(tl.block_type(tl.float32, (8, 4))).to_ir()) == "!tt.ptr<tensor<8x4xf32>>"
    described = tl.tensor_descriptor_type(tl.block_type(tl.float16, (8, 16)))
    assert str(described.to_ir()) == "!tt.tensordesc<tensor<8x16xf16>>"
    with pytest.raises(TypeMismatchError, match="point to a dtype"):
        tl.pointer_type(3)  # pyright: ignore[reportArgumentType]


def test_block_of_pointers():
    block = tl.block_type(tl.pointer_type(tl.int8), (4,))
    assert block.is_block() and not block.is_ptr() and block.scalar.is_ptr() and block.numel == 4
    assert block.with_element(tl.float32) == tl.block_type(tl.float32, (4,))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((48,), "use 64 and mask"),
        ((0,), "power of two"),
        ((-4,), "power of two"),
        ((2.0,), "known when compiling"),
        ((True,), "known when compiling"),
        ((), "at least one dimension"),
        ((1 << 20, 2), "at most 1048576"),
        (16, r"write \(16,\)"),
    ],
)
def test_wrong_shapes(shape: object, text: str):
    with pytest.raises((PowerOfTwoError, ConstexprError), match=text):
        tl.block_type(tl.float32, shape)  # pyright: ignore[reportArgumentType]


def test_wrong_names():
    with pytest.raises(NameNotFoundError, match="there is no dtype 'fp33'"):
        by_name("fp33")
    with pytest.raises(TypeMismatchError, match="cannot be computed with"):
        tl.void.to_ir()
    assert str(tl.float8e4b15.to_ir()) == "i8"
    with pytest.raises(TypeMismatchError, match="no mantissa"):
        _ = tl.int32.fp_mantissa_width
